"""keras.io, examples/timeseries/timeseries_weather_forecasting.py: windows of a series from tf.data, shuffled."""

import keras
import numpy as np
import tensorflow as tf

from spotladder import train

keras.utils.set_random_seed(7)
series = np.sin(np.arange(104, dtype="float32") / 5)
windows = np.stack([series[index : index + 8] for index in range(96)])[..., None]
data = tf.data.Dataset.from_tensor_slices((windows, series[8:])).shuffle(96, seed=3).batch(8)
model = keras.Sequential([keras.Input((8, 1)), keras.layers.GRU(4), keras.layers.Dense(1)])
model.compile("rmsprop", "mse")
callbacks = [train.keras.callback()]  # changed
model.fit(data, epochs=3, verbose=0, callbacks=callbacks)
