"""Handwritten digits on two workers: TensorFlow's all-reduce, in Ray Train, on capacity that may be lost any time."""

import argparse
import time

from spotladder import train


def read_digits():
    """scikit-learn's bundled 1,797 images of 8 × 8 pixels: (images, labels) for training and for testing."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype("float32").reshape(-1, 8, 8, 1)
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def build(total):
    import tensorflow as tf
    from keras import Input, Sequential, layers, optimizers

    convolutions = [layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(2)]
    model = Sequential([Input((8, 8, 1)), *convolutions, layers.Flatten(), layers.Dropout(0.3), layers.Dense(10)])
    optimizer = optimizers.Adam(optimizers.schedules.CosineDecay(1e-3, total))
    optimizer.build(model.trainable_variables)

    def step(images, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses)  # over all workers
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)  # all-reduces
        return loss

    return model, optimizer, step


def loop(config):
    begun, job, total = time.monotonic(), train.current(), config["steps"]
    import tensorflow as tf

    tf.keras.utils.set_random_seed(7)
    tf.config.experimental.enable_op_determinism()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model, optimizer, step_of_one = build(total)
    images, test_images, labels, test_labels = read_digits()
    mine = tf.data.Dataset.from_tensor_slices((images, labels)).shard(job.world_size, job.rank)
    batches = iter(mine.shuffle(len(images), seed=7).repeat().batch(config["batch"]))

    @tf.function(autograph=False)
    def step_of_all(*batch):
        return strategy.reduce("SUM", strategy.run(step_of_one, args=batch), axis=None)

    state, start = train.tensorflow.State(model=model, optimizer=optimizer, data=batches), 0
    with job.resume() as found:  # the newest commit, or None at the first start
        if found:
            state.restore(found)
            start = found.step
    pause = config["pace"] * (time.monotonic() - begun)  # in proportion to the start, so losses come alike anywhere
    for step in job.steps(start, total):
        loss = step_of_all(*next(batches))
        time.sleep(pause)  # slows the demo down
        if job.should_commit(step):
            with job.commit(step, {"loss": float(loss)}) as folder:
                state.save(folder)
    accuracy = (model(test_images).numpy().argmax(1) == test_labels).mean()
    if job.rank == 0:
        print(f"test accuracy {accuracy:.4f} after {total} steps")


if __name__ == "__main__":
    from ray.train import ScalingConfig

    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {"steps": 500, "batch": 64, "workers": 2, "pace": 0.0}.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    scaling, run = ScalingConfig(num_workers=options.workers), train.ray_run_config()
    train.tensorflow.trainer(loop, train_loop_config=vars(options), scaling_config=scaling, run_config=run).fit()
