"""The memory that programs may still use on this machine: free memory, within the limits of the container."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")

_FILES = {
    "v2": ("memory.max", "memory.current", "inactive_file"),
    "v1": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Limit, usage, and the entry of memory.stat for memory that the kernel can reclaim."""


def available() -> int | None:
    """Bytes that programs can allocate without swapping or being killed; None if this system does not report them."""
    whole = _of_machine(Path("/proc/meminfo"))
    if whole is None:
        return None
    own = Path("/proc/self/cgroup")
    groups = own.read_text().splitlines() if own.exists() else []
    return min([whole, *headrooms(groups, CGROUPS)])


def _of_machine(meminfo: Path) -> int | None:
    """The free memory of the machine, from Linux itself or with psutil where it is installed."""
    with suppress(OSError, KeyError, ValueError):
        facts = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(facts["MemAvailable"].split()[0]) * 1024
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().available)


def headrooms(groups: list[str], root: Path) -> list[int]:
    """Free bytes under each limit of the control groups in these lines of /proc/self/cgroup, and of their parents."""
    found = []
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found += _upwards(root, path, "v2")
        elif "memory" in controllers.split(","):
            found += _upwards(root / "memory", path, "v1")
    return found


def _upwards(root: Path, path: str, version: str) -> list[int]:
    limit_name, usage_name, reclaimable = _FILES[version]
    folder = root / path.lstrip("/")
    found = []
    for group in (folder, *folder.parents):
        with suppress(OSError, ValueError):  # No such file, or its content is "max".
            limit, usage = int((group / limit_name).read_text()), int((group / usage_name).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            found.append(max(0, limit - usage + int(stat.get(reclaimable, 0))))
        if group == root:
            break
    return found
