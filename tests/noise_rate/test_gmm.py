import numpy as np
import pytest

from alim_keras import noise_rate


def groups(right, wrong, centre_right=4.0, centre_wrong=-4.0, spread=1.0):
    """Three classes, sets {0}; `log_ratio` = logit 0 - logit 1 is normal."""
    stream = np.random.default_rng(0)
    ratio = np.concatenate(
        [
            stream.normal(centre_right, spread, right),
            stream.normal(centre_wrong, spread, wrong),
        ]
    )
    logits = np.zeros((right + wrong, 3))
    logits[:, 0] = ratio
    logits[:, 2] = -50.0
    candidates = np.zeros_like(logits)
    candidates[:, 0] = 1
    return logits, candidates


def test_two_groups_give_the_weight_of_the_lower():
    found = noise_rate.gmm(*groups(300, 100))
    assert found.separated and found.method == "gmm"
    # The two groups' tails hardly overlap: 8 deviations apart.
    assert found.value == pytest.approx(0.25, abs=0.002)
    assert found.details["ashman_d"] == pytest.approx(8.0, abs=0.4)
    # Of a share: 1.96 sqrt(.25 * .75 / 400) = 0.042.
    assert found.low == pytest.approx(0.25 - 0.042, abs=0.005)
    assert found.high == pytest.approx(0.25 + 0.042, abs=0.005)


@pytest.mark.parametrize(
    "arrays, words",
    [
        (groups(400, 0), "one normal distribution"),
        (groups(3600, 400, 1.5, -1.5), "overlap"),
        (groups(200, 200, 12.0, 4.0), "surer"),
        (groups(10, 5), "too few"),
    ],
)
def test_without_two_groups_em_answers(arrays, words):
    found = noise_rate.gmm(*arrays)
    plain = noise_rate.em(*arrays)
    assert found.separated is False and found.method == "em"
    assert words in found.reason and "em answers" in found.reason
    assert (found.value, found.low) == (plain.value, plain.low)


def test_full_sets_count_as_right():
    logits, candidates = groups(300, 100)
    found = noise_rate.gmm(
        np.concatenate([logits, logits]),
        np.concatenate([candidates, np.ones_like(candidates)]),
    )
    assert found.value == pytest.approx(0.125, abs=0.002)
