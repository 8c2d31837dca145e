"""Tests of the stacks: each cloud is synthesized once for all of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.stacks.synth import synth
from spotladder_infra.topology.fleet import Fleet
from tests.absent import absent
from tests.infra import tool
from tests.topology.builders import EVERY_OPTION, fleet_file

SUITE = "infra"


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return fleet_file(tmp_path_factory.mktemp("fleet")).fleet


@pytest.fixture(scope="session")
def stacks(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of all stacks of the fleet, by cluster."""
    for package in ("cdktn", "cdktn_aws", "cdktn_provider_google"):
        if find_spec(package) is None:
            absent(f"{package} is not installed (make setup-infra)", SUITE)
    out = tmp_path_factory.mktemp("stacks")
    return {folder.name: folder for folder in synth(fleet, fleet.spec.clusters, out, out / "state")}


@pytest.fixture(scope="session")
def optional_stacks(stacks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the stacks of `east` and `west` with every option, by cluster."""
    assert stacks  # skips where the bindings are missing
    out = tmp_path_factory.mktemp("options")
    fleet = fleet_file(out, *EVERY_OPTION).fleet
    clusters = [fleet.cluster(name) for name in ("east", "west")]
    return {folder.name: folder for folder in synth(fleet, clusters, out / "out", out / "state")}


@pytest.fixture(scope="session")
def configuration(stacks: dict[str, Path]) -> dict[str, Any]:
    """The configuration that Terraform reads, by cluster."""
    return {name: json.loads((folder / "cdk.tf.json").read_text()) for name, folder in stacks.items()}


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = tool.ministack()
    if command is None:
        absent("ministack is not installed (make setup-infra)", SUITE)
    with tool.emulator(command, tmp_path_factory.mktemp("emulator")) as url:
        yield url


@pytest.fixture(scope="session")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tool.Terraform]:
    """Terraform in a new folder with the configuration of a stack, initialised."""
    found = tool.binary()
    if found is None:
        absent("neither terraform nor tofu is on the PATH", SUITE)
    environment = tool.environment(tmp_path_factory.mktemp("terraform"))

    def start(folder: Path, source: Path, **extra: str) -> tool.Terraform:
        shutil.copy(source / "cdk.tf.json", folder)
        tool.for_emulator(folder)
        made = tool.Terraform(found, folder, {**environment, **extra})
        done = made.run("init", "-input=false", "-no-color", accept=(0, 1))
        if done.returncode and "provider" in done.stderr:
            absent(f"the AWS provider is not available (SPOTLADDER_TERRAFORM_PLUGINS): {done.stderr[-300:]}", SUITE)
        assert done.returncode == 0, done.stderr
        return made

    return start
