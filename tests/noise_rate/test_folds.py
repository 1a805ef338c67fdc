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


def test_the_split_depends_on_the_seed_alone():
    def split(seed):
        rows = []
        noise_rate.out_of_fold(
            lambda fit, rest: rows.append(rest.tolist()) or np.zeros((3, 2)),
            9,
            seed=seed,
        )
        return rows

    assert split(0) == split(0) != split(1)


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
    assert (found.value, found.low, found.high) == (
        plain.value,
        plain.low,
        plain.high,
    )
    assert "3 networks" in found.reason


def test_choice():
    assert noise_rate.choose(999)[0] == "cv"
    assert noise_rate.choose(1000)[0] == "em"
    assert noise_rate.choose(1000, num_labels=5)[0] == "annotated"
    for arguments in ((999,), (1000,), (0, 5)):
        assert str(max(arguments)) in noise_rate.choose(*arguments)[1]
