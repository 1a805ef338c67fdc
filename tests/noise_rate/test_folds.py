import numpy as np
import pytest

from alim_keras import noise_rate
from alim_keras.errors import ConfigError


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_every_row_is_predicted_once_without_having_been_trained_on(folds):
    calls = []

    def fit_predict(train_rows, predict_rows):
        calls.append((train_rows, predict_rows))
        # A prediction that shows whose it is, and by which call.
        return np.stack(
            [predict_rows, np.full(len(predict_rows), len(calls))], 1
        )

    logits = noise_rate.out_of_fold(fit_predict, 7, folds, seed=1)
    assert logits[:, 0].tolist() == list(range(7))
    assert len(calls) == folds
    for number, (train_rows, predict_rows) in enumerate(calls, 1):
        both = np.concatenate([train_rows, predict_rows])
        assert sorted(both) == list(range(7))
        assert (np.diff(train_rows) > 0).all()
        assert 7 // folds <= len(predict_rows) <= -(-7 // folds)
        assert (logits[predict_rows, 1] == number).all()


def fold_of(num_examples, folds, groups=None, seed=0):
    """Which call predicted each row, and that none was trained on then."""
    found = np.full(num_examples, -1)
    calls = iter(range(folds))

    def fit_predict(train_rows, predict_rows):
        found[predict_rows] = next(calls)
        both = np.concatenate([train_rows, predict_rows])
        assert sorted(both) == list(range(num_examples))
        return np.zeros((len(predict_rows), 2))

    noise_rate.out_of_fold(fit_predict, num_examples, folds, seed, groups)
    return found


def test_groups_stay_in_one_fold_and_folds_stay_about_even():
    stream = np.random.default_rng(0)
    groups = stream.integers(0, 150, 400)
    found = fold_of(400, 3, groups)
    for group in np.unique(groups):
        assert len(set(found[groups == group])) == 1
    sizes = np.bincount(found, minlength=3)
    assert sizes.max() - sizes.min() < 60
    # The split depends on the seed alone; groups of one change nothing.
    assert (fold_of(400, 3, groups, seed=1) != found).any()
    assert (fold_of(400, 3, groups) == found).all()
    assert (fold_of(50, 4, np.arange(50)) == fold_of(50, 4)).all()


@pytest.mark.parametrize("folds", [2, 3, 10])
def test_a_group_larger_than_a_fold_is_split_up(folds):
    # All but two, and a pair.
    groups = np.array([0] * 8 + [1] * 2)
    found = fold_of(10, folds, groups)
    assert np.bincount(found, minlength=folds).min() >= 1
    assert len(set(found[:8])) == min(folds, 8)
    if folds < 6:
        assert found[8] == found[9]


@pytest.mark.parametrize("folds", [1, 5])
def test_impossible_folds_are_refused(folds):
    with pytest.raises(ConfigError, match=f"folds={folds}"):
        noise_rate.out_of_fold(None, 4, folds)
