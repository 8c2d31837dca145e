"""train.torch: saving and restoring, rejected parts, samplers, sharded state, and copies of tensors in the host's
memory. With a GPU, the same tensors are copied from there too."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy
import pytest

from spotladder.errors import CheckpointCorrupt, InvalidSpec
from spotladder.train import randomness, writing
from spotladder.train.snapshot import Snapshots, tensors
from spotladder.train.torch import Sampler, State, restore_sharded, save_sharded
from tests.train import builders

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))
DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.int64, torch.bool]


def parts(width: int = 3) -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.BatchNorm1d(width))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    return {"model": model, "optimizer": optimizer, "scheduler": scheduler, "sampler": Sampler(20, 4)}


def trained() -> dict[str, Any]:
    made = parts()
    batches = iter(made["sampler"])
    for _ in range(3):
        next(batches)
        made["model"](torch.rand(4, 2)).sum().backward()
        made["optimizer"].step()
        made["scheduler"].step()
    return made


def test_everything_is_restored(tmp_path: Path) -> None:
    made = trained()
    State(**made).save(tmp_path)
    drawn = torch.rand(2)
    again = parts()
    State(**again).restore(tmp_path)
    assert torch.equal(torch.rand(2), drawn)
    for old, new in zip(made["model"].state_dict().values(), again["model"].state_dict().values(), strict=True):
        assert torch.equal(old, new)
    assert str(made["optimizer"].state_dict()) == str(again["optimizer"].state_dict())
    assert again["scheduler"].get_last_lr() == [0.0125]
    assert next(iter(again["sampler"])) == next(iter(made["sampler"]))


def test_a_commit_has_the_state_of_its_block(tmp_path: Path) -> None:
    """The files are written after the block, while the program changes the weights."""
    job, made = builders.job(tmp_path), trained()
    state, weight = State(**made), made["model"][0].weight
    with torch.no_grad():
        for step in (1, 2):
            weight.fill_(step)
            with job.commit(step) as folder:
                state.save(folder)
                assert [file.name for file in folder.iterdir()] == ["rank-0.random.json"]
            weight.fill_(-1)
            job.flush()
    job.close()
    with builders.job(tmp_path, attempt=2).resume() as found:
        assert found is not None
        State(**made).restore(found)
    assert torch.equal(weight, torch.full_like(weight, 2))


def test_a_part_that_cannot_be_read_back_is_reported_by_the_next_call(tmp_path: Path) -> None:
    class Odd(Sampler):
        def state_dict(self) -> Any:
            return {"path": Path("x")}

    job = builders.job(tmp_path)
    with job.commit(1) as folder:
        State(odd=Odd(8, 2)).save(folder)
    with pytest.raises(InvalidSpec, match=r"rank-0.pt: a state_dict holds pathlib"):
        job.flush()


def test_without_memory_for_a_copy_the_files_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spotladder.memory.available", lambda: 0)
    job = builders.job(tmp_path)
    with job.commit(1) as folder:
        State(**parts()).save(folder)
        assert (folder / "state.pt").exists()
    job.flush()


def test_random_state_is_on_the_cpu_whatever_the_default_device_is(tmp_path: Path) -> None:
    """As with `torch.set_default_device("cuda")`."""
    randomness.save(tmp_path, 0)
    expected = torch.rand(3)
    with torch.device("meta"):
        randomness.restore(tmp_path, 0)
    assert torch.equal(torch.rand(3), expected)


def test_only_rank_0_writes_replicated_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOTLADDER_RANK", "1")
    monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "2")
    State(**parts()).save(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"rank-1.pt", "rank-1.random.json"}


def test_other_ranks_write_nothing_in_a_replicated_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOTLADDER_RANK", "1")
    monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "2")
    with writing.deferred(tmp_path, replicated=True) as writes:
        State(**parts()).save(tmp_path)
    assert (list(tmp_path.iterdir()), writes) == ([], [])


def test_unsupported_parts_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="step: int has no state_dict"):
        State(step=3)

    class Odd(Sampler):
        def state_dict(self) -> Any:
            return {"path": Path("x")}

    with pytest.raises(InvalidSpec, match=r"rank-0.pt: a state_dict holds pathlib"):
        State(odd=Odd(8, 2)).save(tmp_path)


def test_a_type_that_is_only_partly_allowed_is_rejected_when_it_is_saved(tmp_path: Path) -> None:
    """PyTorch names two types of a number of NumPy, and needs three to read it."""
    number = numpy.float64(2)
    named = [numpy.dtype, number.__reduce__()[0]]

    class Best(Sampler):
        def state_dict(self) -> Any:
            return {**super().state_dict(), "best": number}

    with torch.serialization.safe_globals(named), pytest.raises(InvalidSpec, match=r"rank-0.pt: .* read back"):
        State(best=Best(8, 2)).save(tmp_path)
    with torch.serialization.safe_globals([*named, type(numpy.dtype("float64"))]):
        State(best=Best(8, 2)).save(tmp_path)
        State(best=Best(8, 2)).restore(tmp_path)


def test_a_checkpoint_of_another_program_is_rejected(tmp_path: Path) -> None:
    made = parts()
    State(**made).save(tmp_path)
    with pytest.raises(CheckpointCorrupt, match=r"state.pt: model does not match this program's"):
        State(**parts(4)).restore(tmp_path)
    with pytest.raises(CheckpointCorrupt, match="the program has model:"):
        State(model=made["model"], sampler=made["sampler"]).restore(tmp_path)
    with pytest.raises(CheckpointCorrupt, match="sampler does not match"):
        State(**{**parts(), "sampler": Sampler(21, 4)}).restore(tmp_path)


def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    State(**parts()).save(tmp_path)
    file = tmp_path / "state.pt"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CheckpointCorrupt, match=r"state.pt: cannot be read"):
        State(**parts()).restore(tmp_path)


def on(rank: int, size: int, examples: int, batch: int, patch: pytest.MonkeyPatch) -> Sampler:
    patch.setenv("SPOTLADDER_RANK", str(rank))
    patch.setenv("SPOTLADDER_WORLD_SIZE", str(size))
    return Sampler(examples, batch, seed=3)


class TestSampler:
    def test_an_epoch_is_shared_by_the_ranks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shares = [itertools.islice(on(rank, 2, 20, 4, monkeypatch), 2) for rank in (0, 1)]
        seen = [example for share in shares for batch in share for example in batch]
        assert len(seen) == len(set(seen)) == 16

    def test_epochs_differ(self) -> None:
        first, second = itertools.islice(Sampler(8, 8), 2)
        assert sorted(first) == sorted(second) == list(range(8))
        assert first != second

    @pytest.mark.parametrize("done", [1, 2, 3, 7])
    def test_a_restored_sampler_continues(self, done: int) -> None:
        uninterrupted = list(itertools.islice(Sampler(20, 6), 12))
        first = Sampler(20, 6)
        list(itertools.islice(first, done))
        second = Sampler(20, 6)
        second.load_state_dict(first.state_dict())
        assert list(itertools.islice(second, 12 - done)) == uninterrupted[done:]

    def test_a_position_set_during_iteration_applies_to_the_next_batch(self) -> None:
        sampler = Sampler(8, 4)
        batches = iter(sampler)
        first = next(batches)
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 1, "used": 0})
        assert next(batches) == list(itertools.islice(Sampler(8, 4), 3))[2]
        assert first == next(iter(Sampler(8, 4)))

    def test_a_sampler_continues_with_another_number_of_ranks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        both = [on(rank, 2, 24, 4, monkeypatch) for rank in (0, 1)]
        used = [example for sampler in both for example in next(iter(sampler))]
        alone = on(0, 1, 24, 4, monkeypatch)
        alone.load_state_dict(both[0].state_dict())
        rest = [example for batch in itertools.islice(alone, 4) for example in batch]
        assert sorted(used + rest) == list(range(24))

    def test_fewer_examples_than_a_batch_are_rejected(self) -> None:
        with pytest.raises(InvalidSpec, match="3 examples do not fill one batch of 4 on 1 ranks"):
            Sampler(3, 4)


def test_sharded_state_of_one_process(tmp_path: Path) -> None:
    save_sharded(tmp_path, {"weight": torch.ones(2), "epoch": 3})
    state = {"weight": torch.zeros(2), "epoch": 0}
    restore_sharded(tmp_path, state)
    assert state["weight"].tolist() == [1, 1]
    assert state["epoch"] == 3
    with pytest.raises(CheckpointCorrupt, match="sharded state does not match"):
        restore_sharded(tmp_path, {"other": torch.zeros(1)})


def test_sharded_state_is_rejected_if_only_the_files_of_rank_0_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPOTLADDER_RANK", "0")
    monkeypatch.setenv("SPOTLADDER_WORLD_SIZE", "2")
    with (
        writing.deferred(tmp_path, replicated=True),
        pytest.raises(InvalidSpec, match="save_sharded: is sharded over ranks: commit it without replicated=True"),
    ):
        save_sharded(tmp_path, {"weight": torch.ones(2)})


def copied(content: Any, snapshots: Snapshots | None = None) -> Any:
    snapshot = (snapshots or Snapshots()).take(content)
    assert snapshot is not None
    kept: list[Any] = []
    snapshot.write(kept.append)
    return kept[0]


@pytest.fixture(params=["cpu", GPU])
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_is_copied_bit_by_bit(dtype: Any, device: str) -> None:
    source = (torch.rand(3, 4, device=device) * 2).to(dtype)
    before = source.cpu().view(torch.uint8).clone()
    (copy,) = copied([source])
    source.zero_()
    assert (copy.device.type, copy.dtype, copy.shape) == ("cpu", dtype, source.shape)
    assert torch.equal(copy.view(torch.uint8), before)


def test_layouts_and_shared_memory_stay(device: str) -> None:
    base = torch.arange(24.0, device=device).reshape(4, 6)
    content = {"base": base, "columns": base.t(), "part": base[1:3, ::2], "empty": torch.empty(0, device=device)}
    copy = copied(content)
    for name, tensor in content.items():
        assert copy[name].stride() == tensor.stride()
        assert torch.equal(copy[name], tensor.cpu())
    copy["base"][1, 0] = -1
    assert copy["part"][0, 0] == copy["columns"][0, 1] == -1
    assert base[1, 0] == 6


def test_tensors_with_a_view_function_or_a_gradient_are_copied_too(device: str) -> None:
    number = torch.tensor([1 + 2j], device=device)
    weight = torch.nn.Parameter(torch.ones(2, device=device))
    sparse = torch.eye(2, device=device).to_sparse()
    copy = copied([number.conj(), weight, sparse])
    assert copy[0][0] == 1 - 2j
    assert torch.equal(copy[1], torch.ones(2))
    assert torch.equal(copy[2].to_dense(), torch.eye(2))


def test_containers_are_copied_with_their_attributes(device: str) -> None:
    state = torch.nn.BatchNorm1d(2).to(device).state_dict()
    content = {"model": state, "options": {"betas": (0.9, 0.999), "groups": [{"params": [0, 1]}]}}
    copy = copied(content)
    content["options"]["groups"][0]["params"].append(2)
    assert copy["options"] == {"betas": (0.9, 0.999), "groups": [{"params": [0, 1]}]}
    assert isinstance(copy["model"], OrderedDict)
    assert vars(copy["model"]) == vars(state)
    assert [name for name, _ in tensors(copy)] == [name for name, _ in tensors(content)]


def test_a_later_copy_uses_the_memory_of_a_finished_one(device: str) -> None:
    snapshots = Snapshots()
    source = torch.ones(1000, device=device)
    first = copied([source], snapshots)[0].data_ptr()
    assert copied([source], snapshots)[0].data_ptr() == first
    one, two = snapshots.take([source]), snapshots.take([source])
    addresses: list[int] = []
    for snapshot in (one, two):
        assert snapshot is not None
        snapshot.write(lambda content: addresses.append(content[0].data_ptr()))
    assert first in addresses
    assert len(set(addresses)) == 2


def test_a_later_copy_uses_the_memory_of_a_dropped_one(device: str) -> None:
    snapshots = Snapshots()
    source = torch.ones(1000, device=device)
    dropped = snapshots.take([source])
    assert dropped is not None
    address = dropped._content[0].data_ptr()
    del dropped
    assert copied([source], snapshots)[0].data_ptr() == address


def test_memory_of_tensors_that_have_another_size_now_is_not_kept(device: str) -> None:
    snapshots = Snapshots()
    for size in range(1, 9):
        copied([torch.ones(1000, device=device), torch.ones(size * 1000, device=device)], snapshots)
    assert sum(buffer.numel() for buffers in snapshots._idle.values() for buffer in buffers) <= 2 * 9000 * 4


def test_without_free_memory_there_is_no_copy() -> None:
    snapshots = Snapshots(free=lambda: 7999)
    assert snapshots.take([torch.ones(1000)]) is None
    assert snapshots.take([torch.ones(999)]) is not None
    assert Snapshots(free=lambda: None).take([torch.ones(1000)]) is not None


def test_pinned_memory_is_counted_as_pytorch_allocates_it(tmp_path: Path) -> None:
    from spotladder.train.snapshot import _allocated

    assert [_allocated(size, pinned=True) for size in (0, 1, 1000, 1024, 1025)] == [0, 1, 1024, 1024, 2048]
    assert _allocated(1000, pinned=False) == 1000
