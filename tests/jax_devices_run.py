"""Trains three epochs on JAX, on one device or on two; see test_jax_devices.

    python tests/jax_devices_run.py DISTRIBUTE END.npz

END.npz gets all weights, the history, evaluations, predictions, and on how
many devices the variables lie.
"""

import sys

import jax
import keras
import numpy as np
import tiny

import alim_keras
from alim_keras import backend

COUNT, BATCH = 28, 8
SHAPE = (8, 8, 1)
# Batches of 8, 8, 8 and 4; 8, 8 and 3; 7; 1.
EVALUATED = (28, 19, 7, 1)


def network():
    """A convolution with batch normalisation."""
    inputs = keras.Input(SHAPE)
    x = keras.layers.Conv2D(3, 3, strides=3, use_bias=False)(inputs)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = keras.layers.Activation("tanh")(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(4, activation="tanh")(x))


def build(scope, **options):
    with scope:
        return tiny.pico(
            COUNT,
            network=network,
            learning_rate=0.05,
            queue_size=20,
            key_momentum=0.9,
            prototype_momentum=0.9,
            weight_decay=1e-2,
            mixup_weight=1.0,
            scores_from="classifier",
            compile_options={"run_eagerly": False},
            **options,
        )


class NoCopies(keras.callbacks.Callback):
    """Forbids, within a step, the copies that nobody asked for by name."""

    def __init__(self):
        super().__init__()
        self.steps = 0

    def on_train_batch_begin(self, step, logs=None):
        # The first one is traced, with constants of the host.
        forbidden = "disallow" if self.steps else "allow"
        self._guard = jax.transfer_guard(forbidden)
        self._guard.__enter__()

    def on_train_batch_end(self, step, logs=None):
        self._guard.__exit__(None, None, None)
        self.steps += 1


def train(model):
    images, candidates, labels = tiny.examples(COUNT, shape=SHAPE)
    here = backend.process_index(), backend.process_count()
    return tiny.fit(
        model,
        tiny.batches(images, candidates, BATCH, seed=3, shard=here),
        epochs=3,
        callbacks=[
            NoCopies(),
            alim_keras.callbacks.ALIM(
                "scale", noise_rate=0.3, warmup_epochs=1, labels=labels
            ),
        ],
    )


def evaluations(model):
    """Numbers of `evaluate` and `predict` on sets of several sizes."""
    for count in EVALUATED:
        images, candidates, _ = tiny.examples(count, seed=8, shape=SHAPE)
        data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
        found = model.evaluate(data, verbose=0, return_dict=True)
        for name, value in found.items():
            yield f"evaluate {count} {name}", value
        yield f"predict {count}", model.predict(data, verbose=0)
        yield f"predict {count} images", model.predict(images, verbose=0)
    yield "predict on batch", model.predict_on_batch(images)
    found = model.test_on_batch({"image": images}, candidates)
    yield "test on batch", np.asarray(found)


def where(variable):
    """On how many devices a variable lies whole, and with equal values."""
    shards = variable.value.addressable_shards
    copies = [np.asarray(shard.data) for shard in shards]
    for copy in copies:
        np.testing.assert_array_equal(copy, copies[0], variable.path)
        assert copy.shape == tuple(variable.shape), variable.path
    return len(copies)


def update_all(model):
    """The end of an epoch that infers scores for the whole training set."""
    images, candidates, _ = tiny.examples(COUNT, shape=SHAPE)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    tiny.fit(
        model,
        tiny.batches(images, candidates, BATCH, seed=4),
        callbacks=[
            alim_keras.callbacks.ALIM(
                noise_rate=0.3, warmup_epochs=1, update="epoch", data=data
            )
        ],
    )
    return model.pseudo_label_table.lam.numpy(), model.pseudo_labels.numpy()


def main(distribute, end):
    replicas = 2 if distribute == "mirrored" else None
    scope, count = backend.make_strategy(distribute, replicas)
    assert count == (1 if distribute == "none" else 2)
    model = build(scope)
    history = train(model)
    variables = model.variables + model.optimizer.variables
    everything = {
        **{f"history {k}": v for k, v in history.items()},
        **{f"{i} {v.path}": v.numpy() for i, v in enumerate(variables)},
        **dict(evaluations(model)),
    }
    copies = [where(v) for v in model.variables + model.optimizer.variables]
    # Global batches, of which each process takes its part.
    lam, labels = update_all(model)
    np.savez(end, copies=copies, lam=lam, labels=labels, **everything)


if __name__ == "__main__":
    main(*sys.argv[1:])
