"""Tiny models and data shared by the tests of the core."""

import contextlib
import functools

import keras
import numpy as np
from hypothesis import strategies as st

import alim_keras

# Compile options for steps of shapes that hardly any other test has. On JAX
# each operation of an eager step is compiled for each shape, which takes
# longer than to compile the step.
RARE_SHAPE = {"run_eagerly": keras.config.backend() == "tensorflow"}
CLASSES = 3
SHAPE = (4, 4, 1)


def examples(count=24, seed=0, shape=SHAPE):
    """Random images, sets of one or two of three classes, and true labels.

    About a third of the labels lie outside their set.
    """
    stream = np.random.default_rng(seed)
    images = stream.integers(0, 256, (count, *shape)).astype("uint8")
    labels = stream.integers(0, CLASSES, count)
    candidates = np.zeros((count, CLASSES), "float32")
    for i in range(count):
        first = labels[i] if stream.random() < 0.7 else (labels[i] + 1) % 3
        candidates[i, first] = 1.0
        if stream.random() < 0.5:
            # Never the true label where the set is a wrong one.
            candidates[i, (labels[i] + 2) % 3] = 1.0
    return images, candidates, labels


def grid(batch, classes, seed):
    """Probabilities and candidate sets; sets of 1 and of C occur."""
    stream = np.random.default_rng(seed)
    p = stream.dirichlet(np.ones(classes), batch).astype("float32")
    s = (stream.random((batch, classes)) < 0.5).astype("float32")
    s[np.arange(batch), stream.integers(0, classes, batch)] = 1.0
    return p, s


@st.composite
def rows(draw, classes=4):
    """A row of P, possibly with tiny entries and exact zeros, and its S."""
    entry = st.one_of(
        st.just(0.0),
        st.floats(-30.0, 0.0).map(lambda e: 10.0**e),
        st.floats(0.01, 1.0),
    )
    values = draw(st.lists(entry, min_size=classes, max_size=classes))
    sets = st.lists(st.booleans(), min_size=classes, max_size=classes)
    members = draw(sets.filter(any))
    p = np.array([values], "float32")
    total = p.sum()
    if total > 0:
        p = (p / total).astype("float32")
    return p, np.array([members], "float32")


def backbone(batch_norm=False, shape=SHAPE, features=5):
    """Flatten, dense, tanh; smooth, so that differences give gradients."""
    inputs = keras.Input(shape)
    x = keras.layers.Flatten()(inputs)
    x = keras.layers.Dense(features, activation="tanh")(x)
    if batch_norm:
        x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return keras.Model(inputs, x)


def flat(shape):
    """The pixels themselves as features."""
    return keras.Sequential([keras.Input(shape), keras.layers.Flatten()])


class Plain(alim_keras.PartialLabelModel):
    """The base class used as it is: a classifier and its table."""


def build(
    method,
    network=backbone,
    count=24,
    learning_rate=0.1,
    momentum=0.9,
    metrics=True,
    compile_options=None,
    **options,
):
    """A compiled method with the same initial weights every time.

    `network` is a function that makes the backbone. It runs eagerly unless
    `compile_options` say otherwise: on networks this small that takes less
    time than to trace.
    """
    keras.utils.set_random_seed(1)
    model = method(network(), CLASSES, count, **options)
    kind = alim_keras.metrics.CandidateAccuracy
    model.compile(
        optimizer=keras.optimizers.SGD(learning_rate, momentum=momentum),
        metrics=[kind()] if metrics else None,
        **(compile_options or {"run_eagerly": True}),
    )
    return model


def pico(count=24, batch_norm=False, method=alim_keras.PiCO, **options):
    """A PiCO, or a `method` that is a subclass, by `build`."""
    small = {"embedding_dim": 4, "queue_size": 10, "count": count}
    small["network"] = functools.partial(backbone, batch_norm)
    return build(method, **{**small, **options})


def plain(network=backbone, count=24, **options):
    """A `Plain` by `build`; a step of it is cheaper than PiCO's."""
    return build(Plain, network, count, **options)


def batch(size=6):
    """The first examples as a training batch `(x, y)`."""
    images, candidates, _ = examples(24)
    x = {"image": images[:size], "index": np.arange(size)}
    return x, candidates[:size]


def batches(images, candidates, batch_size, **options):
    """The training data set of `alim_keras.data`."""
    return alim_keras.data.train_dataset(
        images, candidates, batch_size=batch_size, **options
    )


def as_numpy(dataset):
    """The batches of one pass over a data set of `alim_keras.data`."""
    to_numpy = keras.ops.convert_to_numpy
    return [keras.tree.map_structure(to_numpy, batch) for batch in dataset]


def fit(model, data, epochs=1, **options):
    """`fit` without the noise; returns the history's dict."""
    # Keras warns about its own default of `shuffle` for a tf.data.Dataset.
    options = {"verbose": 0, "shuffle": False, **options}
    return model.fit(data, epochs=epochs, **options).history


def fit_with_alim(
    images,
    sets,
    table="dense",
    update="step",
    epochs=4,
    learning_rate=0.02,
    scope=None,
    **alim,
):
    """Returns a `Plain` trained with ALIM in a compiled step, and its history.

    `table` may be a function that makes one, within `scope`.
    """
    count, classes = sets.shape
    with scope or contextlib.nullcontext():
        keras.utils.set_random_seed(1)
        table = table if isinstance(table, str) else table()
        model = Plain(backbone(), classes, count, table=table)
        model.compile(keras.optimizers.SGD(learning_rate), jit_compile=False)
    data = None
    if update == "epoch":
        data = alim_keras.data.eval_dataset(images, sets, classes, 7)
    alim = alim_keras.callbacks.ALIM(
        warmup_epochs=1, update=update, data=data, **alim
    )
    history = fit(model, batches(images, sets, 8), epochs, callbacks=[alim])
    return model, history


def snapshot(model):
    """All variables as numpy arrays, by position and path."""
    return [(v.path, v.numpy()) for v in model.variables]


def assert_same(first, second, atol=0.0):
    """Raises unless two snapshots hold the same values."""
    assert len(first) == len(second)
    for (path, a), (_, b) in zip(first, second):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol, err_msg=path)
