"""One of two processes that write a tensor sharded over both: `sharded.py RANK PORT FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path


def main(rank: int, port: int, folder: Path) -> None:
    import torch
    from torch.distributed import destroy_process_group, init_process_group
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    from spotladder.errors import InvalidSpec
    from spotladder.train.torch import State, save_sharded

    init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    weight = distribute_tensor(torch.arange(16.0).reshape(8, 2), mesh, [Shard(0)])
    folder.mkdir()
    save_sharded(folder, {"weight": weight})
    model = torch.nn.Linear(2, 8, bias=False)
    model.weight = torch.nn.Parameter(weight)
    if rank == 0:
        try:
            State(model=model).save(folder)
        except InvalidSpec as error:
            assert "model.weight: is sharded" in str(error)  # noqa: PT017 – no pytest in this process
        else:
            raise AssertionError("State must reject a sharded tensor")
    destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
