"""The checkpoints of a program's folder: which files are one, of which step, and when it is complete."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from spotladder.train.saved import LARGEST_STATE, Saved, number_of, saved_in

STATE = json.dumps({"global_step": 40, "max_steps": 100})


def lay_out(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(STATE.encode() if name.endswith("trainer_state.json") else b"12345678")


def found(folder: Path) -> dict[str, tuple[int | None, bool]]:
    return {saved.name: (saved.step, saved.complete) for saved in saved_in(folder)}


def only(folder: Path) -> Saved:
    (saved,) = saved_in(folder)
    return saved


def lightning(path: Path, step: int) -> None:
    """A file as torch.save writes it, with the state of Lightning."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"epoch": 1, "global_step": step, "state_dict": {}}, 2))
        archive.writestr("archive/data/0", b"0" * 100)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.getvalue())


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["checkpoint-40/model.safetensors", "checkpoint-40/trainer_state.json"], {"checkpoint-40": (40, True)}),
        (["run-1/checkpoint-40/trainer_state.json"], {"run-1/checkpoint-40": (40, True)}),
        (["checkpoint-50/model.safetensors"], {"checkpoint-50": (50, False)}),
        (["checkpoint-50/pytorch_model_fsdp_0/.metadata"], {"checkpoint-50": (50, False)}),
        (["checkpoint-50/unet/x.safetensors", "checkpoint-50/random_states_0.pkl"], {"checkpoint-50": (50, True)}),
        (["trainer_state.json", "model.safetensors"], {}),
        (["step-100/__0_0.distcp", "step-100/.metadata"], {"step-100": (100, True)}),
        (["step-100/__0_0.distcp"], {}),
        (["latest/__0_0.distcp", "latest/.metadata"], {"latest": (None, True)}),
        (["7/_CHECKPOINT_METADATA", "7/default/commit_success.txt"], {"7": (7, True)}),
        (["7.orbax-checkpoint-tmp/_CHECKPOINT_METADATA"], {}),
        (["step_9/commit_success.txt", "step_9/d/0"], {"step_9": (9, True)}),
        (["version_3/epoch=1-step=20.ckpt"], {"version_3/epoch=1-step=20.ckpt": (20, True)}),
        (["model.05-0.32.keras"], {"model.05-0.32.keras": (5, True)}),
        (["model.weights.h5"], {"model.weights.h5": (None, True)}),
        (["checkpoint_3.pth.tar"], {"checkpoint_3.pth.tar": (3, True)}),
        ([".step-5.ckpt", ".hidden/step-5.ckpt", ".spotladder/commit-1/step-5.ckpt", "step-5.ckpt.tmp"], {}),
        (["events.out.tfevents.1", "config.json"], {}),
        (
            ["iter_0000100/mp_rank_00/model_rng.pt", "iter_0000100/mp_rank_01/model_rng.pt"],
            {"iter_0000100": (100, True)},
        ),
        (
            ["global_step_10/actor/model_world_size_8_rank_0.pt", "global_step_10/data.pt"],
            {"global_step_10": (10, True)},
        ),
        (["global_step10/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"], {"global_step10": (10, False)}),
        (["step-00001000/lit_model.pth", "step-00001000/log"], {"step-00001000/lit_model.pth": (1000, True)}),
        (["step_2/epoch_3.pt", "step_2/epoch_4.pt"], {"step_2/epoch_3.pt": (3, True), "step_2/epoch_4.pt": (4, True)}),
        (["ep1-ba20-rank0.pt", "ep1-ba20-rank1.pt"], {"ep1-ba20-rank1.pt": (20, True)}),
        (["last.weights.h5", "training_metadata.json"], {"last.weights.h5": (None, True)}),
        (
            ["ckpt-3.index", "ckpt-3.data-00000-of-00001", "checkpoint"],
            {"ckpt-3": (3, True), "checkpoint": (None, True)},
        ),
        (["cp-0004.ckpt.index", "cp-0004.ckpt.data-00001-of-00002"], {"cp-0004.ckpt": (4, True)}),
        (
            ["rl_model_800_steps.zip", "rl_model_vecnormalize_800_steps.pkl"],
            {"rl_model_vecnormalize_800_steps.pkl": (800, True)},
        ),
        (["model_30.ubj"], {"model_30.ubj": (30, True)}),
        (["model_3.pdparams", "model_3.pdopt"], {"model_3.pdopt": (3, True)}),
        (["model.txt.snapshot_iter_20"], {"model.txt.snapshot_iter_20": (20, True)}),
        (["catboost_info/experiment.cbsnapshot"], {"catboost_info/experiment.cbsnapshot": (None, True)}),
        (["checkpoint_100"], {"checkpoint_100": (100, True)}),
        (["best_model.zip", "latest.pkl"], {"latest.pkl": (None, True)}),
        (
            ["data.zip", "words.pkl", "model.safetensors", "faiss.index", "checkpoint_3.log", "epoch-3.png", "batch_1"],
            {},
        ),
        (
            ["epoch_0/model-00001-of-00002.safetensors", "epoch_0/config.json"],
            {"epoch_0": (0, False)},
        ),
        (["checkpoint-50/model.safetensors", "checkpoint-50/optimizer.pt"], {"checkpoint-50": (50, True)}),
        (["checkpoint-50/model.safetensors", "checkpoint-50/optimizer.bin"], {"checkpoint-50": (50, False)}),
        (["epoch_5/model.safetensors", "epoch_5/optimizer.bin"], {"epoch_5": (5, False)}),
        (["checkpoint-50/model.safetensors", "checkpoint-50/rng_state_1.pth"], {"checkpoint-50": (50, False)}),
        (["checkpoint-50/training_args.bin", "checkpoint-50/optimizer.pt"], {"checkpoint-50": (50, False)}),
    ],
)
def test_the_marks_of_each_framework(
    tmp_path: Path, files: list[str], expected: dict[str, tuple[int | None, bool]]
) -> None:
    lay_out(tmp_path, *files)
    assert found(tmp_path) == expected


