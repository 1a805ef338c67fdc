"""Trains three epochs on the Keras backend of the environment.

    KERAS_BACKEND=jax python tests/backend_run.py DISTRIBUTE START.npz END.npz

Training begins from START.npz, which is written where it is missing. END.npz
gets all weights, the history, evaluations, predictions, and on how many
devices the variables lie. No view rounds to 8-bit levels, which would turn the
last digit of a float into a whole level; tests/augment compares those.
"""

import os
import sys

import keras
import numpy as np
import tiny

import alim_keras
from alim_keras import backend
from alim_keras.networks import cifar

COUNT, BATCH = 28, 8
SHAPE = (12, 12, 3)


def network():
    """What a ResNet is made of."""
    inputs = keras.Input(SHAPE)
    x = cifar.norm_relu(cifar.conv(inputs, 6, 3, 1, "a"), "a_bn", "a_relu")
    x = cifar.norm_relu(cifar.conv(x, 8, 3, 2, "b"), "b_bn", "b_relu")
    return keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(x))


def build():
    return tiny.pico(
        COUNT,
        network=network,
        learning_rate=0.01,
        queue_size=20,
        key_momentum=0.9,
        prototype_momentum=0.9,
        weight_decay=1e-2,
        scores_from="classifier",
        views=alim_keras.augment.Views(num_operations=0),
        compile_options={"run_eagerly": False},
    )


def train(model, epochs, **options):
    images, candidates, labels = tiny.examples(COUNT, shape=SHAPE)
    alim = alim_keras.callbacks.ALIM(
        noise_rate=0.3, warmup_epochs=1, labels=labels, **options
    )
    data = tiny.batches(
        images, candidates, BATCH, seed=3, shard=backend.process()
    )
    return tiny.fit(model, data, epochs, callbacks=[alim])


def evaluations(model):
    """Numbers of `evaluate` and `predict`, batch by batch and at once."""
    # Batches of 8, 8 and 1: fewer rows than devices.
    images, candidates, _ = tiny.examples(17, seed=8, shape=SHAPE)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    found = model.evaluate(data, verbose=0, return_dict=True)
    return {
        **{f"evaluate {name}": value for name, value in found.items()},
        "predict": model.predict(data, verbose=0),
        "predict images": model.predict(images, verbose=0),
    }


def where(variable):
    """On how many devices a variable lies whole, and with equal values."""
    if keras.config.backend() != "jax":
        return 1
    shards = variable.value.addressable_shards
    copies = [np.asarray(shard.data) for shard in shards]
    for copy in copies:
        np.testing.assert_array_equal(copy, copies[0], variable.path)
        assert copy.shape == tuple(variable.shape), variable.path
    return len(copies)


def main(distribute, start, end):
    replicas = 2 if distribute == "mirrored" else None
    scope, count = backend.make_strategy(distribute, replicas)
    assert count == (1 if distribute == "none" else 2)
    with scope:
        model = build()
    if not os.path.exists(start):
        np.savez(start, *model.get_weights())
    with np.load(start) as kept:
        model.set_weights([kept[name] for name in kept.files])
    history = train(model, 3, norm="scale")
    variables = model.variables + model.optimizer.variables
    everything = {
        **{f"history {k}": v for k, v in history.items()},
        **{f"{i} {v.path}": v.numpy() for i, v in enumerate(variables)},
        **evaluations(model),
    }
    copies = [where(v) for v in model.variables + model.optimizer.variables]
    # The end of an epoch that infers scores for the whole training set.
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)
    # Global batches, of which each process takes its part.
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    train(model, 1, update="epoch", data=data)
    np.savez(
        end,
        copies=copies,
        lam=model.pseudo_label_table.lam.numpy(),
        labels=model.pseudo_labels.numpy(),
        **everything,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
