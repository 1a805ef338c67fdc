"""Feature vectors through the models: training, saving and serving."""

import keras
import numpy as np
import pytest
import tiny

import alim_keras
from alim_keras.data.images import channel_statistics
from alim_keras.methods import METHODS
from alim_keras.networks import mlp

COUNT, FEATURES = 48, 6


def examples():
    """Three classes along the first two features, of odd scales."""
    stream = np.random.default_rng(0)
    labels = np.arange(COUNT) % 3
    vectors = stream.normal(size=(COUNT, FEATURES))
    vectors[:, :2] += 3.0 * np.array([(0, 2), (2, 0), (-2, -2)])[labels]
    scale = np.array([1.0, 100.0, 1e-3, 1.0, 1.0, 0.0])
    vectors = (vectors * scale + 7.0).astype("float32")
    sets = np.eye(3)[labels]
    sets[np.arange(COUNT), (labels + stream.integers(0, 3, COUNT)) % 3] = 1.0
    return vectors.reshape(COUNT, 1, 1, FEATURES), sets, labels


@pytest.fixture(scope="module", params=["rc", "pico"])
def trained(request):
    vectors, sets, _ = examples()
    mean, std = channel_statistics(vectors)
    small = {"embedding_dim": 4, "queue_size": 16}
    model = tiny.build(
        METHODS[request.param],
        lambda: mlp((1, 1, FEATURES), width=16),
        COUNT,
        learning_rate=0.05,
        compile_options={"run_eagerly": False},
        mean=mean,
        std=std,
        views=alim_keras.augment.FeatureViews(mean, std, seed=1),
        **(small if request.param == "pico" else {}),
    )
    tiny.fit(model, tiny.batches(vectors, sets, 16), epochs=8)
    return model


def test_a_constant_feature_and_odd_scales_are_normalised(trained):
    vectors, _, _ = examples()
    result = keras.ops.convert_to_numpy(trained.prepare(vectors))[:, 0, 0]
    np.testing.assert_allclose(result.mean(axis=0), 0.0, atol=1e-3)
    expected = [1.0] * (FEATURES - 1) + [0.0]
    np.testing.assert_allclose(result.std(axis=0), expected, atol=1e-3)


def test_it_learns_from_sets_and_predicts_flat_vectors_alike(trained):
    vectors, _, labels = examples()
    flat = vectors.reshape(COUNT, FEATURES)
    network = trained.inference_network()
    assert network.input_shape == (None, FEATURES)
    expected = trained.predict(vectors, verbose=0)
    # Chance is a third.
    assert (expected.argmax(axis=1) == labels).mean() > 0.55
    for model in (trained, network):
        predicted = model.predict(flat, verbose=0)
        np.testing.assert_allclose(predicted, expected, atol=1e-6)


def test_wrong_vectors_are_named(trained):
    with pytest.raises(ValueError, match="takes vectors of 6 features"):
        trained.prepare(np.zeros((2, 1, 1, 5)))
    with pytest.raises(ValueError, match=r"shape=\(2, 4, 4, 6\)"):
        trained.prepare(np.zeros((2, 4, 4, 6)))
    # A backbone of flat vectors, with the shape to use.
    network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4)])
    with pytest.raises(ValueError, match=r"\(None, 1, 1, features\)"):
        METHODS["rc"](network, 3, COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("name, expected", [("lost", 0.5), ("MSRCv2", 0.4)])
def test_real_sets_are_learnt(shared, name, expected):
    found = np.load(shared / "data" / f"pll_{name}.npz")
    labels = found["labels"].astype(int)
    sets = found["candidates"].astype(bool)
    vectors = found["features"].astype("float32")
    vectors = vectors.reshape(len(labels), 1, 1, -1)
    order = np.random.default_rng(0).permutation(len(labels))
    test, train = np.split(order, [len(labels) // 10])
    mean, std = channel_statistics(vectors[train])
    keras.utils.set_random_seed(0)
    sizes = (mlp(vectors.shape[1:]), sets.shape[1], len(train))
    options = {"mean": mean, "std": std, "weight_decay": 1e-3}
    model = METHODS["proden"](*sizes, **options)
    model.compile(optimizer=keras.optimizers.SGD(0.02, momentum=0.9))
    tiny.fit(model, tiny.batches(vectors[train], sets[train], 64), epochs=20)
    predicted = model.predict(vectors[test], verbose=0).argmax(axis=1)
    assert (predicted == labels[test]).mean() > expected
