"""A third kind of workload is a package and one entry in the registry: no other module names it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "tests" / "workloads" / "batch_job"


def test_jobs_of_a_third_kind_are_validated_rendered_and_reconciled() -> None:
    """In a process of its own, since the models of the API are made from the registry when they are imported."""
    plugins = ("-p", "no:cacheprovider", "-p", "tests.workloads.batch_job.registered")
    command = [sys.executable, "-m", "pytest", "-q", *plugins, str(PACKAGE / "in_operator.py")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 passed" in result.stdout
