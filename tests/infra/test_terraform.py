"""The EKS stack in Terraform, without a cloud: its schema, and an apply with a mocked provider."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spotladder_infra.stacks.synth import synth
from tests.infra import tool
from tests.topology.builders import fleet_file

MOCKED = Path(__file__).parent / "eks.tftest.json"

pytestmark = pytest.mark.timeout(600)


@pytest.mark.usefixtures("stacks")  # skips where the bindings are missing
def test_valid_and_applies_with_a_mocked_provider(terraform: Callable[..., tool.Terraform], tmp_path: Path) -> None:
    """`terraform test` destroys what it made, so the bucket is not protected here."""
    shutil.copy(MOCKED, tmp_path)
    unprotected = ("cloud: aws, region: us-east-1}", "cloud: aws, region: us-east-1, deletionProtection: false}")
    fleet = fleet_file(tmp_path, unprotected).fleet
    east = terraform(tmp_path, synth(fleet, [fleet.cluster("east")], tmp_path / "out", tmp_path / "state")[0])
    assert "1 passed, 0 failed" in east.run("test", "-no-color").stdout


def test_every_option_is_valid(
    optional_stacks: dict[str, Path], terraform: Callable[..., tool.Terraform], tmp_path: Path
) -> None:
    """The provider's schema contains all arguments that options add, and the second region of the replica."""
    text = (optional_stacks["east"] / "cdk.tf.json").read_text()
    assert all(kind in text for kind in ("aws_budgets_budget", "aws_eks_access_entry", "replica", "endpoint-ecr-api"))
    assert "Success!" in terraform(tmp_path, optional_stacks["east"]).run("validate", "-no-color").stdout