def test_the_last_step_of_a_trainer_is_known(tmp_path: Path) -> None:
    lay_out(tmp_path, "checkpoint-40/trainer_state.json", "checkpoint-40/a/b")
    saved = only(tmp_path)
    assert (saved.total, saved.roots, len(saved.files)) == (100, ("checkpoint-40",), 2)


@pytest.mark.parametrize(
    "text",
    [
        '{"global_step": 4',
        "[]",
        '{"max_steps": 9}',
        '{"global_step": null}',
        '{"global_step": Infinity}',
        '{"global_step": -1}',
        '{"global_step": 1e30}',
    ],
)
def test_a_state_that_is_being_written_is_not_complete(tmp_path: Path, text: str) -> None:
    lay_out(tmp_path, "checkpoint-40/model.safetensors")
    (tmp_path / "checkpoint-40" / "trainer_state.json").write_text(text)
    assert found(tmp_path) == {"checkpoint-40": (40, False)}


def test_deepspeed_names_the_newest_checkpoint_beside_it(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        lay_out(tmp_path, f"out/global_step{step}/mp_rank_00_model_states.pt")
    assert set(found(tmp_path).values()) == {(5, False), (10, False), (15, False)}
    (tmp_path / "out" / "latest").write_text("global_step10")
    assert found(tmp_path) == {
        "out/global_step5": (5, True),
        "out/global_step10": (10, True),
        "out/global_step15": (15, False),
    }
    roots = {saved.step: saved.roots for saved in saved_in(tmp_path)}
    assert roots[10] == ("out/global_step10", "out/latest")
    assert roots[5] == ("out/global_step5",)
    (tmp_path / "out" / "latest").write_bytes(b"\xff")
    assert set(found(tmp_path).values()) == {(5, False), (10, False), (15, False)}


def test_megatron_names_the_newest_checkpoint_beside_it(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        lay_out(tmp_path, f"out/iter_{step:07}/mp_rank_00/model_optim_rng.pt", f"out/iter_{step:07}/mp_rank_01/x.pt")
    (tmp_path / "out" / "latest_checkpointed_iteration.txt").write_text("10")
    assert set(found(tmp_path).values()) == {(5, True), (10, True), (15, False)}
    assert [saved.roots for saved in saved_in(tmp_path) if saved.step == 10] == [
        ("out/iter_0000010", "out/latest_checkpointed_iteration.txt")
    ]


def test_the_furthest_file_gives_the_step_and_the_name(tmp_path: Path) -> None:
    """The times do not tell it: files that were put back have other ones."""
    for name, step in (("last.pt", 30), ("best.pt", 20)):
        lightning(tmp_path / name, step)
        os.utime(tmp_path / name, (1000 - step, 1000 - step))
    assert found(tmp_path) == {"last.pt": (30, True)}
    for name, step in (("resnet50_last.pt", 3), ("resnet50_best.pt", 2)):
        lightning(tmp_path / "numbered" / name, step)
    assert found(tmp_path / "numbered") == {"resnet50_last.pt": (3, True)}


def test_lightning_writes_the_step_into_its_files(tmp_path: Path) -> None:
    lightning(tmp_path / "last.ckpt", 60)
    lightning(tmp_path / "epoch=03-val_loss=0.25.ckpt", 60)
    saved = only(tmp_path)
    assert (saved.step, set(saved.roots)) == (60, {"last.ckpt", "epoch=03-val_loss=0.25.ckpt"})
    assert saved.complete
    assert saved.proven


def test_a_step_inside_a_file_whose_name_has_none_is_known(tmp_path: Path) -> None:
    """The optimizer has the same name for its own tensors, so the pickle refers to that name when the step comes."""
    tensor = (1, 2)
    state = {"epoch": 3, "model": tensor, "optimizer": {"step": tensor}}
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        state |= {"step" if protocol % 2 else "iter_num": 20}
        with zipfile.ZipFile(tmp_path / "last.pt", "w") as archive:
            archive.writestr("last/data.pkl", pickle.dumps(state, protocol))
        assert only(tmp_path).step == 20
    lay_out(tmp_path, "optimizer.pt")
    assert set(only(tmp_path).roots) == {"last.pt", "optimizer.pt"}


def test_a_large_pickle_is_not_read_as_a_whole(tmp_path: Path) -> None:
    """A buffer of experiences in NumPy's arrays has gigabytes, which PyTorch writes into the pickle."""
    tracemalloc.start()
    with zipfile.ZipFile(tmp_path / "last.pt", "w") as archive:
        archive.writestr("last/data.pkl", pickle.dumps({"step": 20, "buffer": "x" * 4 * LARGEST_STATE}, 2))
    tracemalloc.reset_peak()
    assert only(tmp_path).step == 20
    assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST_STATE
    tracemalloc.stop()


def test_a_compressed_file_that_is_damaged_inside_has_no_step(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "last.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("last/data.pkl", pickle.dumps({"step": 20, "epochs": list(range(1000))}))
        start = archive.infolist()[0].FileHeader()
    content = bytearray((tmp_path / "last.pt").read_bytes())
    content[len(start) : len(start) + 100] = b"\xff" * 100
    (tmp_path / "last.pt").write_bytes(content)
    assert saved_in(tmp_path)[-1].step is None


def test_a_zip_file_without_its_end_is_torn(tmp_path: Path) -> None:
    lightning(tmp_path / "step-60.ckpt", 60)
    whole = (tmp_path / "step-60.ckpt").read_bytes()
    (tmp_path / "step-60.ckpt").write_bytes(whole[:-30])
    assert not only(tmp_path).complete
    lay_out(tmp_path, "checkpoint-60/trainer_state.json")
    (tmp_path / "checkpoint-60" / "rng_state_1.pth").write_bytes(whole[:-30])
    assert not saved_in(tmp_path)[-1].complete


def test_a_file_without_a_mark_is_complete_but_not_proven(tmp_path: Path) -> None:
    lay_out(tmp_path, "ckpt-3.weights.h5")
    assert only(tmp_path).complete
    assert not only(tmp_path).proven


def test_a_mark_proves_nothing_while_its_folder_is_overwritten(tmp_path: Path) -> None:
    for name, at in (("latest/.metadata", 2), ("latest/__0_0.distcp", 1)):
        lay_out(tmp_path, name)
        os.utime(tmp_path / name, (at, at))
    assert only(tmp_path).proven
    os.utime(tmp_path / "latest" / "__0_0.distcp", (3, 3))
    assert (only(tmp_path).complete, only(tmp_path).proven) == (True, False)


def test_the_newest_is_the_last(tmp_path: Path) -> None:
    lay_out(tmp_path, "step-10.pt", "step-20.pt", "step-30.pt")
    for name, at in (("step-10.pt", 300), ("step-20.pt", 100), ("step-30.pt", 200)):
        os.utime(tmp_path / name, (at, at))
    assert [saved.step for saved in saved_in(tmp_path)] == [20, 30, 10]


def test_links_to_files_are_followed_and_links_to_folders_are_not(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    lay_out(elsewhere, "weights", "step-9.ckpt")
    lay_out(folder, "checkpoint-40/trainer_state.json")
    (folder / "checkpoint-40" / "weights").symlink_to(elsewhere / "weights")
    (folder / "checkpoint-40" / "cache").symlink_to(elsewhere)
    (folder / "checkpoint-40" / "gone").symlink_to(elsewhere / "gone")
    (folder / "loop").symlink_to(folder)
    saved = only(folder)
    assert {file.name: file.size for file in saved.files} == {
        "checkpoint-40/trainer_state.json": len(STATE),
        "checkpoint-40/weights": 8,
    }
    assert set(saved.left_out) == {"checkpoint-40/cache", "checkpoint-40/gone"}


def test_a_folder_that_does_not_exist_has_none(tmp_path: Path) -> None:
    assert saved_in(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("checkpoint-500", 500),
        ("epoch=1-step=20.ckpt", 20),
        ("iter_0000100", 100),
        ("global_step300", 300),
        ("epoch-3.pt", 3),
        ("100", 100),
        ("resnet50-10.pth", 10),
        ("best.weights.h5", None),
        ("v1.5-final.pt", None),
        ("last.ckpt", None),
        ("version_2/last.ckpt", None),
        ("optimizer_rank3.pt", None),
    ],
)
def test_the_number_in_a_name(name: str, number: int | None) -> None:
    assert number_of(name) == number
