"""Conversion of files into the JobSpec of the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.api.local_mode import local_program, local_spec
from spotladder.api.read import read_job, read_world
from spotladder.core.model import (
    CapacityType,
    Exhausted,
    FailureUnit,
    Handover,
    JobSpec,
    Overlap,
    Price,
    Tier,
)
from spotladder.errors import InvalidSpec
from tests.api.builders import JOB, WORLD, changed, written


def resolved(folder: Path, job: str = JOB, world: str = WORLD) -> JobSpec:
    given = read_job(written(folder, "job.yaml", job))
    return local_spec(given, read_world(written(folder, "world.yaml", world)), submitted_at=7.0)


def test_a_program_without_the_library_waits_until_the_last_attempt_is_gone(tmp_path: Path) -> None:
    assert resolved(tmp_path, changed(JOB, ("Fenced", "WhenGone"))).handover is Handover.WHEN_GONE


def test_tiers_have_the_capacity_type_and_price_of_their_pools(tmp_path: Path) -> None:
    assert resolved(tmp_path).tiers == (
        Tier("spot-a", 3, 600.0, CapacityType.SPOT, Price(0.42, 1.41), notice=5.0),
        Tier("on-demand", 1, 1800.0, CapacityType.ON_DEMAND, Price(1.41, 1.41), notice=30.0),
    )


def test_unset_fields_have_the_documented_defaults(tmp_path: Path) -> None:
    spec = resolved(tmp_path)
    assert (spec.workers, spec.submitted_at) == (2, 7.0)
    assert (spec.recovery_timeout, spec.stall_timeout, spec.grace) == (90.0, 1500.0, 90.0)
    assert (spec.start_timeout, spec.contact_timeout) == (1800.0, 100.0)
    assert (spec.handover, spec.failure_unit, spec.exhausted) == (Handover.FENCED, FailureUnit.POD, Exhausted.FAIL)
    assert (spec.backoff_limit, spec.application_failures) == (None, 0)
    assert (spec.deadline, spec.max_duration, spec.budget, spec.suspend) == (None, None, None, False)
    assert spec.overlap is None


def test_all_fields_are_converted(tmp_path: Path) -> None:
    more = """\
  recoveryTimeout: 45s
  stallTimeout: 5m
  startTimeout: 15m
  contactTimeout: 0s
  failureUnit: Interruption
  backoffLimit: 5
  applicationFailures: 2
  exhausted: Wait
  overlap: {maxDuration: 30m, budget: "2.5", hedgeAfter: 5m}
  deadline: 2026-12-01T01:00:00+01:00
  maxDuration: 6h
  budget: "250.50"
