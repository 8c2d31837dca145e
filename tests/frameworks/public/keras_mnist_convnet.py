"""keras.io, examples/vision/mnist_convnet.py: a convolutional net with dropout."""

import keras
import numpy as np

from spotladder import train

keras.utils.set_random_seed(7)
pictures = np.random.default_rng(1).normal(size=(96, 8, 8, 1)).astype("float32")
labels = np.arange(96) % 10
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.MaxPooling2D(2),
        keras.layers.Flatten(), keras.layers.Dropout(0.5), keras.layers.Dense(10, "softmax"),
    ]
)  # fmt: skip
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [train.keras.callback()]  # changed
model.fit(pictures, labels, batch_size=8, epochs=3, validation_split=0.0, verbose=0, callbacks=callbacks)
