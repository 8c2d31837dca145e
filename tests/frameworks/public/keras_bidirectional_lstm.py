"""keras.io, examples/nlp/bidirectional_lstm_imdb.py: a recurrent net, with a learning rate that falls."""

import keras
import numpy as np

from spotladder import train

keras.utils.set_random_seed(7)
text = np.random.default_rng(1).integers(0, 64, (96, 8))
model = keras.Sequential(
    [
        keras.Input((8,)), keras.layers.Embedding(64, 8), keras.layers.Bidirectional(keras.layers.LSTM(4)),
        keras.layers.Dense(1, "sigmoid"),
    ]
)  # fmt: skip
model.compile(keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 36)), "binary_crossentropy")
callbacks = [train.keras.callback()]  # changed
model.fit(text, text.sum(1) % 2, batch_size=8, epochs=3, verbose=0, callbacks=callbacks)
