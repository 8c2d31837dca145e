from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.document import MAX_NODES, MAX_NODES_OF_AN_ADMINISTRATOR
from spotladder.api.tenancy import TenantRule
from spotladder.errors import InvalidSpec
from spotladder.operator.settings import ATTRIBUTION_WINDOW, read_settings
from spotladder.workloads.rayjob.workload import KEPT_AFTER_THE_END

NODE_GRACE = 50.0
"""Kubernetes' --node-monitor-grace-period, since 1.32."""

NODE_PERIOD = 5.0
"""Kubernetes' --node-monitor-period."""


def test_the_failure_attribution_window_covers_the_node_monitor_grace_period() -> None:
    assert NODE_GRACE + NODE_PERIOD < ATTRIBUTION_WINDOW <= KEPT_AFTER_THE_END


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"uris": ["s3://b"]}, "tenancy[0].namespaces: is required"),
        ({"namespaces": []}, "tenancy[0].namespaces: must have at least one entry"),
        ({"namespaces": ["team_a"], "uris": ["s3://b"]}, "'team_a' is not a namespace: write a name, or '*' for all"),
        ({"namespaces": ["team-*"], "uris": ["s3://b"]}, "'team-*' is not a namespace"),
        ({"namespaces": ["*"], "uris": ["bucket/x"]}, "[0].uris[0]: 'bucket/x' is not a checkpoint address"),
        ({"namespaces": ["*"], "uris": ["s3://b/../x"]}, "'s3://b/../x' is not normalized"),
        ({"namespaces": ["*"], "endpoints": ["minio:9000"]}, "'minio:9000' is not a valid endpoint"),
        ({"namespaces": ["*"], "endpoints": ["http://0x7f.1"]}, "'http://0x7f.1' has an IP address that is not in"),
        ({"namespaces": ["*"], "uri": ["s3://b"]}, "tenancy[0].uri: is not a known field; did you mean uris?"),
    ],
)  # fmt: skip
def test_an_invalid_access_rule_is_rejected(rule: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "controller.yaml"
    file.write_text(json.dumps({"tenancy": [rule]}), encoding="utf-8")
    with pytest.raises(InvalidSpec) as refused:
        read_settings(file, {})
    assert str(refused.value).startswith(f"{file}:1:")
    assert ": tenancy[0]" in str(refused.value)
    assert said in str(refused.value)


def test_a_rule_is_parsed() -> None:
    rule = TenantRule.model_validate(
        {"namespaces": ["team-a", "*"], "uris": ["s3://*", "file:///data/"], "endpoints": ["https://*.example.com"]}
    )
    assert rule.applies_to("any")
    assert [str(address) for address in rule.uris or ()] == ["s3://*", "file:///data"]
    assert [str(endpoint) for endpoint in rule.endpoints or ()] == ["https://*.example.com"]


def test_a_file_of_settings_has_more_values_than_a_job(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        f"environment: {{{', '.join(f'A{number}: b' for number in range(MAX_NODES // 2))}}}", encoding="utf-8"
    )
    assert len(read_settings(file, {}).environment) == MAX_NODES // 2, "a name and a value each"
    bomb = f"a: &a [{'b, ' * 1_000}]\nc: [{'*a, ' * 200}]\n"
    file.write_text(bomb, encoding="utf-8")
    with pytest.raises(InvalidSpec, match=f"must have at most {MAX_NODES_OF_AN_ADMINISTRATOR} values"):
        read_settings(file, {})
