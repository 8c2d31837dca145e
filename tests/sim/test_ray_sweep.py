"""Runs that are spread over a Ray cluster."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from spotladder.errors import EnvironmentFailure, InvalidSpec
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


def test_auto_refuses_an_address_of_the_environment_that_accepts_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(EnvironmentFailure, match=r"--ray auto: cannot connect: .*: check that this Ray cluster runs"):
        list(spread(pow, 2, [1, 2], "auto"))


@pytest.mark.parametrize("address", ["", "nonsense", "ray://localhost", "ray://:10001/x", "https://host:1"])
def test_an_address_of_another_form_is_invalid(address: str) -> None:
    message = f"--ray: expected auto, local, HOST:PORT or ray://HOST:PORT, got {address!r}: correct the address"
    with pytest.raises(InvalidSpec, match=re.escape(message)):
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


def _unlucky(divisor: int, run: int) -> int:
    if run == 2:
        raise InvalidSpec("expected 1, got 2: give 1", path="--seeds")
    return run // divisor


@pytest.mark.ray
@pytest.mark.timeout(400)
def test_the_error_of_a_run_on_ray_is_that_of_one_process() -> None:
    assert list(spread(_unlucky, 1, [1, 3], "local")) == [1, 3]
    with pytest.raises(InvalidSpec) as found:
        list(spread(_unlucky, 1, [1, 2], "local"))
    assert str(found.value) == "--seeds: expected 1, got 2: give 1"
    expected = (
        "--ray local: a run failed on the cluster: ZeroDivisionError: .*: check that its nodes have the same version"
    )
    with pytest.raises(EnvironmentFailure, match=expected):
        list(spread(_unlucky, 0, [1, 3], "local"))
