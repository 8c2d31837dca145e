"""Value types of the fleet file, each with its validation, its error message and its JSON schema."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from re import fullmatch
from typing import Annotated, Any

from annotated_types import GroupedMetadata
from pydantic import BeforeValidator, WithJsonSchema

from spotladder.api.fields import refused
from spotladder.api.problems import quoted
from spotladder.versions import KUBERNETES

_MINOR = r"1\.[0-9]{2}"
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_INSTANCE_FAMILY = r"[a-z][a-z0-9-]{0,20}"
_EMAIL = r"[^@\s]+@[^@\s]+\.[^@\s]+"
_STATE_URI = r"(s3|gs)://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9/_.-]*))?"
_KMS_KEY = (
    r"projects/[^/\s]+/locations/([a-z0-9-]+)/keyRings/[\w-]+/cryptoKeys/[\w-]+"
    r"|arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]{12}:key/[\w-]+"
)
_PROJECT = r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_REPOSITORY = r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9._-]+(/[a-z0-9._-]+)*"
_DISK_IMAGE = rf"projects/{_PROJECT}/global/images/[a-z][a-z0-9-]{{0,62}}"
_REGISTRY = r"[a-z0-9.-]+\.[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*"
_IAM_PRINCIPAL = r"arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[\w+=,.@/-]+"
_IAM_POLICY = r"arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[\w+=,.@/-]+"
_ROLE_PATH = r"/([\w+=,.@-]+/)+"
_ROLE_PREFIX = r"[\w+=,.@-]{1,20}"
_VPC = r"vpc-[0-9a-f]{8,17}"
_SUBNET = r"subnet-[0-9a-f]{8,17}"
_SECURITY_GROUP = r"sg-[0-9a-f]{8,17}"
_CLUSTER_NAME = r"([a-z0-9-]+/)?[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
_GCP_NETWORK = rf"projects/{_PROJECT}/global/networks/[a-z][a-z0-9-]{{0,62}}"
_GCP_SUBNETWORK = rf"projects/{_PROJECT}/regions/[a-z0-9-]+/subnetworks/[a-z][a-z0-9-]{{0,62}}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise refused(f'must be text: write it in quotes, "{value}"')
    return value


def _schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^({pattern})$" if "|" in pattern else f"^{pattern}$"})


@dataclass(frozen=True, slots=True)
class _Matches(GroupedMetadata):
    """Accepts texts of this pattern, which is also that of the JSON schema. `problem` follows the text in the
    message."""

    pattern: str
    problem: str

    def __iter__(self) -> Iterator[object]:
        return iter((BeforeValidator(self._checked), _schema(self.pattern)))

    def _checked(self, value: Any) -> str:
        text = _text(value)
        if not fullmatch(self.pattern, text):
            raise refused(f"{quoted(text)} {self.problem}")
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
    if not fullmatch(_BUCKET, text) or ".." in text:
        raise refused(
            f"{quoted(text)} is not a bucket name: 3 to 63 lower-case letters, digits, '-' and '.', without s3:// or gs://"
        )
    return text


def _family(value: Any) -> str:
    text = _text(value)
    if "." in text:
        raise refused(f"{quoted(text)} is an instance type: write it under instanceTypes")
    if not fullmatch(_INSTANCE_FAMILY, text):
        raise refused(f"{quoted(text)} is not an instance family (expected one like g5, p5 or a2)")
    return text


def _state_uri(value: Any) -> str:
    text = _text(value).rstrip("/")
    if not fullmatch(_STATE_URI, text):
        raise refused(f"{quoted(text)} is not a bucket for state (expected s3://bucket/prefix or gs://bucket/prefix)")
    return text


def key_region(key: str) -> str:
    """The region of a key of Cloud KMS or AWS KMS."""
    found = fullmatch(_KMS_KEY, key)
    return (found[1] or found[2]) if found else ""


def is_aws_key(key: str) -> bool:
    """Whether the key is one of AWS KMS."""
    return key.startswith("arn:")


Minor = Annotated[str, _Matches(_MINOR, f'is not a minor version of Kubernetes (expected one like "{KUBERNETES}")')]
Cidr = Annotated[str, BeforeValidator(_cidr), _schema(r"[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}")]
BucketName = Annotated[str, BeforeValidator(_bucket), _schema(_BUCKET)]
Family = Annotated[str, BeforeValidator(_family), _schema(_INSTANCE_FAMILY)]
Email = Annotated[str, _Matches(_EMAIL, "is not an e-mail address")]
StateUri = Annotated[str, BeforeValidator(_state_uri), _schema(_STATE_URI + "/?")]
AccountId = Annotated[str, _Matches("[0-9]{12}", "is not an account id of AWS (expected 12 digits): correct it")]
ProjectId = Annotated[str, _Matches(_PROJECT, "is not the id of a project (expected one like acme-ml-123): correct it")]
IamPrincipal = Annotated[
    str, _Matches(_IAM_PRINCIPAL, "is not a role or user of IAM (expected arn:aws:iam::123456789012:role/NAME)")
]
IamPolicy = Annotated[
    str, _Matches(_IAM_POLICY, "is not a policy of IAM (expected arn:aws:iam::123456789012:policy/NAME)")
]
RolePath = Annotated[str, _Matches(_ROLE_PATH, "is not a path of IAM (expected one like /platform/)")]
RolePrefix = Annotated[
    str, _Matches(_ROLE_PREFIX, "cannot begin the name of a role (expected 1 to 20 of A-Z a-z 0-9 + = , . @ _ -)")
]
KmsKey = Annotated[
    str,
    _Matches(
        _KMS_KEY,
        "is not a key (expected projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY on gcp, "
        "arn:aws:kms:REGION:ACCOUNT:key/ID on aws)",
    ),
]
SecondaryBootDisk = Annotated[
    str, _Matches(_DISK_IMAGE, "is not a disk image (expected projects/PROJECT/global/images/NAME)")
]
TpuTopology = Annotated[
    str,
    _Matches(r"[1-9][0-9]{0,2}(x[1-9][0-9]{0,2}){1,2}", "is not a topology of TPUs (expected one like 2x4 or 2x2x4)"),
]
Registry = Annotated[
    str, _Matches(_REGISTRY, "is not a registry (expected a host and a path such as registry.example.com/mirror)")
]
Repository = Annotated[
    str,
    _Matches(
        _REPOSITORY,
        "is not a repository (expected one like registry.example.com/spotladder, with the tag in the field tag)",
    ),
]
ClusterName = Annotated[str, _Matches(_CLUSTER_NAME, "is not the name of a cluster (expected one like prod-1)")]
VpcId = Annotated[str, _Matches(_VPC, "is not the id of a VPC (expected one like vpc-0123456789abcdef0)")]
SubnetId = Annotated[str, _Matches(_SUBNET, "is not the id of a subnet (expected one like subnet-0123456789abcdef0)")]
SecurityGroupId = Annotated[
    str, _Matches(_SECURITY_GROUP, "is not the id of a security group (expected one like sg-0123456789abcdef0)")
]
GcpNetwork = Annotated[str, _Matches(_GCP_NETWORK, "is not a network (expected projects/PROJECT/global/networks/NAME)")]
GcpSubnetwork = Annotated[
    str, _Matches(_GCP_SUBNETWORK, "is not a subnetwork (expected projects/PROJECT/regions/REGION/subnetworks/NAME)")
]
