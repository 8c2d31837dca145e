"""Programs that save at their own interval save at a notice, too: Ray's preemption information, transformers."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spotladder.core.contract import Notice
from spotladder.core.reasons import Reason
from spotladder.train.rayhuggingface import after_import, save_at_notices
from spotladder.train.session import Job
from tests.train.builders import Ranks

pytest.importorskip("ray.train", reason="Ray is not installed")


pytestmark = pytest.mark.usefixtures("no_waiting")


def request(at: float = 60.0) -> str:
    return Notice.of_commit(Reason.EVICTION_NOTICE, round(time.time() + at)).encode()


def noticed(folder: Path, rank: int, size: int, text: str) -> list[dict[str, Any]]:
    """The settings of the ranks: one has a notice."""
    (folder / "notice").write_text(text)
    return [{"notice": folder / "notice", "node": "n"} if each == rank else {"node": "m"} for each in range(size)]


def stop() -> str:
    return Notice.of(Reason.EVICTION_NOTICE, 5.0).encode()


@pytest.mark.parametrize("notice_of", [request, stop])
@pytest.mark.parametrize("rank", [0, 1])
def test_all_ranks_save_once_after_the_same_step(tmp_path: Path, rank: int, notice_of: Callable[[], str]) -> None:
    barrier = threading.Barrier(2)

    def steps(job: Job) -> list[int]:
        saved = []
        for step in itertools.count(1):
            barrier.wait(10)  # stands for an all-reduce
            if job.saves_now(step):
                saved.append(step)
            if saved and step == saved[0] + 5:
                break
        return saved

    with Ranks(tmp_path / "log", 2, own=noticed(tmp_path, rank, 2, notice_of()), interval="1step") as ranks:
        first, second = ranks.on_all(steps)
    assert first == second
    assert len(first) == 1


def test_a_program_that_asks_itself_is_not_asked_to_save(tmp_path: Path) -> None:
    with Ranks(tmp_path / "log", 1, own=noticed(tmp_path, 0, 1, request()), interval="1h") as ranks:
        (job,) = ranks.jobs
        job.should_commit(1)
        assert not any(job.saves_now(step) for step in (1, 2, 3))


def test_rays_preemption_info_is_the_same_on_all_ranks_from_the_notice_to_the_commit(
    rayreports: Any, tmp_path: Path
) -> None:
    def do(job: Job) -> list[Any]:
        routed = rayreports.Routed(job._member, "run", 100)
        before = routed.get_preemption_info()
        files = tmp_path / f"files-{job.rank}"
        files.mkdir()
        (files / "w").write_text("1")
        routed.report({}, rayreports.Checkpoint.from_directory(str(files)))
        after = routed.get_preemption_info()
        if job.rank == 1:
            (tmp_path / "notice").write_text(Notice.of_handover(90.5).encode())
        again = routed.get_preemption_info()
        return [info and (info.preempted_node_to_ranks, info.deadline_ms) for info in (before, after, again)]

    with Ranks(tmp_path / "log", 2, own=noticed(tmp_path, 1, 2, request())) as ranks:
        assert ranks.on_all(do) == [[({"n": [1]}, None), None, ({"n": [1]}, 90500)]] * 2


# --- transformers, with a module in its place; tests/frameworks has the real one ---


def trainer_module() -> Any:
    module: Any = ModuleType("transformers.trainer")
    module.DEFAULT_CALLBACKS = []
    module.TrainerCallback = object
    module.Trainer = SimpleNamespace(_load_from_checkpoint=None)
    module.get_last_checkpoint = lambda folder: f"{folder}/checkpoint-99"
    return module


def callbacks_of(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The callback of every rank, and what the rank's reports learn."""
    made = []
    for job in ranks.jobs:
        module, routed = trainer_module(), SimpleNamespace(trained_to=0)
        monkeypatch.setitem(sys.modules, "transformers.trainer", module)
        save_at_notices(job, routed)  # type: ignore[arg-type]
        made.append((module.DEFAULT_CALLBACKS[0](), routed))
    return made


