"""Copies of tensors in the host's memory, from which a checkpoint is written while the training continues.

1. A copy is complete when `take` returns: the next step may change the tensors.
2. Whole storages are copied, as torch.save writes them: tensors that share memory also share it in the file.
3. Copies from a GPU are in pinned memory: into pageable memory they are several times slower. It takes long to pin
   memory, so later copies use the buffers of earlier ones that are written or dropped. Buffers of sizes that the state
   no longer has are freed.
4. At most two copies exist: the one that is being uploaded, and the next. If there is not enough free memory for a
   copy, `take` returns None and the caller writes the tensors directly.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spotladder import memory

LARGEST_SHARE = 0.5
"""Largest share of the free memory that the buffers of one copy may use."""


class Snapshots:
    """The copies of one file's state. `free` returns the bytes of memory that are free; by default
    those of this machine or container."""

    def __init__(self, free: Callable[[], int | None] | None = None) -> None:
        self._free = free or memory.available
        self._idle: dict[tuple[int, bool], list[Any]] = {}

    def take(self, content: Any) -> Snapshot | None:
        """A copy of `content`, a tree of dicts, lists and tensors; None without enough free memory."""
        import torch

        copied = dict.fromkeys(id(tensor) for _, tensor in tensors(content))
        storages: dict[int, Any] = {}
        plain = []
        for _, tensor in tensors(content):
            if _is_plain(tensor):
                plain.append(tensor)
                storages[tensor.untyped_storage()._cdata] = tensor  # noqa: SLF001 – torch.save identifies it so too
            else:
                copied[id(tensor)] = tensor.detach().to("cpu", copy=True)
        buffers = self._buffers(storages)
        if buffers is None:
            return None
        for key, tensor in storages.items():
            source = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
            buffers[key].copy_(source, non_blocking=True)
        for device in {tensor.device for tensor in plain if tensor.is_cuda}:
            torch.cuda.current_stream(device).synchronize()
        for tensor in plain:
            host = buffers[tensor.untyped_storage()._cdata].untyped_storage()  # noqa: SLF001
            place = (tensor.storage_offset(), tensor.size(), tensor.stride())
            copied[id(tensor)] = torch.empty(0, dtype=tensor.dtype).set_(host, *place)
        return Snapshot(copy.deepcopy(content, dict(copied)), lambda: self._keep(buffers))

    def _buffers(self, storages: Mapping[int, Any]) -> dict[int, Any] | None:
        """A buffer for each storage: an idle one, or a new one if there is enough free memory for all new ones."""
        import torch

        found: dict[int, Any] = {}
        missing: dict[int, tuple[int, bool]] = {}
        kinds = {key: (tensor.untyped_storage().nbytes(), tensor.is_cuda) for key, tensor in storages.items()}
        for kind in self._idle.keys() - kinds.values():
            self._idle.pop(kind)
        for key, kind in kinds.items():
            if idle := self._idle.get(kind):
                found[key] = idle.pop()
            else:
                missing[key] = kind
        needed = sum(_allocated(size, pinned=pinned) for size, pinned in missing.values())
        free = self._free() if missing else None
        if free is not None and needed > free * LARGEST_SHARE:
            self._keep(found)
            return None
        for key, (size, pinned) in missing.items():
            found[key] = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        return found

    def _keep(self, buffers: Mapping[int, Any]) -> None:
        for buffer in buffers.values():
            self._idle.setdefault((buffer.numel(), buffer.is_pinned()), []).append(buffer)


class Snapshot:
    """A copy of a program's state."""

    def __init__(self, content: Any, release: Callable[[], None]) -> None:
        self._content = content
        self._release = release

    def write(self, save: Callable[[Any], None]) -> None:
        """Call `save` with the copy. The copy is written once."""
        save(self._content)
        self._content = None

    def __del__(self) -> None:
        """Let later copies use the memory, whether this one was written or dropped."""
        self._content = None
        self._release()


def tensors(content: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All tensors in a tree of dicts, lists and tuples, with their names."""
    import torch

    if isinstance(content, torch.Tensor):
        yield name, content
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from tensors(value, f"{name}.{key}".lstrip("."))
    elif isinstance(content, (list, tuple)):
        for index, value in enumerate(content):
            yield from tensors(value, f"{name}.{index}".lstrip("."))


def _is_plain(tensor: Any) -> bool:
    """Whether the tensor is described by its storage, type, sizes and strides."""
    import torch

    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and tensor.device.type in ("cpu", "cuda")
        and not (tensor.requires_grad or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
    )


def _allocated(size: int, *, pinned: bool) -> int:
    """The bytes that PyTorch allocates for a buffer: it rounds pinned memory up to a power of two."""
    return 1 << (size - 1).bit_length() if pinned and size else size
