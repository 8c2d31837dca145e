"""Which GPUs of this machine a simulated node offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder.local.gpus import GpuShares, check, of_machine


def test_the_machines_gpus_are_counted_by_their_devices(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert of_machine({}, tmp_path) == ("0", "1")
    assert of_machine({}, tmp_path / "none") == ()


def test_the_list_of_visible_gpus_has_precedence(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    assert of_machine({"CUDA_VISIBLE_DEVICES": "3, GPU-5ebe9f43"}, tmp_path) == ("3", "GPU-5ebe9f43")
    assert of_machine({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()
    assert of_machine({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path) == ()
    assert of_machine({"CUDA_VISIBLE_DEVICES": "1,-1,2"}, tmp_path) == ("1",)


def test_a_node_gets_the_gpus_that_the_fewest_others_use() -> None:
    shares = GpuShares(("0", "1", "2"))
    assert [shares.take(1), shares.take(2)] == [("0",), ("1", "2")]
    assert shares.take(2) == ("0", "1")
    shares.give_back(("1", "2"))
    assert shares.take(1) == ("2",)


def test_nodes_share_the_gpus_of_a_machine_with_fewer() -> None:
    shares = GpuShares(("0",))
    assert [shares.take(1), shares.take(1), shares.take(0)] == [("0",), ("0",), ()]


def test_a_pool_with_more_gpus_per_node_than_the_machine_is_rejected() -> None:
    check({"spot": 1, "all": None, "none": 0}, ("0",))
    with pytest.raises(EnvironmentFailure, match=r"pools.spot.gpusPerNode is 2, but this machine has 1 GPUs"):
        check({"spot": 2}, ("0",))
