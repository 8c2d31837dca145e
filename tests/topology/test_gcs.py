"""The fake of Cloud Storage refuses the same requests as the JSON API."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder_infra.state import GCS_SETTINGS
from tests.topology.gcs import refusal

PROJECT = {"project": ["acme-ml"]}


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("POST", "b", PROJECT, {"name": "acme-state", "location": "us-central1", **GCS_SETTINGS}),
        ("PATCH", "b/acme-state", {}, GCS_SETTINGS),
        ("PATCH", "b/acme-state", {}, {"softDeletePolicy": {"retentionDurationSeconds": "0"}}),
        ("GET", "b/acme-state", {}, None),
        ("GET", "b/acme-state/o", {"versions": ["true"], "pageToken": ["1"]}, None),
        ("DELETE", "b/acme-state/o/team-a%2Fjob", {"generation": ["7"]}, None),
    ],
)
def test_requests_of_the_project_are_accepted(method: str, path: str, query: Any, body: Any) -> None:
    assert refusal(method, path, query, body) == ""


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "why"),
    [
        ("POST", "b", {}, {"name": "acme-state"}, "Required parameter: project"),
        ("POST", "b", PROJECT, {"location": "EU"}, "Required parameter: name"),
        ("POST", "b", PROJECT, {"name": "Acme"}, "Invalid argument: name"),
        ("POST", "b", PROJECT, {"name": "acme", "versioned": True}, "Invalid argument: unknown field versioned"),
        ("PATCH", "b/acme", {}, {"location": "EU"}, "Cannot be changed: name, location"),
        ("PATCH", "b/acme", {}, {"versioning": {"enabled": "true"}}, "Invalid argument: versioning.enabled"),
        ("PATCH", "b/acme", {}, {"versioning": True}, "Invalid argument: versioning is no object"),
        (
            "PATCH", "b/acme", {}, {"softDeletePolicy": {"retentionDurationSeconds": 2592000}},
            "Invalid argument: softDeletePolicy.retentionDurationSeconds",
        ),
        (
            "PATCH", "b/acme", {}, {"softDeletePolicy": {"retentionDurationSeconds": "3600"}},
            "Invalid argument: softDeletePolicy.retentionDurationSeconds",
        ),
        (
            "PATCH", "b/acme", {}, {"iamConfiguration": {"publicAccessPrevention": "on"}},
            "Invalid argument: iamConfiguration.publicAccessPrevention",
        ),
        ("GET", "b/acme", {"recursive": ["true"]}, None, "Unknown parameter: recursive"),
        ("PUT", "b/acme", {}, {}, "Unknown method: PUT b/acme"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused(method: str, path: str, query: Any, body: Any, why: str) -> None:
    assert refusal(method, path, query, body) == why
