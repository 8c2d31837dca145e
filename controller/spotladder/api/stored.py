"""TieredJobs and CapacityTiers as the API server stores them: the records in the caches, and what is parsed of them.

A spec is kept as JSON: it is large and seldom read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any, Self

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.document import Document
from spotladder.api.record import API_VERSION
from spotladder.api.status import TieredJobStatus
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Instant, JobState, Phase, codec
from spotladder.errors import InvalidSpec
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS
from spotladder.timestamps import instant

FINALIZER = "spotladder.io/cleanup"
"""The finalizer of a TieredJob: it remains until all objects of the job are deleted."""

FORCE_DELETE = "spotladder.io/force-delete"
"""Annotation "true": remove the finalizer of the TieredJob although some of its objects may remain."""


MAX_SPEC = 262_144
"""Maximum bytes of the spec of a TieredJob as JSON, twice as many as the longest argument of a program: the controller
of all tenants reads it, and renders it for each tier, in a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A TieredJob. Records are compared by `generation`, so status writes trigger no reconcile. `folder` is the address
    of the commit log. `tiers` maps its tiers to their CapacityTiers. `tier` is the tier of the live or last attempt.
    `capacity` is the CapacityTier that the job holds or waits for, and `standby_capacity` that of its standby attempt;
    "" if none."""

    name: str
    namespace: str
    uid: str
    resource_version: str = field(default="", compare=False)
    generation: int = 0
    created_at: Instant = 0.0
    deleted_at: Instant | None = None
    forced: bool = False
    finalizers: tuple[str, ...] = ()
    folder: str = ""
    tiers: tuple[tuple[str, str], ...] = ()
    phase: str = field(default="", compare=False)
    tier: str = field(default="", compare=False)
    capacity: str = field(default="", compare=False)
    standby_capacity: str = field(default="", compare=False)
    spec: bytes = field(default=b"{}", compare=False)
    status: bytes = field(default=b"{}", compare=False)

    @classmethod
    def of(cls, thing: Mapping[str, Any]) -> Self:
        metadata, status = thing["metadata"], thing.get("status") or {}
        annotations = metadata.get("annotations") or {}
        tiers, phase, tier = tuple(_tiers(thing)), intern(status.get("phase") or ""), intern(status.get("tier") or "")
        held = dict(tiers) if phase in _HOLDING else {}
        return cls(
            name=metadata["name"],
            namespace=metadata.get("namespace", ""),
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            generation=metadata.get("generation", 0),
            created_at=instant(metadata.get("creationTimestamp")) or 0.0,
            deleted_at=instant(metadata.get("deletionTimestamp")),
            forced=annotations.get(FORCE_DELETE) == "true",
            finalizers=tuple(metadata.get("finalizers") or ()),
            folder=_folder(thing),
            tiers=tiers,
            phase=phase,
            tier=tier,
            capacity=held.get(tier, ""),
            standby_capacity=held.get((status.get("standby") or {}).get("tier") or "", ""),
            spec=to_json(thing.get("spec") or {}),
            status=to_json(status),
        )

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def deleting(self) -> bool:
        return self.deleted_at is not None

    @property
    def finalized(self) -> bool:
        """Whether spotladder's finalizer keeps the object."""
        return FINALIZER in self.finalizers

    def parsed(self) -> TieredJob:
        """The TieredJob. Raises InvalidSpec with every problem."""
        if (size := len(self.spec)) > MAX_SPEC:
            remedy = "put files and long scripts into the image or a ConfigMap"
            raise InvalidSpec(f"has {size:,} bytes, and at most {MAX_SPEC:,} are read: {remedy}", path="spec")
        data = {
            "apiVersion": API_VERSION,
            "kind": TIEREDJOBS.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": from_json(self.spec),
        }
        return checked(Document("", data, {}, {}), TieredJob, stored=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRecord:
    """A CapacityTier. If it is invalid, `model` is None and `problem` is the cause."""

    name: str
    uid: str
    resource_version: str = field(default="", compare=False)
    generation: int = 0
    deleting: bool = False
    model: CapacityTier | None = field(default=None, compare=False)
    problem: str = ""
    status: bytes = field(default=b"{}", compare=False)

    @classmethod
    def of(cls, thing: Mapping[str, Any]) -> Self:
        metadata = thing["metadata"]
        model, problem = None, ""
        data = {
            "apiVersion": API_VERSION,
            "kind": CAPACITYTIERS.kind,
            "metadata": {"name": metadata["name"]},
            "spec": thing.get("spec") or {},
        }
        try:
            model = checked(Document("", data, {}, {}), CapacityTier, stored=True)
        except InvalidSpec as error:
            problem = "; ".join(str(error).splitlines())
        return cls(
            name=metadata["name"],
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            generation=metadata.get("generation", 0),
            deleting="deletionTimestamp" in metadata,
            model=model,
            problem=problem,
            status=to_json(thing.get("status") or {}),
        )


def status_of(record: JobRecord) -> TieredJobStatus:
    """The status as it is stored; do not modify it. A malformed status counts as empty, except for `status.state`."""
    return _parsed(record.status)


@lru_cache(maxsize=256)
def _parsed(text: bytes) -> TieredJobStatus:
    plain = from_json(text)
    try:
        return TieredJobStatus.model_validate(plain)
    except ValidationError:
        return TieredJobStatus(state=plain.get("state") or "")


def state_of(status: TieredJobStatus) -> JobState:
    """The controller's state of the job. Raises InvalidSpec if a newer version wrote it."""
    return codec.load_state(status.state) if status.state else JobState()


_HOLDING = (Phase.PENDING, Phase.RUNNING, Phase.DRAINING)


def _tiers(job: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Only values of the expected types: the object may have been created under an older schema."""
    tiers = (job.get("spec") or {}).get("tiers")
    for tier in tiers if isinstance(tiers, list) else ():
        if isinstance(tier, dict) and isinstance(tier.get("name"), str) and isinstance(tier.get("capacityTier"), str):
            yield intern(tier["name"]), intern(tier["capacityTier"])


def _folder(job: Mapping[str, Any]) -> str:
    uri = ((job.get("spec") or {}).get("checkpoints") or {}).get("uri")
    return f"{uri.rstrip('/')}/{job['metadata']['name']}" if isinstance(uri, str) else ""
