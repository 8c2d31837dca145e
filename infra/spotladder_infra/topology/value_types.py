"""Value types of the fleet file, each with its validation, its error message and its JSON schema."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from spotladder.api.fields import refused
from spotladder.api.problems import quoted
from spotladder.versions import KUBERNETES

_MINOR = re.compile(r"1\.[0-9]{2}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_INSTANCE_FAMILY = re.compile(r"[a-z][a-z0-9-]{0,20}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_STATE_URI = re.compile(r"(s3|gs)://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9/_.-]*))?")
_KMS_KEY = re.compile(r"projects/[^/\s]+/locations/([a-z0-9-]+)/keyRings/[\w-]+/cryptoKeys/[\w-]+")
_DISK_IMAGE = re.compile(r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/global/images/[a-z][a-z0-9-]{0,62}")


_REGISTRY = re.compile(r"[a-z0-9.-]+\.[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*")
_IAM_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[\w+=,.@/-]+")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise refused(f'must be text: write it in quotes, "{value}"')
    return value


def _minor(value: Any) -> str:
    text = _text(value)
    if not _MINOR.fullmatch(text):
        raise refused(f'{quoted(text)} is not a minor version of Kubernetes (expected one like "{KUBERNETES}")')
    return text


def _cidr(value: Any) -> str:
    text = _text(value)
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise refused(f"{quoted(text)} is not an IPv4 range: {error}; write one like 10.0.0.0/16") from None
    return str(network)


def _bucket(value: Any) -> str:
    text = _text(value)
    if not _BUCKET.fullmatch(text) or ".." in text:
        raise refused(
            f"{quoted(text)} is not a bucket name: 3 to 63 lower-case letters, digits, '-' and '.', without s3:// or gs://"
        )
    return text


def _family(value: Any) -> str:
    text = _text(value)
    if "." in text:
        raise refused(f"{quoted(text)} is an instance type: write it under instanceTypes")
    if not _INSTANCE_FAMILY.fullmatch(text):
        raise refused(f"{quoted(text)} is not an instance family (expected one like g5, p5 or a2)")
    return text


def _email(value: Any) -> str:
    text = _text(value)
    if not _EMAIL.fullmatch(text):
        raise refused(f"{quoted(text)} is not an e-mail address")
    return text


def _state_uri(value: Any) -> str:
    text = _text(value).rstrip("/")
    if not _STATE_URI.fullmatch(text):
        raise refused(f"{quoted(text)} is not a bucket for state (expected s3://bucket/prefix or gs://bucket/prefix)")
    return text


def _disk_image(value: Any) -> str:
    text = _text(value)
    if not _DISK_IMAGE.fullmatch(text):
        raise refused(f"{quoted(text)} is not a disk image (expected projects/PROJECT/global/images/NAME)")
    return text


def _kms_key(value: Any) -> str:
    text = _text(value)
    if not _KMS_KEY.fullmatch(text):
        expected = "projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY"
        raise refused(f"{quoted(text)} is not a key of Cloud KMS (expected {expected})")
    return text


def _iam_principal(value: Any) -> str:
    text = _text(value)
    if not _IAM_PRINCIPAL.fullmatch(text):
        raise refused(f"{quoted(text)} is not a role or user of IAM (expected arn:aws:iam::123456789012:role/NAME)")
    return text


def _registry(value: Any) -> str:
    text = _text(value)
    if not _REGISTRY.fullmatch(text):
        expected = "a host and a path without a scheme, such as registry.example.com/mirror"
        raise refused(f"{quoted(text)} is not a registry: write {expected}")
    return text


def _schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


Minor = Annotated[str, BeforeValidator(_minor), _schema(_MINOR.pattern)]
Cidr = Annotated[str, BeforeValidator(_cidr), _schema(r"[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}")]
BucketName = Annotated[str, BeforeValidator(_bucket), _schema(_BUCKET.pattern)]
Family = Annotated[str, BeforeValidator(_family), _schema(_INSTANCE_FAMILY.pattern)]
Email = Annotated[str, BeforeValidator(_email), _schema(_EMAIL.pattern)]
StateUri = Annotated[str, BeforeValidator(_state_uri), _schema(_STATE_URI.pattern + "/?")]
IamPrincipal = Annotated[str, BeforeValidator(_iam_principal), _schema(_IAM_PRINCIPAL.pattern)]
KmsKey = Annotated[str, BeforeValidator(_kms_key), _schema(_KMS_KEY.pattern)]
SecondaryBootDisk = Annotated[str, BeforeValidator(_disk_image), _schema(_DISK_IMAGE.pattern)]
Registry = Annotated[str, BeforeValidator(_registry), _schema(_REGISTRY.pattern)]
