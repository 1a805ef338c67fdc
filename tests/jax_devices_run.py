"""Trains three epochs on JAX, on one device or on two; see test_jax_devices.

    python tests/jax_devices_run.py DISTRIBUTE END.npz

END.npz gets all weights, the history, evaluations, predictions, and on how
many devices the variables lie.
"""

import sys

import numpy as np
import tiny

import alim_keras
from alim_keras import backend

COUNT, BATCH = 28, 8
# Batches of 8, 8 and 1: fewer rows than devices.
EVALUATED = 17


def build(scope, **options):
    with scope:
        return tiny.pico(
            COUNT,
            batch_norm=True,
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


def train(model):
    images, candidates, labels = tiny.examples(COUNT)
    here = backend.process_index(), backend.process_count()
    return tiny.fit(
        model,
        tiny.batches(images, candidates, BATCH, seed=3, shard=here),
        epochs=3,
        callbacks=[
            alim_keras.callbacks.ALIM(
                "scale", noise_rate=0.3, warmup_epochs=1, labels=labels
            ),
        ],
    )


def evaluations(model):
    """Numbers of `evaluate` and `predict`, batch by batch and at once."""
    images, candidates, _ = tiny.examples(EVALUATED, seed=8)
    data = alim_keras.data.eval_dataset(images, candidates, 3, BATCH)
    found = model.evaluate(data, verbose=0, return_dict=True)
    return {
        **{f"evaluate {name}": value for name, value in found.items()},
        "predict": model.predict(data, verbose=0),
        "predict images": model.predict(images, verbose=0),
    }


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
    images, candidates, _ = tiny.examples(COUNT)
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
        **evaluations(model),
    }
    copies = [where(v) for v in model.variables + model.optimizer.variables]
    # Global batches, of which each process takes its part.
    lam, labels = update_all(model)
    np.savez(end, copies=copies, lam=lam, labels=labels, **everything)


if __name__ == "__main__":
    main(*sys.argv[1:])
