"""Handwritten digits on two workers: JAX's all-reduce, in Ray Train, on capacity that may be lost at any time."""

import argparse
import time

from spotladder import train


def read_digits():
    """scikit-learn's bundled 1,797 images of 8 × 8 pixels: (images, labels) for training and for testing."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    return train_test_split((pixels / 16).astype("float32"), labels, test_size=0.2, random_state=0, stratify=labels)


def order(step, size, batch):
    """The examples of a step: each epoch has its own order, which is a function of `step` and needs no storage."""
    import numpy as np

    epoch, position = divmod(step - 1, size // batch)
    return np.random.default_rng((7, epoch)).permutation(size)[position * batch :][:batch]


def loop(config):
    begun, job, total, width = time.monotonic(), train.current(), config["steps"], config["width"]
    import jax
    import optax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    same, split = (NamedSharding(Mesh(jax.devices(), "w"), PartitionSpec(*axis)) for axis in ("", "w"))
    images, test_images, labels, test_labels = read_digits()
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-3, total))

    def new():
        keys, shapes = jax.random.split(jax.random.key(7), 3), [(64, width), (width, width), (width, 10)]
        params = [jax.nn.initializers.he_normal()(*one) for one in zip(keys, shapes, strict=True)]
        return {"params": params, "optimizer": optimizer.init(params), "key": jax.random.key(8)}

    def predict(params, images):
        return jax.nn.relu(jax.nn.relu(images @ params[0]) @ params[1]) @ params[2]

    def loss_of(params, key, images, labels):
        kept = jax.random.bernoulli(key, 0.9, images.shape)  # dropout; its key is part of the checkpoint
        return optax.softmax_cross_entropy_with_integer_labels(predict(params, images * kept), labels).mean()

    @jax.jit
    def update(state, images, labels):
        key, use = jax.random.split(state["key"])
        loss, gradients = jax.value_and_grad(loss_of)(state["params"], use, images, labels)  # over all workers
        change, moments = optimizer.update(gradients, state["optimizer"])
        return {"params": optax.apply_updates(state["params"], change), "optimizer": moments, "key": key}, loss

    state, start = jax.jit(new, out_shardings=same)(), 0
    with job.resume() as found:  # the newest commit, or None at the first start
        if found:
            state, start = train.jax.restore(found, like=state), found.step
    pause = config["pace"] * (time.monotonic() - begun)  # in proportion to the start, so losses come alike anywhere
    for step in job.steps(start, total):
        mine = order(step, len(images), config["batch"] * job.world_size)[job.rank :: job.world_size]
        state, loss = update(state, *(jax.make_array_from_process_local_data(split, d[mine]) for d in (images, labels)))
        time.sleep(pause)  # slows the demo down
        if job.should_commit(step):
            with job.commit(step, {"loss": float(loss)}) as folder:
                train.jax.save(folder, state)
    accuracy = (jax.jit(predict)(state["params"], test_images).argmax(1) == test_labels).mean()
    if job.rank == 0:
        print(f"test accuracy {accuracy:.4f} after {total} steps")


if __name__ == "__main__":
    from ray.train import ScalingConfig

    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"steps": 500, "batch": 64, "width": 1024, "workers": 2, "pace": 0.0, "gpu": 0}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    scaling, run = ScalingConfig(num_workers=options.workers, use_gpu=bool(options.gpu)), train.ray_run_config()
    train.jax.trainer(loop, train_loop_config=vars(options), scaling_config=scaling, run_config=run).fit()
