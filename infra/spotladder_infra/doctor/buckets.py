"""Whether existing checkpoint buckets can fence an attempt that was cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import Store, StoreRefused
from spotladder.checkpoints.store_check import StoreUnsafe, check_store
from spotladder.errors import StoreUnavailable
from spotladder_infra.doctor.result import CheckResult, Status
from spotladder_infra.topology.cluster import Cloud
from spotladder_infra.topology.fleet import Fleet

FOLDER = "spotladder-doctor"
"""The folder of a bucket in which the check makes its probes, and deletes them."""


def examine(fleet: Fleet, opened: Callable[[str, Mapping[str, str]], Store] = open_store) -> Iterator[CheckResult]:
    """The results for the buckets that no stack creates, with the credentials of this machine."""
    for bucket in fleet.spec.buckets:
        if bucket.create:
            continue
        scheme = "gs" if bucket.cloud is Cloud.GCP else "s3"
        settings = {} if bucket.cloud is Cloud.GCP else {"AWS_REGION": bucket.region}
        status, found, fix = _checked(f"{scheme}://{bucket.name}/{FOLDER}", settings, opened)
        yield CheckResult(str(bucket.cloud), f"fence in {scheme}://{bucket.name}", status, found, fix)


def _checked(
    uri: str, settings: Mapping[str, str], opened: Callable[[str, Mapping[str, str]], Store]
) -> tuple[Status, str, str]:
    try:
        check_store(opened(uri, settings))
    except StoreUnsafe as error:
        return Status.FAILED, error.found, error.remedy
    except StoreRefused as error:
        return Status.SKIPPED, str(error), ""
    except StoreUnavailable as error:
        return Status.WARNING, str(error), "check the network"
    return Status.OK, "of several writers one succeeds", ""
