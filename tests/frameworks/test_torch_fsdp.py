"""FSDP2 under the Trainer of transformers: each rank saves its shards into the commit, or rank 0 the whole state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.scripts import stop_and_continue, trainer

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(1800)]

IMPORTS = """
from accelerate import PartialState
from accelerate.utils import DistributedType
"""

ON_CPUS = """PartialState().distributed_type = DistributedType.MULTI_XPU
trainer = Trainer("""
"""Accelerate 1.15 ignores `fsdp` on CPUs, where PyTorch's FSDP2 works with gloo: it only has this list of accelerators.
The name of one is enough, since the device stays the CPU."""

WEIGHTS = """
weights = {name: part.full_tensor() for name, part in trainer.model.named_parameters()}
if train.current().rank == 0:
    torch.save(weights, "weights.pt")
torch.distributed.destroy_process_group()  # Without it, a thread of PyTorch sometimes aborts the process at its end.
"""


@pytest.mark.parametrize("kind", ["SHARDED_STATE_DICT", "FULL_STATE_DICT"])
def test_two_ranks_stop_at_a_notice_and_continue(kind: str, tmp_path: Path) -> None:
    # Accelerate shards BERT's embeddings twice, unless only the layers are named.
    config = f"{{'transformer_layer_cls_to_wrap': ['BertLayer'], 'state_dict_type': '{kind}'}}"
    text = trainer(f"fsdp=True, fsdp_config={config}", IMPORTS, {"trainer = Trainer(": ON_CPUS}) + WEIGHTS
    whole, lost = (torch.load(folder / "weights.pt") for folder in stop_and_continue(text, tmp_path))
    assert whole.keys() == lost.keys()
    assert all(torch.equal(whole[name], lost[name]) for name in whole)