"""
    text = changed(JOB, ("  grace: 90s\n", f"  grace: 20s\n{more}"), ("false", "true"))
    spec = resolved(tmp_path, text)
    assert spec.overlap == Overlap(1800.0, 2.5, 300.0)
    assert (spec.recovery_timeout, spec.stall_timeout, spec.grace) == (45.0, 300.0, 20.0)
    assert (spec.start_timeout, spec.contact_timeout) == (900.0, 0.0)
    assert (spec.handover, spec.failure_unit) == (Handover.FENCED, FailureUnit.INTERRUPTION)
    assert (spec.backoff_limit, spec.application_failures, spec.exhausted) == (5, 2, Exhausted.WAIT)
    assert (spec.deadline, spec.max_duration, spec.budget, spec.suspend) == (1796083200.0, 21600.0, 250.5, True)


def test_on_insufficient_capacity_is_converted(tmp_path: Path) -> None:
    text = changed(JOB, ("maxFailures: 3\n", "maxFailures: 3\n    onInsufficientCapacity: fallback\n"))
    assert [tier.on_insufficient_capacity for tier in resolved(tmp_path, text).tiers] == ["fallback", "wait"]


def test_a_program_with_checkpoints_of_its_own_may_save_once_a_day(tmp_path: Path) -> None:
    own = changed(JOB, ("interval: 5m", "interval: 5m\n    programFolder: out"))
    assert resolved(tmp_path, own).stall_timeout == 86_400


@pytest.mark.parametrize(("interval", "expected"), [("30s", 600.0), ("2m", 600.0), ("3m", 900.0), ("50steps", 600.0)])
def test_the_default_stall_timeout_is_five_intervals_or_ten_minutes(
    tmp_path: Path, interval: str, expected: float
) -> None:
    assert resolved(tmp_path, changed(JOB, ("interval: 5m", f"interval: {interval}"))).stall_timeout == expected


def test_workers_are_summed_over_groups_and_hosts(tmp_path: Path) -> None:
    more = "replicas: 2\n            - {groupName: slices, replicas: 3, numOfHosts: 4}"
    assert resolved(tmp_path, changed(JOB, ("replicas: 2", more))).workers == 14


def test_the_spec_needs_the_capacity_of_the_tiers_only(tmp_path: Path) -> None:
    groups = "\n    groups: {data: {capacityTier: elsewhere}}\n"
    tiers = [(f"maxFailures: {count}\n", f"maxFailures: {count}{groups}") for count in (3, 1)]
    job = changed(JOB, *tiers, ("replicas: 2", "replicas: 2\n            - {groupName: data, replicas: 4}"))
    spec = resolved(tmp_path, job)
    assert ([tier.name for tier in spec.tiers], spec.workers) == (["spot-a", "on-demand"], 2)


def test_no_pool_is_suggested_if_two_are_equally_similar(tmp_path: Path) -> None:
    job = changed(JOB, ("capacityTier: g5-od-use1", "capacityTier: spot-x"))
    with pytest.raises(InvalidSpec, match=r"; known: spot-a, spot-b, g5-spot-use1a$"):
        resolved(tmp_path, job, world="pools: {spot-a: {nodes: 9}, spot-b: {nodes: 9}, g5-spot-use1a: {nodes: 9}}\n")


def test_every_tier_without_pool_is_reported(tmp_path: Path) -> None:
    world = "pools: {elsewhere: {}}\n"
    with pytest.raises(InvalidSpec) as caught:
        resolved(tmp_path, world=world)
    assert len(str(caught.value).splitlines()) == 2
    assert "known: elsewhere" in str(caught.value)


def test_a_pool_without_price_costs_nothing(tmp_path: Path) -> None:
    world = "pools: {g5-spot-use1a: {}, g5-od-use1: {}}\n"
    assert [tier.price for tier in resolved(tmp_path, world=world).tiers] == [Price(), Price()]


def test_the_local_program_has_entrypoint_workers_and_environment(tmp_path: Path) -> None:
    text = changed(
        JOB,
        (
            "entrypoint: python train.py\n",
            (
                "entrypoint: python train.py --epochs 3\n"
                "          runtimeEnvYAML: |\n"
                '            env_vars: {EPOCHS: "3", SEED: "1"}\n'
                "            pip: [numpy]\n"
            ),
        ),
        ("    provisionTimeout: 30m\n", "    provisionTimeout: 30m\n    overrides: {env: {SEED: '2'}}\n"),
    )
    job = read_job(written(tmp_path, "job.yaml", text))
    spot, on_demand = local_program(job, "spot-a"), local_program(job, "on-demand")
    assert (spot.entrypoint, spot.workers, spot.ignored) == ("python train.py --epochs 3", 2, ("pip",))
    assert dict(spot.env) == {"EPOCHS": "3", "SEED": "1"}
    assert dict(on_demand.env) == {"EPOCHS": "3", "SEED": "2"}


# --- the kind of document in a file ----------------------------------------------------------------------------------


def refused_job(folder: Path, text: str) -> str:
    with pytest.raises(InvalidSpec) as caught:
        read_job(written(folder, "job.yaml", text))
    return str(caught.value).removeprefix(f"{folder}/")


def test_a_job_file_with_two_documents_is_rejected(tmp_path: Path) -> None:
    said = "the file must have one document, but a second one begins here; specify a TieredJob in its own file"
    assert refused_job(tmp_path, f"{JOB}---\n{JOB}") == f"job.yaml:32:1: {said}"


def test_an_empty_file_is_rejected(tmp_path: Path) -> None:
    assert refused_job(tmp_path, "") == "job.yaml: is empty; specify a TieredJob"


def test_a_world_is_rejected_as_a_job(tmp_path: Path) -> None:
    said = "is a world file, not a TieredJob; specify the file of the job, and a world file with --world"
    assert refused_job(tmp_path, WORLD) == f"job.yaml:1:1: {said}"


def test_a_job_is_rejected_as_a_world(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="is a TieredJob, not a world file; specify a file that begins with pools"):
        read_world(written(tmp_path, "job.yaml", JOB))


def test_the_output_of_kubectl_get_is_accepted(tmp_path: Path) -> None:
    set_by_kubernetes = "  name: digits\n  uid: 1-2\n  generation: 3\n  creationTimestamp: '2026-11-21T00:00:00Z'\n"
    text = changed(JOB, ("  name: digits\n", set_by_kubernetes)) + "status: {phase: Running}\n"
    assert read_job(written(tmp_path, "job.yaml", text)).metadata.name == "digits"


def test_the_price_of_the_bucket_is_converted(tmp_path: Path) -> None:
    text = changed(JOB, ("interval: 5m\n", 'interval: 5m\n    storagePerGiBMonth: "0.023"\n'))
    assert resolved(tmp_path, text).storage_per_gib_month == 0.023
