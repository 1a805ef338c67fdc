"""Trains twenty steps on the Keras backend of the environment.

    KERAS_BACKEND=jax python tests/parity_run.py START.npz END.npz

The views are those whose numbers are continuous: the operations that round
to 8-bit levels turn the last digit of a float into a whole level, on either
backend. What they do is compared by tests/augment.

Where START.npz is missing it is written, with the initial weights; else the
training begins from it. END.npz gets all weights, the history, and what the
trained model predicts.
"""

import os
import sys

import keras
import numpy as np
import tiny

import alim_keras

COUNT, BATCH, EPOCHS = 32, 8, 5
SHAPE = (12, 12, 3)


def network():
    """Convolution, batch normalisation, pooling: what a ResNet is made of."""
    inputs = keras.Input(SHAPE)
    x = keras.layers.Conv2D(6, 3, padding="same", use_bias=False)(inputs)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = keras.layers.ReLU()(x)
    x = keras.layers.ZeroPadding2D(1)(x)
    x = keras.layers.Conv2D(8, 3, strides=2, use_bias=False)(x)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = keras.layers.ReLU()(x)
    return keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(x))


def main(start, end):
    images, candidates, labels = tiny.examples(COUNT, shape=SHAPE)
    model = tiny.pico(
        COUNT,
        network=network,
        learning_rate=0.003,
        queue_size=30,
        key_momentum=0.9,
        prototype_momentum=0.9,
        weight_decay=1e-3,
        views=alim_keras.augment.Views(num_operations=0),
        compile_options={"run_eagerly": False},
    )
    if not os.path.exists(start):
        np.savez(start, *model.get_weights())
    with np.load(start) as kept:
        model.set_weights([kept[name] for name in kept.files])
    history = tiny.fit(
        model,
        tiny.batches(images, candidates, BATCH, seed=3),
        epochs=EPOCHS,
        callbacks=[
            alim_keras.callbacks.ALIM(
                "scale", noise_rate=0.3, warmup_epochs=1, labels=labels
            )
        ],
    )
    variables = model.variables + model.optimizer.variables
    np.savez(
        end,
        predictions=model.predict(images, verbose=0),
        **{f"history {k}": v for k, v in history.items()},
        **{f"{i} {v.path}": v.numpy() for i, v in enumerate(variables)},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
