"""Copies of PyTorch tensors in the host's memory. With a GPU, the same tensors are copied from there too."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from spotladder.train.snapshot import Snapshots, tensors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))
DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.int64, torch.bool]


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


def test_without_free_memory_there_is_no_copy() -> None:
    snapshots = Snapshots(free=lambda: 7999)
    assert snapshots.take([torch.ones(1000)]) is None
    assert snapshots.take([torch.ones(999)]) is not None
    assert Snapshots(free=lambda: None).take([torch.ones(1000)]) is not None


def test_pinned_memory_is_counted_as_pytorch_allocates_it(tmp_path: Path) -> None:
    from spotladder.train.snapshot import _allocated

    assert [_allocated(size, pinned=True) for size in (0, 1, 1000, 1024, 1025)] == [0, 1, 1024, 1024, 2048]
    assert _allocated(1000, pinned=False) == 1000
