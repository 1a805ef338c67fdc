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


def test_groups_stay_in_one_fold_and_folds_stay_even():
    stream = np.random.default_rng(0)
    groups = stream.integers(0, 150, 400)
    found = fold_of(400, 3, groups)
    for group in np.unique(groups):
        assert len(set(found[groups == group])) == 1
    sizes = np.bincount(found, minlength=3)
    assert sizes.max() - sizes.min() <= 1
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


def test_cv_is_em_on_those_predictions():
    stream = np.random.default_rng(0)
    logits = stream.normal(size=(90, 4)) * 3
    candidates = np.eye(4)[stream.integers(0, 4, 90)]
    found = noise_rate.cv(lambda fit, rest: logits[rest], candidates)
    plain = noise_rate.em(logits, candidates)
    assert found.method == "cv" and found.details["folds"] == 3
    for name in ("value", "low", "high"):
        assert getattr(found, name) == getattr(plain, name)
    assert "3 networks" in found.reason


def test_cv_keeps_twins_together():
    stream = np.random.default_rng(0)
    groups = np.arange(90) // 2
    candidates = np.eye(4)[stream.integers(0, 4, 90)]

    def fit_predict(train_rows, predict_rows):
        assert not np.isin(groups[predict_rows], groups[train_rows]).any()
        return stream.normal(size=(len(predict_rows), 4)) * 3

    noise_rate.cv(fit_predict, candidates, groups=groups)
    with pytest.raises(AssertionError):
        noise_rate.cv(fit_predict, candidates)


def test_choice():
    assert noise_rate.choose(999)[0] == "cv"
    assert noise_rate.choose(1000)[0] == "em"
    assert noise_rate.choose(1000, num_labels=49)[0] == "em"
    assert noise_rate.choose(1000, num_labels=50)[0] == "annotated"
    for arguments in ((999,), (1000,), (0, 50)):
        assert str(max(arguments)) in noise_rate.choose(*arguments)[1]