def test_a_trainer_that_loads_otherwise_saves_at_notices_without_renamed_weights(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = trainer_module()
    del module.Trainer._load_from_checkpoint
    monkeypatch.setitem(sys.modules, "transformers.trainer", module)
    save_at_notices(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    assert len(module.DEFAULT_CALLBACKS) == 1
    assert caplog.messages == [
        "transformers.trainer: this version is not known, so weights saved under other names are not restored"
    ]


@pytest.mark.parametrize(("strategy", "saves"), [("steps", True), ("no", False)])
def test_the_trainer_saves_at_a_notice_unless_it_never_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str, saves: bool
) -> None:
    arguments = SimpleNamespace(save_strategy=strategy, world_size=1)
    with Ranks(tmp_path / "log", 1, own=noticed(tmp_path, 0, 1, request())) as ranks:
        ((callback, _),) = callbacks_of(ranks, monkeypatch)
        saved = []
        for step in range(1, 5):
            control = SimpleNamespace(should_save=False)
            assert callback.on_step_end(arguments, SimpleNamespace(global_step=step), control) is control
            saved.append(control.should_save)
    assert any(saved) == saves


@pytest.mark.parametrize("together", [True, False])
def test_no_rank_reports_before_all_ranks_have_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """Except where each rank trains a model of its own: the others may never save."""
    written: list[int] = []
    arguments = SimpleNamespace(save_strategy="steps", world_size=2 if together else 1)
    with Ranks(tmp_path / "log", 2) as ranks:
        made = callbacks_of(ranks, monkeypatch)

        def save(job: Job) -> list[int]:
            callback, routed = made[job.rank]
            if job.rank == 1:
                time.sleep(0.05)
            written.append(job.rank)
            if together or job.rank == 0:
                callback.on_save(arguments, SimpleNamespace(global_step=30 + job.rank), SimpleNamespace())
                assert routed.trained_to == 30 + job.rank
            return list(written)

        assert all(len(seen) == 2 for seen in ranks.on_all(save)) == together


def test_a_report_has_the_checkpoint_of_its_save_and_not_one_that_a_lost_attempt_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ranks(tmp_path / "log", 1) as ranks:
        ((callback, _),) = callbacks_of(ranks, monkeypatch)
        last = sys.modules["transformers.trainer"].get_last_checkpoint
        assert last(str(tmp_path)) == f"{tmp_path}/checkpoint-99", "before a save: what the folder has"
        (tmp_path / "checkpoint-30").mkdir()
        state = SimpleNamespace(global_step=30)
        callback.on_save(SimpleNamespace(save_strategy="steps", world_size=1), state, SimpleNamespace())
        assert last(str(tmp_path)) == f"{tmp_path}/checkpoint-30"
        assert last("elsewhere") == "elsewhere/checkpoint-99"


def test_a_module_that_is_imported_later_is_changed_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "later_imported.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found: list[int] = []
    finders = list(sys.meta_path)
    after_import("later_imported", lambda module: found.append(module.VALUE))
    assert found == []
    import later_imported  # type: ignore[import-not-found]

    assert (found, later_imported.VALUE) == ([1], 1)
    assert sys.meta_path == finders
    after_import("later_imported", lambda module: found.append(2))
    assert found == [1, 2]
    del sys.modules["later_imported"]


def test_a_module_that_does_not_exist_or_is_not_as_expected_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = list(sys.meta_path)
    after_import("never_to_be_found", lambda module: None)
    with pytest.raises(ImportError):
        __import__("never_to_be_found")
    monkeypatch.setattr(sys, "meta_path", before)
    failing: Callable[[ModuleType], Any] = lambda module: module.NO_SUCH_NAME  # noqa: E731
    after_import("json", failing)
    assert "json: this version is not known" in caplog.text
