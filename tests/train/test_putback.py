"""The newest commit in the program's folder before the program starts, and what is committed of the folder."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest

from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.entries import FileEntry
from spotladder.errors import InvalidSpec
from spotladder.train import folder_watch
from spotladder.train.folder_watch import Watch
from spotladder.train.membership import Member
from spotladder.train.putback import Changed, copied, put_back
from spotladder.train.saved import Saved, saved_in
from tests.train.builders import ManualClock, log_of, member, newest_of


def save(folder: Path, name: str, text: str = "state", *, step: int | None = None) -> None:
    """A file that is complete by its own mark. `step`: it has one inside."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("state", text)
        archive.writestr("archive/data.pkl", pickle.dumps({} if step is None else {"step": step}))


def text_of(folder: Path, name: str) -> str:
    with zipfile.ZipFile(folder / name) as archive:
        return archive.read("state").decode()


class Attempt:
    """An attempt of the job whose program saves in `out`."""

    def __init__(self, tmp_path: Path, number: int = 1, uid: str = "u-1") -> None:
        self.folder, self.clock = tmp_path / "out", ManualClock()
        self.member: Member = member(tmp_path / "bucket", attempt=number, uid=uid)
        self.start = put_back(self.member, self.folder)
        self.watch = Watch(self.folder, self.member, self.member.commits, self.start, self.clock)

    def commit(self) -> None:
        """Look until everything is committed."""
        for _ in range(2):
            self.watch.look()
            self.clock.now += folder_watch.SETTLED_AFTER
        self.member.commits.wait()

    @property
    def place(self) -> str | None:
        path = self.start.path_in(self.folder)
        return path and os.path.relpath(path, self.folder)


def steps(tmp_path: Path) -> list[int]:
    return [commit.step for commit in log_of(tmp_path / "bucket").commits()]


def only(folder: Path) -> Saved:
    (saved,) = saved_in(folder)
    return saved


