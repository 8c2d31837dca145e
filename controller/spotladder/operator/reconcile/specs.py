"""The parsed specs of TieredJobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spotladder.api.stored import JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec
from spotladder.workloads.core_spec import core_spec
from spotladder.workloads.template import digests_of


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A TieredJob and its spec for the core. The spec has the digests of the pod templates, but tiers of unknown
    capacity."""

    job: TieredJob
    spec: JobSpec


def parsed_spec(record: JobRecord) -> ParsedSpec:
    """The parsed spec. Raises InvalidSpec with every problem."""
    job = record.parsed()
    spec, templates = core_spec(record, job, {}), digests_of(job)
    tiers = tuple(replace(tier, template=templates[tier.name]) for tier in spec.tiers)
    return ParsedSpec(job, replace(spec, tiers=tiers))
