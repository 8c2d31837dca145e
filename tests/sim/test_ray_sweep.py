"""Runs that are spread over a Ray cluster."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder.sim.ray_sweep import spread

OPTIONS = ("--trace", "synthetic", "--hours", "2", "--deadline", "6h", "--seeds", "6", "-o", "json")


def test_without_ray_the_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EnvironmentFailure, match=r"--ray needs Ray: pip install 'spotladder\[local\]'"):
        list(spread(pow, 2, [1, 2], "local"))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "[::1]:1", "127.0.0.1:99999"])
def test_an_address_that_accepts_no_connection_is_refused_at_once(address: str) -> None:
    with pytest.raises(EnvironmentFailure, match=re.escape(f"--ray {address}: cannot connect: ")):
        list(spread(pow, 2, [1, 2], address))


def simulated(*more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from spotladder.cli.main import main; sys.exit(main())"]
    return subprocess.run([*command, "simulate", *OPTIONS, *more], capture_output=True, text=True, check=False)


@pytest.mark.ray
@pytest.mark.timeout(400)
def test_a_sweep_on_ray_reports_the_same_as_one_process() -> None:
    alone, spread_out = simulated(), simulated("--ray", "local")
    assert (spread_out.returncode, spread_out.stderr) == (0, "")
    assert spread_out.stdout == alone.stdout
