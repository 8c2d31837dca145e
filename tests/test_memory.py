"""Free memory in a container is bounded by its control groups, not only by the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder import memory

MIB = 1024**2


def group(folder: Path, names: tuple[str, str], limit: str, usage: int, stat: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, str(usage)), strict=True):
        (folder / name).write_text(f"{value}\n")
    (folder / "memory.stat").write_text(stat)


def v2(folder: Path, limit: str, usage: int, inactive: int = 0) -> None:
    group(folder, ("memory.max", "memory.current"), limit, usage, f"anon 5\ninactive_file {inactive}\n")


def test_the_limits_of_all_parent_control_groups_are_read(tmp_path: Path) -> None:
    v2(tmp_path / "pod" / "box", str(1000 * MIB), 700 * MIB, inactive=100 * MIB)
    v2(tmp_path / "pod", str(900 * MIB), 800 * MIB)
    assert memory.headrooms(["0::/pod/box"], tmp_path) == [400 * MIB, 100 * MIB]


def test_a_control_group_without_a_limit_is_ignored(tmp_path: Path) -> None:
    v2(tmp_path / "box", "max", 700 * MIB)
    assert memory.headrooms(["0::/box", "0::/elsewhere"], tmp_path) == []


def test_usage_above_the_limit_leaves_zero_bytes(tmp_path: Path) -> None:
    v2(tmp_path, str(100 * MIB), 101 * MIB)
    assert memory.headrooms(["0::/"], tmp_path) == [0]


def test_limits_of_control_groups_v1_are_read(tmp_path: Path) -> None:
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    group(tmp_path / "memory" / "box", names, str(500 * MIB), 300 * MIB, "total_inactive_file 0\n")
    lines = ["11:cpu,cpuacct:/box", "4:memory:/box", "1:name=systemd:/box"]
    assert memory.headrooms(lines, tmp_path) == [200 * MIB]


def test_available_memory_is_bounded_by_the_control_group_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "headrooms", lambda groups, root: [7 * MIB])
    assert memory.available() == 7 * MIB
    monkeypatch.setattr(memory, "headrooms", lambda groups, root: [])
    assert (memory.available() or 0) > 7 * MIB
