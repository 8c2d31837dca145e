"""Commits a folder and resumes from it, in a process of its own: `little_memory URI SOURCE TARGET`.

A bucket gets it in small parts, so that a file that is much larger than those in flight is still small. Prints
how much more memory it has used at most than after a commit of a small file, which loads all modules, in MiB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from spotladder.checkpoints import bucket
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from tests.checkpoints.builders import commit_folder


def main(uri: str, source: Path, target: Path) -> None:
    bucket.PART, bucket.RANGE = 2 << 20, 1 << 20
    small = CommitLog(open_store(uri), "small")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "file").write_bytes(b"1")
        commit_folder(small.start(1), 1, Path(name))
    small.resume(target / "small")
    before = _peak()
    log = CommitLog(open_store(uri), "large")
    commit_folder(log.start(1), 1, source)
    assert log.resume(target / "large") is not None
    print((_peak() - before) // 1024)


def _peak() -> int:
    """The largest resident memory of this process in KiB. `ru_maxrss` would include that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
