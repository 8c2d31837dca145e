"""Manifests contain the user's fields in the notation of the CRD: the schema accepts every file that `validate`
accepts."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from spotladder.api.check import checked
from spotladder.api.crds import crds
from spotladder.api.document import documents_of
from spotladder.api.manifest import manifest
from spotladder.api.read import kind_of
from spotladder.api.world import World
from tests.api.builders import JOB, changed

SCHEMAS = {
    entry["spec"]["names"]["kind"]: entry["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for entry in crds()
}

TIER = """\
apiVersion: spotladder.io/v1alpha1
kind: CapacityTier
metadata: {name: spot}
spec: {capacityType: spot, price: {perNodeHour: 1}}
"""


def closed(schema: Any) -> Any:
    """The schema as the API server applies it to a file: unknown fields are rejected."""
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: closed(inner) for key, inner in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        kept["additionalProperties"] = False
    return kept


def sent(text: str) -> dict[str, Any]:
    (document,) = documents_of(text, "f.yaml")
    model = checked(document, kind_of(document))
    assert not isinstance(model, World)
    return manifest(model)


def refusals(body: dict[str, Any]) -> list[str]:
    validator = Draft202012Validator(closed(SCHEMAS[body["kind"]]), format_checker=Draft202012Validator.FORMAT_CHECKER)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(body)]


JOBS: dict[str, Any] = {
    "as it is": (),
    "a budget without quotes": ("  grace: 90s", "  budget: 250"),
    "a broken budget": ("  grace: 90s", "  budget: 0.1"),
    "a budget with blanks": ("  grace: 90s", '  budget: " 250 "'),
    "steps with a blank": ("interval: 5m", "interval: 5 steps"),
    "one step": ("interval: 5m", 'interval: "1step"'),
    "capital steps": ("interval: 5m", "interval: 50 Steps"),
    "an odd duration": ("interval: 5m", "interval: 0.5h90s"),
    "no stall timeout": ("  grace: 90s", "  stallTimeout:"),
    "no deadline": ("  grace: 90s", "  deadline: ~"),
    "a deadline with blanks": ("  grace: 90s", "  deadline: 2026-12-01 00:00:00z"),
    "a deadline to the nanosecond": ("  grace: 90s", "  deadline: 2026-12-01T00:00:00.123456789+01:00"),
    "amounts as numbers": ("maxFailures: 3", "overrides: {resources: {limits: {cpu: 4, memory: 16Gi}}}"),
    "half a core": ("maxFailures: 3", "overrides: {resources: {requests: {cpu: 0.5}}}"),
    "unlimited": ("maxFailures: 3", "maxFailures: -1"),
    "the shortest patience": ("provisionTimeout: 10m", "provisionTimeout: 1ms"),
    "the longest patience": ("provisionTimeout: 10m", "provisionTimeout: 87600h"),
    "a scheme in capitals": ("uri: s3://bucket/prefix", "uri: S3://bucket/prefix"),
    "printed by kubectl": (
        "  name: digits",
        "  name: digits\n  uid: 1b4e28ba\n  resourceVersion: '7'\n  managedFields: [{manager: kubectl}]",
    ),
    "nulls in the template": ("replicas: 2", "replicas: 2\n              template: {spec: {nodeSelector: ~}}"),
}

TIERS = {
    "as it is": ("price: {perNodeHour: 1}", "price: {perNodeHour: 1}"),
    "a price without quotes": ("perNodeHour: 1", "perNodeHour: 0.42, onDemandPerNodeHour: 1.41"),
    "a tiny price": ("perNodeHour: 1", "perNodeHour: 1e-7"),
    "egress without quotes": ("price: {perNodeHour: 1}", "egressPerGiB: 0.02"),
    "nothing is known of the price": ("price: {perNodeHour: 1}", "price: ~"),
    "a notice": ("price: {perNodeHour: 1}", "notice: 0.5m"),
    "tolerations": (
        "price: {perNodeHour: 1}",
        "extraTolerations: [{key: gpu, operator: Exists, effect: NoExecute, tolerationSeconds: 30, value: ~}]",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_the_schema_accepts_every_valid_job(name: str) -> None:
    text = changed(JOB, JOBS[name]) if JOBS[name] else JOB
    assert refusals(sent(text)) == []


@pytest.mark.parametrize("name", TIERS)
def test_the_schema_accepts_every_valid_tier(name: str) -> None:
    assert refusals(sent(changed(TIER, TIERS[name]))) == []


def test_the_schema_of_this_test_rejects_invalid_fields() -> None:
    (document,) = documents_of(changed(JOB, ("  grace: 90s", "  budget: 250")), "f.yaml")
    assert refusals(document.data) == ["$.spec.budget: 250 is not of type 'string'"]


def test_unset_fields_are_not_sent() -> None:
    (document,) = documents_of(JOB, "f.yaml")
    wanted = document.data
    wanted["spec"]["grace"] = "1m30s"
    assert sent(JOB) == wanted


def test_a_status_in_the_file_is_not_sent() -> None:
    assert "status" not in sent(f"{JOB}status: {{phase: Running}}\n")
