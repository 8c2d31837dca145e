"""Random runs of a program on a machine with a cache: a resume gives the newest intact commit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.checkpoints import cache as module
from spotladder.checkpoints.cache import BLOCK
from spotladder.checkpoints.entries import Commit
from spotladder.errors import CheckpointCorrupt
from tests.checkpoints.cached_machine import DAMAGE, CachedMachine, blocks, overwrite
from tests.searching import examples


@pytest.fixture(autouse=True)
def long_copy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a copy takes longer than an upload into memory."""
    monkeypatch.setattr(module, "COPY_TIMEOUT", 20.0)


NAMES = ("a", "b")


@dataclass
class DamagedCache:
    """A machine whose program commits, dies and resumes, while files in its cache and in the bucket are damaged."""

    machine: CachedMachine
    limit: int
    step: int = 0
    made: dict[str, tuple[int, dict[str, bytes]]] = field(default_factory=dict)
    ended: bool = False

    def content(self) -> dict[str, bytes]:
        self.step += 1
        return {name: f"{name}{self.step}".encode() * (BLOCK // 4) for name in NAMES}

    def commit(self, _: int) -> None:
        files = self.content()
        commit = self.machine.commit(self.step, **files)
        self.made[commit.path] = (self.step, files)

    def die(self, _: int) -> None:
        """The program dies after the upload; its next start resumes."""
        self.machine.upload(0, **self.content())
        self.machine.writer = self.machine.log.start(1)
        self.resume(0)

    def damage_cache(self, choice: int) -> None:
        files = sorted(path for path in (self.machine.folder / "cache").rglob("*") if path.is_file())
        if files:
            list(DAMAGE.values())[choice % len(DAMAGE)](files[choice // len(DAMAGE) % len(files)])

    def damage_bucket(self, choice: int) -> None:
        objects = self.machine.store.objects
        keys = sorted(key for key in objects if key.startswith("digits/attempts/"))
        if keys:
            objects[keys[choice % len(keys)]] = b"damaged"

    def resume(self, _: int) -> None:
        commits = [commit for commit in self.machine.log.commits() if commit.path in self.made]
        wanted = next((commit for commit in reversed(commits) if self.available(commit)), None)
        if commits and wanted is None:
            with pytest.raises(CheckpointCorrupt):
                self.machine.resume()
            self.ended = True  # The program cannot start.
            return
        if wanted is None:
            self.machine.cache.keep("")
            return
        assert self.machine.resume() == self.made[wanted.path]
        self.machine.cache.keep(wanted.path)

    def scribble(self, choice: int) -> None:
        """The program writes to a file that it resumed from, as root."""
        with tempfile.TemporaryDirectory(dir=self.machine.folder) as to, suppress(CheckpointCorrupt):
            if found := self.machine.log.resume(Path(to)):
                overwrite(found.path / NAMES[choice % len(NAMES)], b"scribbles")
        self.machine.log.release()

    def available(self, commit: Commit) -> bool:
        """Whether each file is intact in the cache or in the bucket."""
        _, files = self.made[commit.path]
        cached, last = self.machine.cached(), commit.path.rpartition("/")[2]
        return all(
            data in (cached.get(f"{last}/{name}"), self.machine.store.objects.get(f"digits/{commit.path}/{name}"))
            for name, data in files.items()
        )

    def check_bounds(self) -> None:
        folders = list((self.machine.folder / "cache").glob("*/*"))
        assert len(folders) <= 2
        assert sum(path.lstat().st_size for path in (self.machine.folder / "cache").rglob("*")) <= self.limit


ACTS: tuple[Callable[[DamagedCache, int], None], ...] = (
    DamagedCache.commit,
    DamagedCache.commit,
    DamagedCache.die,
    DamagedCache.damage_cache,
    DamagedCache.damage_bucket,
    DamagedCache.resume,
    DamagedCache.scribble,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 99)), max_size=20), room=st.sampled_from([1, 3, 100])
)
def test_a_resume_gives_the_newest_intact_commit_whatever_happens_to_the_cache(
    acts: list[tuple[Callable[[DamagedCache, int], None], int]], room: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = DamagedCache(CachedMachine(Path(folder), blocks(room)), blocks(room))
        for act, choice in acts:
            if not cache.ended:
                act(cache, choice)
                cache.check_bounds()
        cache.resume(0)
