"""How a controller is set up: the flags of `spotladder controller`, or the same names in a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from spotladder.api.address import Endpoint, StoreAddress
from spotladder.api.fields import Name
from spotladder.clusters.address import ClusterAddress
from spotladder.clusters.registry import HOME
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec
from spotladder.operator.storage.access import EVERY_NAMESPACE, NamespaceAccess

SETTLE: Seconds = 60.0
"""Kubernetes calls a node lost up to 55 s after its last word (50 s of grace, looked at every 5 s). Long before that,
the programs on the other nodes have failed for want of it: a failure that was called the program's own by then would
end the job for the loss of a node."""


_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class AccessRule(BaseModel):
    """What namespaces may use for their checkpoints."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    namespaces: tuple[str, ...] = Field(
        min_length=1, description='Namespaces that the rule is for; "*" is all of them.'
    )
    uris: tuple[str, ...] = Field(
        default=(), description="Addresses at or below which checkpoints may be: s3://bucket/folder."
    )
    endpoints: tuple[str, ...] = Field(default=(), description="Endpoints that Secrets may name: https://host:port.")

    @field_validator("namespaces")
    @classmethod
    def _known_form(cls, namespaces: tuple[str, ...]) -> tuple[str, ...]:
        for name in namespaces:
            if name != EVERY_NAMESPACE and not _NAMESPACE.fullmatch(name):
                raise ValueError(f"{name!r} is not a namespace: write a name, or {EVERY_NAMESPACE!r} for all")
        return namespaces

    @field_validator("uris")
    @classmethod
    def _addresses(cls, uris: tuple[str, ...]) -> tuple[str, ...]:
        return _each(uris, partial(StoreAddress.parse, pattern=True))

    @field_validator("endpoints")
    @classmethod
    def _places(cls, endpoints: tuple[str, ...]) -> tuple[str, ...]:
        return _each(endpoints, partial(Endpoint.parse, pattern=True))

    @property
    def parsed(self) -> NamespaceAccess:
        """The rule as the controller applies it."""
        uris = tuple(StoreAddress.parse(uri, pattern=True) for uri in self.uris)
        return NamespaceAccess(
            frozenset(self.namespaces), uris, tuple(Endpoint.parse(text, pattern=True) for text in self.endpoints)
        )


def _each(texts: tuple[str, ...], parse: Callable[[str], object]) -> tuple[str, ...]:
    for text in texts:
        try:
            parse(text)
        except InvalidSpec as error:
            raise ValueError(error.message if text in error.message else f"{text!r} {error.message}") from None
    return texts


class Settings(BaseModel):
    """What a platform engineer may want to differ."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    kubeconfig: str | None = Field(default=None, description="The home cluster's kubeconfig; in a pod none is needed.")
    context: str | None = Field(default=None, description="The kubeconfig's context.")
    namespaces: tuple[str, ...] = Field(default=(), description="Namespaces to look after; all when empty.")
    lease_namespace: str | None = Field(default=None, description="Where the lease is; default: the own namespace.")
    lease_name: str = Field(default="spotladder-controller", description="The lease's name.")
    listen: str = Field(default="127.0.0.1:8080", description="Address of /healthz, /readyz and /metrics.")
    workers: int = Field(default=16, ge=1, le=256, description="Jobs that are looked at at the same time.")
    calls_per_second: float = Field(default=500.0, gt=0, description="Calls of the API server, on average.")
    burst: int = Field(default=1000, ge=1, description="Calls of the API server at once, after a pause.")
    resync: float = Field(default=600.0, gt=0, description="Seconds after which every job is looked at anyway.")
    settle: float = Field(
        default=SETTLE,
        ge=0,
        description="Seconds after a program's failure in which the loss of a node may still explain it.",
    )
    clusters: dict[Name, ClusterAddress] = Field(
        default_factory=dict, description="Clusters beside home that CapacityTiers may name, and where they are."
    )
    checkpoint_access: tuple[AccessRule, ...] = Field(
        default=(),
        description="What the controller reads with its own identity for a namespace, and all that the namespace may "
        "use. A namespace without a rule may use any bucket with a Secret of its own.",
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Variables given to every program, such as AWS_ENDPOINT_URL."
    )

    @field_validator("clusters")
    @classmethod
    def _home_is_given(cls, clusters: dict[str, ClusterAddress]) -> dict[str, ClusterAddress]:
        if HOME in clusters:
            raise ValueError(f"{HOME} is the cluster that the controller looks after: give the other another name")
        return clusters


def read_settings(file: Path | None, flags: dict[str, Any]) -> Settings:
    """The settings of a file, and of the flags that were given, which win. Raises InvalidSpec."""
    values: dict[str, Any] = {}
    if file is not None:
        values = _read(file)
    given = {to_camel(name): value for name, value in flags.items() if value not in (None, ())}
    if isinstance(known := values.get("clusters"), dict) and "clusters" in given:
        given["clusters"] = {**known, **given["clusters"]}
    try:
        return Settings.model_validate({**values, **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidSpec(first["msg"].removeprefix("Value error, "), path=field, where=str(file or "")) from None


def _read(file: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML  # noqa: PLC0415 – only who gives a file pays for it
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        data = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror}", where=str(file)) from None
    except UnicodeDecodeError:
        raise InvalidSpec("is no text: write name: value", where=str(file)) from None
    except YAMLError as error:
        raise InvalidSpec(f"is not YAML: {' '.join(str(error).split())}", where=str(file)) from None
    if data is not None and not isinstance(data, dict):
        raise InvalidSpec("holds no settings: write name: value", where=str(file))
    return data or {}
