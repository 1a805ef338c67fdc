"""Eq. 6's quantile from a histogram, against the exact one."""

import hypothesis
import keras
import numpy as np
import pytest
import references
from hypothesis import strategies as st

from alim_keras import backend
from alim_keras import ops
from alim_keras import quantile

# Half a bin, and the rounding of its edges in float32.
ERROR = quantile.RELATIVE_ERROR + 1e-6
ETAS = (0.01, 0.1, 0.3, 0.5, 0.9, 1.0)


def lam_of(ratios, eta):
    counts = quantile.ratio_counts(np.asarray(ratios, "float32"))
    return float(quantile.adaptive_lambda(counts, eta))


def samples():
    stream = np.random.default_rng(0)
    return {
        "lognormal": stream.lognormal(-1.0, 1.0, 5000),
        "wide": stream.lognormal(-3.0, 8.0, 5000),
        # Most of the mass far below 1, a few values beyond 1e30.
        "heavy": stream.pareto(0.1, 5000) * 1e-4,
        "tiny": 10.0 ** stream.uniform(-37, -20, 2000),
        "small": stream.lognormal(-1.0, 1.0, 7),
        "one": [0.123],
        "equal": np.full(1000, 0.7),
    }


def test_the_promised_error_is_under_half_a_percent():
    assert 0.002 < quantile.RELATIVE_ERROR < 0.005


@pytest.mark.parametrize("name", samples())
def test_lambda_is_the_exact_one(name):
    ratios = np.minimum(samples()[name], 3e38).astype("float32")
    for eta in ETAS:
        exact = float(ops.adaptive_lambda(ratios, eta))
        assert exact == pytest.approx(references.adaptive_lambda(ratios, eta))
        assert lam_of(ratios, eta) == pytest.approx(exact, rel=ERROR)


@hypothesis.given(
    ratios=st.lists(
        st.one_of(
            st.floats(-37.0, 1.0).map(lambda e: 10.0**e),
            st.floats(2.0**-120, 4.0, width=32),
            st.sampled_from([1.0, float("inf"), float("nan"), 3e38]),
        ),
        max_size=12,
    ),
    eta=st.integers(0, 1000),
)
@hypothesis.settings(max_examples=80)
def test_lambda_is_the_exact_one_on_any_list(ratios, eta):
    exact = references.adaptive_lambda(ratios, eta / 1000) if ratios else 0.0
    assert lam_of(ratios, eta / 1000) == pytest.approx(exact, rel=ERROR)


def test_every_ratio_counts_once_in_its_bin():
    ratios = [0.0, 1e-37, 0.5, 0.5, 1.0, 7.0, 3e38, np.inf, np.nan]
    counts = keras.ops.convert_to_numpy(quantile.ratio_counts(ratios))
    assert counts.shape == (quantile.NUM_BINS + 2,)
    assert counts.sum() == 7
    # Below the bins; the first bin; ln 2 / (37 ln 10) of all bins below 1.
    half = int(quantile.NUM_BINS * (1 - np.log(2) / (37 * np.log(10))))
    expected = {0: 1, 1: 1, half + 1: 2, quantile.NUM_BINS + 1: 3}
    places = np.flatnonzero(counts)
    assert dict(zip(places.tolist(), counts[places].tolist())) == expected


@pytest.mark.parametrize("value, lam", [(0.0, 0.0), (1.0, 1.0), (9.0, 1.0)])
def test_the_ends_are_exact(value, lam):
    assert lam_of([value] * 3, 0.5) == lam


@pytest.mark.parametrize("ratios", [[], [np.nan], [np.inf, np.nan]])
def test_nothing_to_go_by_is_0(ratios):
    assert lam_of(np.array(ratios, "float32"), 0.5) == 0.0
    assert lam_of([0.5], 0.0) == 0.0


def test_parts_add_up_to_the_whole():
    ratios = samples()["lognormal"].astype("float32")
    whole = quantile.ratio_counts(ratios)
    parts = [quantile.ratio_counts(p) for p in np.split(ratios, [10, 3000])]
    np.testing.assert_array_equal(sum(parts), whole)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_compiled_quantile_is_the_same(jit_compile):
    def lam(ratios):
        counts = quantile.ratio_counts(ratios)
        return quantile.adaptive_lambda(counts, 0.3)

    ratios = samples()["lognormal"].astype("float32")
    compiled = backend.compiled(lam, jit_compile=jit_compile)
    assert float(compiled(ratios)) == pytest.approx(
        float(lam(ratios)), rel=1e-6
    )


@pytest.mark.tensorflow("replicas of tf.distribute")
def test_two_replicas_count_what_one_device_counts():
    import tensorflow as tf

    scope, _ = backend.make_strategy("mirrored", 2)
    ratios = samples()["lognormal"].astype("float32")
    with scope:
        strategy = tf.distribute.get_strategy()
        shares = strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(
                np.split(ratios, 2)[context.replica_id_in_sync_group]
            )
        )

        @tf.function
        def count(shares):
            return strategy.run(
                lambda r: quantile.ratio_counts(backend.all_gather(r)),
                (shares,),
            )

        first, second = strategy.experimental_local_results(count(shares))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, quantile.ratio_counts(ratios))


# The rank both quantiles share.


@hypothesis.given(
    count=st.integers(0, 2**31 - 1), millionths=st.integers(0, 10**6)
)
@hypothesis.settings(max_examples=150)
def test_the_rank_is_that_of_whole_numbers(count, millionths):
    expected = min(count * millionths // 10**6, count - 1)
    if not millionths:
        expected = -1
    got = ops.share_rank(count, millionths / 1e6)
    assert int(got) == expected
    assert keras.backend.standardize_dtype(got.dtype) == "int32"


def test_the_largest_count_has_a_rank():
    n = 2**31 - 1
    assert int(ops.share_rank(n, 1.0)) == n - 1
    assert int(ops.share_rank(n, 0.3)) == n * 3 // 10
