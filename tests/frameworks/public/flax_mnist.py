"""flax, examples/mnist: a net of Flax NNX, and checkpoints of Orbax, the newest of which the program finds."""

from pathlib import Path

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 4, (3, 3), rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.head = nnx.Linear(256, 3, rngs=rngs)

    def __call__(self, pictures):
        return self.head(self.dropout(nnx.relu(self.conv(pictures)).reshape(len(pictures), -1)))


@nnx.jit
def train_step(model, optimizer, pictures, labels):
    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(pictures), labels).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


pictures = np.random.default_rng(1).normal(size=(96, 8, 8, 1)).astype("float32")
labels = np.arange(96) % 3
model = Net(nnx.Rngs(7))
optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
manager = ocp.CheckpointManager(Path("out").absolute(), options=ocp.CheckpointManagerOptions(max_to_keep=2))
start = manager.latest_step() or 0
if start:
    state = nnx.state((model, optimizer))
    nnx.update((model, optimizer), manager.restore(start, args=ocp.args.StandardRestore(state)))
for step in range(start + 1, 37):
    epoch, index = divmod(step - 1, 12)
    order = np.random.default_rng(epoch).permutation(96)[8 * index : 8 * index + 8]
    loss = train_step(model, optimizer, pictures[order], labels[order])
    if step % 3 == 0:
        manager.save(step, args=ocp.args.StandardSave(nnx.state((model, optimizer))))
        manager.wait_until_finished()
    print("step", step, loss, flush=True)
with Path("final").open("wb") as file:
    np.savez(file, *(np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(model, nnx.Param))))