def test_a_new_machine_gets_the_newest_commit(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    assert first.place is None
    save(first.folder / "deep", "step-5.pt")
    first.commit()
    save(first.folder / "deep", "step-10.pt", "ten")
    first.commit()
    assert steps(tmp_path) == [5, 10]
    first.folder.rename(tmp_path / "gone")
    second = Attempt(tmp_path, 2)
    assert second.place == "deep/step-10.pt"
    assert text_of(second.folder, "deep/step-10.pt") == "ten"
    second.commit()
    assert steps(tmp_path) == [5, 10]


@pytest.mark.parametrize("exists", [False, True])
def test_the_folder_of_a_first_start_stays_as_it_is(tmp_path: Path, exists: bool) -> None:
    """Scripts of Hugging Face refuse an output folder that has files, and others one that exists."""
    if exists:
        (tmp_path / "out").mkdir()
    first = Attempt(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != "bucket"] == ["out"] * exists
    first.commit()
    assert first.folder.exists() is exists
    save(first.folder, "step-5.pt")
    first.commit()
    shutil.rmtree(first.folder)
    save(first.folder, "step-10.pt")
    first.watch.look()
    assert Attempt(tmp_path, 2).place == "step-10.pt", "the program has begun its folder anew"


def test_what_this_run_has_completed_and_not_committed_is_kept(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    save(first.folder, "step-5.pt")
    first.commit()
    save(first.folder, "step-10.pt", "ten")
    second = Attempt(tmp_path, 2)
    assert second.place == "step-10.pt"
    second.commit()
    assert steps(tmp_path) == [5, 10]


@pytest.mark.parametrize(
    ("saves", "expected"),
    [
        ([("last.pt", 30), ("best.pt", 20)], "last.pt"),
        ([("epoch-3.pt", 30), ("best.pt", None)], "epoch-3.pt"),
        ([("deep/epoch-3.pt", None), ("best.pt", None)], "deep/epoch-3.pt"),
        ([("last.pt", 30), ("epoch-3.pt", 30)], "epoch-3.pt"),
        ([("epoch-3.pt", 30), ("last.pt", 40)], "last.pt"),
        ([("model_0003.pth", 3), ("last_checkpoint", None)], "model_0003.pth"),
        ([("rank-0/step-10.pt", None), ("rank-1/step-10.pt", None)], "rank-1/step-10.pt"),
    ],
)
def test_a_program_finds_each_file_from_which_it_may_resume(
    tmp_path: Path, saves: list[tuple[str, int | None]], expected: str
) -> None:
    first = Attempt(tmp_path)
    for name, step in saves:
        save((first.folder / name).parent, Path(name).name, step=step)
        first.commit()
    first.folder.rename(tmp_path / "gone")
    second = Attempt(tmp_path, 2)
    assert second.place == expected
    further = expected == "last.pt" and saves[0][0] == "epoch-3.pt"
    assert all((second.folder / name).exists() for name, _ in saves[further:])


def test_the_files_of_a_step_in_several_folders_are_one_commit(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    for epoch in (2, 3):
        for folder in ("generator", "critic"):
            save(attempt.folder / folder, f"epoch-{epoch}.pt")
            attempt.commit()
    assert {file.name for file in newest_of(tmp_path / "bucket").files} == {
        "generator/epoch-3.pt",
        "critic/epoch-3.pt",
    }


def test_a_folder_of_the_best_state_does_not_replace_that_of_the_newest_epoch(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    for name in ("epoch_3", "best"):
        (first.folder / name).mkdir(parents=True)
        (first.folder / name / "random_states_0.pkl").write_text(name)
        first.commit()
    first.folder.rename(tmp_path / "gone")
    second = Attempt(tmp_path, 2)
    assert second.place == "epoch_3"
    assert (second.folder / "best" / "random_states_0.pkl").read_text() == "best"


def test_a_checkpoint_that_was_torn_does_not_keep_the_file_that_names_it(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    for name in ("model_0001.pth", "model_0002.pth"):
        save(first.folder, name)
        (first.folder / "last_checkpoint").write_text(name)
        first.commit()
    (first.folder / "model_0003.pth").write_bytes(b"PK")
    (first.folder / "last_checkpoint").write_text("model_0003.pth")
    second = Attempt(tmp_path, 2)
    assert second.place == (second.folder / "last_checkpoint").read_text() == "model_0002.pth"


def test_a_program_may_remove_its_folder_during_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As BackupAndRestore of Keras does at the end of the training."""
    attempt, take_file = Attempt(tmp_path), DiskStore.take_file

    def removed(store: DiskStore, key: str, path: Path) -> FileEntry:
        shutil.rmtree(attempt.folder, ignore_errors=True)
        return take_file(store, key, path)

    save(attempt.folder, "last.pt")
    with monkeypatch.context() as patched:
        patched.setattr(DiskStore, "take_file", removed)
        for _ in range(2):
            attempt.watch.look()
            attempt.clock.now += folder_watch.SETTLED_AFTER
        assert attempt.watch.wait(60)
    assert "was removed before it was committed" in caplog.text
    save(attempt.folder, "last.pt", "again")
    attempt.commit()
    assert steps(tmp_path) == [2]


def test_a_volume_may_be_mounted_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Attempt(tmp_path)
    save(first.folder / "volume", "step-5.pt", "five")
    first.commit()
    (first.folder / "volume" / "step-5.pt").unlink()
    move = os.rename

    def rename(source: str | Path, target: str | Path, **more: int) -> None:
        if f"{first.folder}/volume/" in str(target):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        move(source, target, **more)

    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "replace", rename)
    assert text_of(Attempt(tmp_path, 2).folder, "volume/step-5.pt") == "five"


def test_a_second_loop_of_a_program_is_committed(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    for fold in range(2):
        for epoch in range(2):
            save(attempt.folder, f"fold{fold}-epoch{epoch}.pt")
            attempt.commit()
    assert steps(tmp_path) == [1, 0, 1]


def test_the_loop_before_is_not_committed_again_after_a_restart(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    for name, step in (("teacher-epoch-9.pt", 9), ("student-epoch-0.pt", 0)):
        save(first.folder, name, step=step)
        first.commit()
    second = Attempt(tmp_path, 2)
    second.commit()
    assert (second.place, steps(tmp_path)) == ("student-epoch-0.pt", [9, 0])


def test_files_that_may_be_torn_are_moved_aside(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    save(first.folder, "step-5.pt")
    first.commit()
    (first.folder / "checkpoint-10").mkdir()
    (first.folder / "step-10.weights.h5").write_text("unknown")
    second = Attempt(tmp_path, 2)
    assert second.place == "step-5.pt"
    assert sorted(path.name for path in second.folder.iterdir()) == [".spotladder", "step-5.pt"]
    assert len(list((second.folder / ".spotladder" / "torn").iterdir())) == 2


def test_checkpoints_of_another_run_are_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    save(tmp_path / "out", "step-500.pt")
    first = Attempt(tmp_path)
    assert (first.place, saved_in(first.folder)) == (None, [])
    assert "has checkpoints of another run" in caplog.text
    save(first.folder, "step-5.pt")
    first.commit()
    (tmp_path / "bucket").rename(tmp_path / "old")
    assert Attempt(tmp_path, uid="u-2").place is None
    assert len(list((tmp_path / "out" / ".spotladder").glob("before-*/step-*.pt"))) == 2


def test_a_file_that_is_overwritten_is_put_back_unless_it_is_newer(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    save(first.folder, "last.pt", "one")
    first.commit()
    save(first.folder, "last.pt", "two")
    first.commit()
    assert steps(tmp_path) == [1, 2]
    save(first.folder, "last.pt", "old")
    os.utime(first.folder / "last.pt", (1, 1))
    assert text_of(Attempt(tmp_path, 2).folder, "last.pt") == "two"


def test_a_folder_replaces_an_older_one(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    place = first.folder / "latest"
    place.mkdir(parents=True)
    (place / ".metadata").write_text("1")
    first.commit()
    (place / ".metadata").write_text("changed")
    os.utime(place / ".metadata", (1, 1))
    assert Attempt(tmp_path, 2).place == "latest"
    assert (place / ".metadata").read_text() == "1"
    assert [path.name for path in first.folder.iterdir() if path.name != ".spotladder"] == ["latest"]


def test_deepspeed_finds_what_was_put_back(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    for step in (5, 10):
        save(first.folder / f"global_step{step}", "mp_rank_00_model_states.pt", str(step))
        (first.folder / "latest").write_text(f"global_step{step}")
        first.commit()
    save(first.folder / "global_step15", "mp_rank_00_model_states.pt")
    first.commit()
    assert steps(tmp_path) == [5, 10]
    assert Attempt(tmp_path, 2).place == "global_step10"
    assert not (first.folder / "global_step15").exists(), "it is not complete"
    first.folder.rename(tmp_path / "gone")
    third = Attempt(tmp_path, 3)
    assert third.place == (third.folder / "latest").read_text() == "global_step10"
    assert text_of(third.folder / "global_step10", "mp_rank_00_model_states.pt") == "10"
    for text in ("15", "longer"):
        save(third.folder / "global_step15", "mp_rank_00_model_states.pt", text)
        (third.folder / "latest").write_text("global_step15")
        third.watch.look()
        third.clock.now += folder_watch.SETTLED_AFTER
    third.member.commits.wait()
    assert steps(tmp_path) == [5, 10], "step 10 is not committed again"
    (older,) = [saved for saved in saved_in(third.folder) if saved.step == 10]
    assert (copied(third.folder, older) / "latest").read_text() == "global_step10"


def test_a_checkpoint_that_changes_is_not_committed_yet(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    for text in ("one", "three"):
        save(attempt.folder, "step-5.pt", text)
        attempt.watch.look()
        assert not attempt.member.commits.busy
        attempt.clock.now += folder_watch.SETTLED_AFTER
    attempt.commit()
    assert steps(tmp_path) == [5]


def test_at_the_end_of_the_program_what_is_proven_is_committed_at_once(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    save(attempt.folder, "step-5.pt")
    (attempt.folder / "step-6.h5").write_text("maybe")
    attempt.watch.look(ended=True, killed=True)
    attempt.member.commits.wait()
    assert steps(tmp_path) == [5]
    attempt.watch.look(ended=True)
    attempt.member.commits.wait()
    assert steps(tmp_path) == [5, 6]


def test_a_program_that_begins_again_does_not_replace_the_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = Attempt(tmp_path)
    save(first.folder, "step-50.pt")
    first.commit()
    second = Attempt(tmp_path, 2)
    save(second.folder, "step-10.pt")
    second.commit()
    second.commit()
    assert steps(tmp_path) == [50]
    assert caplog.text.count("Does the program continue from its checkpoint?") == 1


def test_the_next_fold_or_stage_of_a_program_that_continues_is_committed(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    save(first.folder / "fold1", "epoch-9.pt")
    first.commit()
    second = Attempt(tmp_path, 2)
    save(second.folder / "fold0", "epoch-0.pt")
    second.commit()
    assert steps(tmp_path) == [9], "it begins again"
    save(second.folder / "fold2", "epoch-0.pt")
    second.commit()
    assert steps(tmp_path) == [9, 0]
    second.folder.rename(tmp_path / "gone")
    assert Attempt(tmp_path, 3).place == "fold2/epoch-0.pt"


def test_the_files_of_a_step_that_are_written_one_after_another_are_one_commit(tmp_path: Path) -> None:
    first = Attempt(tmp_path)
    for step in (1, 2):
        for part in ("model", "optimizer"):
            save(first.folder, f"{part}-{step}.pt")
    first.commit()
    save(first.folder, "model-3.pt")
    first.commit()
    assert steps(tmp_path) == [2], "the optimizer is not written yet"
    second = Attempt(tmp_path, 2)
    assert second.place is not None
    assert second.place.endswith("-2.pt")
    save(second.folder, "model-3.pt")
    second.commit()
    second.clock.now += folder_watch.HALF_SETTLED_AFTER
    second.commit()
    assert steps(tmp_path) == [2, 3], "a program may write less"
    save(second.folder, "optimizer-3.pt")
    second.commit()
    assert steps(tmp_path) == [2, 3, 3]


def test_a_program_whose_checkpoints_are_not_recognized_is_told_early(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = Attempt(tmp_path)
    attempt.folder.mkdir()
    for _ in range(2):
        attempt.commit()
        assert "none of the files" not in caplog.text
        (attempt.folder / "net.json").write_text("{}")
    attempt.clock.now += folder_watch.UNRECOGNIZED_AFTER
    for _ in range(2):
        attempt.commit()
    assert caplog.text.count("nothing is committed yet: none of the files in") == 1
    assert "net.json" in caplog.text


def test_another_file_of_the_same_step_belongs_to_the_commit(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    for name in ("step-5.pt", "step-5.ckpt"):
        save(attempt.folder, name)
        attempt.commit()
    newest = log_of(tmp_path / "bucket").newest()
    assert steps(tmp_path) == [5, 5]
    assert newest is not None
    assert {file.name for file in newest.files} == {"step-5.pt", "step-5.ckpt"}


def test_a_copy_outlives_the_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, "step-5.pt", "five")
    copy = copied(tmp_path, only(tmp_path))
    (tmp_path / "step-5.pt").unlink()
    assert text_of(copy, "step-5.pt") == "five"


@pytest.mark.parametrize("name", ["last.pt", "resnet50.pt"])
def test_a_copy_of_a_file_that_is_overwritten_in_place_does_not_change(tmp_path: Path, name: str) -> None:
    save(tmp_path, name, "one")
    copy = copied(tmp_path, only(tmp_path))
    save(tmp_path, name, "two")
    assert text_of(copy, name) == "one"


@pytest.mark.parametrize("then", ["removed", "changed"])
def test_a_checkpoint_that_vanishes_or_changes_is_not_copied(tmp_path: Path, then: str) -> None:
    save(tmp_path, "last.pt")
    saved = only(tmp_path)
    (tmp_path / "last.pt").unlink()
    if then == "changed":
        save(tmp_path, "last.pt", "a longer state")
    with pytest.raises(Changed):
        copied(tmp_path, saved)
    assert not list((tmp_path / ".spotladder").iterdir())


def test_a_link_out_of_the_folder_is_committed_with_its_content(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path)
    (tmp_path / "weights").write_text("shared")
    (attempt.folder / "step-5").mkdir(parents=True)
    (attempt.folder / "step-5" / ".metadata").write_text("m")
    (attempt.folder / "step-5" / "weights").symlink_to(tmp_path / "weights")
    attempt.commit()
    attempt.folder.rename(tmp_path / "gone")
    (tmp_path / "weights").unlink()
    restored = Attempt(tmp_path, 2).folder / "step-5" / "weights"
    assert (restored.read_text(), restored.is_symlink()) == ("shared", False)


def test_too_many_files_and_hostile_names_are_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = Attempt(tmp_path)
    monkeypatch.setattr(folder_watch, "MAX_FILES", 1)
    (attempt.folder / "step-5").mkdir(parents=True)
    for name in (".metadata", "more"):
        (attempt.folder / "step-5" / name).write_text("m")
    attempt.commit()
    (attempt.folder / "step-6").mkdir()
    (attempt.folder / "step-6" / ".metadata").write_text("m")
    (attempt.folder / "step-7\n.pt").write_text("m")
    attempt.commit()
    assert "step-5 is not committed: it has 2 files" in caplog.text
    assert "control characters" in caplog.text
    attempt.commit()
    assert steps(tmp_path) == [6]


def test_a_commit_of_another_kind_of_program_is_rejected(tmp_path: Path) -> None:
    before = member(tmp_path / "bucket")
    assert before.writer is not None
    before.writer.commit(5, [])
    with pytest.raises(InvalidSpec, match="has no checkpoint of a program's own folder"):
        put_back(member(tmp_path / "bucket", attempt=2), tmp_path / "out")
