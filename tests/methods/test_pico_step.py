"""PiCO's training step against the slow one, state by state."""

import numpy as np
import pytest
import references_methods
import tiny
from pico_steps import COUNT
from pico_steps import OPTIONS
from pico_steps import SHAPE
from pico_steps import batches
from pico_steps import compare


def build(**options):
    """A PiCO and its slow twin."""
    model = tiny.pico(
        COUNT,
        network=lambda: tiny.backbone(shape=SHAPE, features=3),
        learning_rate=0.2,
        momentum=0.9,
        **{**OPTIONS, **options},
    )
    return model, references_methods.SlowPiCO(model, 0.2, 0.9)


def run(model, slow, phi=0.9, lam=0.0, norm="onehot", factor=1.0, epoch=2):
    """Three steps of both; compares everything after each."""
    table = model.pseudo_label_table
    table.momentum.assign(phi)
    table.lam.assign(lam)
    table.use_onehot.assign(float(norm == "onehot"))
    table.scale_factor.assign(factor)
    model.epoch.assign(epoch)
    slow.phi, slow.lam, slow.epoch = phi, lam, epoch
    slow.norm, slow.scale_factor = norm, factor
    for weak, strong, index, candidates in batches():
        compare(model, slow, (weak, strong), index, candidates)


CLASSIFIER = {"scores_from": "classifier"}
COMPILED = {**CLASSIFIER, "compile_options": {"jit_compile": False}}


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({}, {}),
        ({}, {"lam": 0.4, "norm": "scale"}),
        (CLASSIFIER, {"lam": 0.4}),
        (COMPILED, {"lam": 0.3, "norm": "scale", "factor": 0.5, "phi": 0.0}),
        ({"pseudo_label_start": 3}, {}),
        ({"pseudo_label_start": 4}, {}),
        ({"mixup_weight": 0.0, "contrastive_weight": 0.0}, {}),
    ],
)
def test_three_steps_equal_the_slow_ones(options, state):
    model, slow = build(**options)
    run(model, slow, **state)


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_the_limits_of_the_key_momentum(momentum):
    model, slow = build(key_momentum=momentum)
    before = model.key_encoder.get_weights()
    query = model.backbone.get_weights() + model.projection.get_weights()
    weak, strong, index, candidates = next(batches())
    model.train_on_batch(
        {"weak": weak, "strong": strong, "index": index}, candidates
    )
    # 0: the query encoder as it was when the keys were made, that is before
    # its gradient step. 1: unmoved.
    expected = query if momentum == 0.0 else before
    for got, value in zip(model.key_encoder.get_weights(), expected):
        np.testing.assert_array_equal(got, value)
    moved = model.backbone.get_weights() + model.projection.get_weights()
    assert max(np.abs(a - b).max() for a, b in zip(moved, query)) > 1e-4


def test_weights_of_examples_scale_their_losses():
    model, slow = build()
    weight = np.array([2.0, 0.0, 0.5, 1.0], "float32")
    weak, strong, index, candidates = next(batches())
    model.pseudo_label_table.momentum.assign(0.9)
    slow.phi = 0.9
    # Table, prototypes and queue take all examples in.
    compare(model, slow, (weak, strong), index, candidates, weight=(weight,))
