"""Fields that an earlier version created become fields that the next apply may remove."""

from __future__ import annotations

from typing import Any

from spotladder.cli.cluster.ownership import migrated

OURS = "spotladder-cli"


def entry(manager: str, operation: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "manager": manager, "operation": operation, "apiVersion": "spotladder.io/v1alpha1",
        "time": "2026-11-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields, **more,
    }  # fmt: skip


CREATED = entry(OURS, "Update", {"f:spec": {".": {}, "f:budget": {}, "f:tiers": {'k:{"name":"a"}': {".": {}}}}})
FINALIZER = entry("spotladder", "Update", {"f:metadata": {"f:finalizers": {}}})
STATUS = entry("spotladder", "Update", {"f:status": {}}, subresource="status")
SUSPENDED = entry(OURS, "Update", {"f:spec": {"f:suspend": {}}})


def test_created_fields_become_applied() -> None:
    assert migrated([CREATED, FINALIZER, STATUS], OURS) == [FINALIZER, STATUS, {**CREATED, "operation": "Apply"}]


def test_created_fields_are_merged_with_applied_fields() -> None:
    applied = entry(OURS, "Apply", {"f:spec": {"f:grace": {}, "f:tiers": {'k:{"name":"b"}': {}}}})
    found = migrated([CREATED, applied], OURS)
    assert found is not None
    (only,) = found
    assert only["operation"] == "Apply"
    assert only["fieldsV1"]["f:spec"].keys() == {".", "f:budget", "f:grace", "f:tiers"}
    assert only["fieldsV1"]["f:spec"]["f:tiers"].keys() == {'k:{"name":"a"}', 'k:{"name":"b"}'}


def test_an_update_does_not_resume_a_suspended_job() -> None:
    both = entry(OURS, "Update", {"f:spec": {"f:budget": {}, "f:suspend": {}}})
    found = migrated([both], OURS)
    assert found == [SUSPENDED, entry(OURS, "Apply", {"f:spec": {"f:budget": {}}})]


def test_migration_is_idempotent() -> None:
    found = migrated([CREATED, SUSPENDED, FINALIZER], OURS)
    assert found is not None
    assert migrated(found, OURS) is None
    assert migrated([entry("kubectl", "Update", {"f:spec": {"f:budget": {}}})], OURS) is None
