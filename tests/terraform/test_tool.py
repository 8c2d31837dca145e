"""Terraform or OpenTofu is found, or the message says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.terraform.tool import environment_of_runs, find
from tests.topology.programs import program


def test_terraform_takes_precedence_over_tofu(tmp_path: Path) -> None:
    program(tmp_path, "tofu", "echo 'OpenTofu v1.11.0'")
    assert find({"PATH": str(tmp_path)}).product == "OpenTofu"
    program(tmp_path, "terraform", "echo 'Terraform v1.14.2'")
    found = find({"PATH": str(tmp_path)})
    assert (found.product, found.version, found.path) == ("Terraform", "1.14.2", str(tmp_path / "terraform"))


def test_the_variable_decides(tmp_path: Path) -> None:
    program(tmp_path, "terraform", "echo 'Terraform v1.14.2'")
    own = program(tmp_path / "own", "tofu-1.11", "echo 'OpenTofu v1.11.3'")
    found = find({"PATH": str(tmp_path), "SPOTLADDER_TERRAFORM": str(own)})
    assert (found.product, found.path) == ("OpenTofu", str(own))


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (None, "neither terraform nor tofu is on the PATH: install Terraform or OpenTofu 1.11 or newer"),
        ("Terraform v1.9.8", "terraform is Terraform 1.9.8: install Terraform or OpenTofu 1.11 or newer"),
        ("hello", "expected the version of Terraform or OpenTofu, got 'hello'"),
        ("", "expected the version of Terraform or OpenTofu, got 'nothing'"),
    ],
)
def test_what_cannot_be_used(says: str | None, message: str, tmp_path: Path) -> None:
    if says is not None:
        program(tmp_path, "terraform", f"echo '{says}'")
    with pytest.raises(EnvironmentFailure) as error:
        find({"PATH": str(tmp_path)})
    assert message in str(error.value)
    assert error.value.exit_code == 5


def test_a_missing_named_program() -> None:
    with pytest.raises(EnvironmentFailure, match="SPOTLADDER_TERRAFORM=/nowhere/tf: no such program"):
        find({"PATH": "/usr/bin", "SPOTLADDER_TERRAFORM": "/nowhere/tf"})


def test_providers_are_kept_in_one_place(tmp_path: Path) -> None:
    base = {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    found = environment_of_runs(base)
    assert found["TF_PLUGIN_CACHE_DIR"] == str(tmp_path / "spotladder" / "terraform-plugins")
    assert Path(found["TF_PLUGIN_CACHE_DIR"]).is_dir()
    assert environment_of_runs({**base, "TF_PLUGIN_CACHE_DIR": "/own"})["TF_PLUGIN_CACHE_DIR"] == "/own"
