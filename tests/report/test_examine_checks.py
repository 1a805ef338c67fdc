import numpy as np
import pytest
from sample_examined import NAMES
from sample_examined import PROBABILITIES
from sample_examined import SETS
from sample_examined import small

from alim_keras.data.tables import Votes
from alim_keras.errors import DataError
from alim_keras.report import examine


@pytest.mark.parametrize("kind", ["table", "folds", "prediction"])
def test_nothing_at_all(kind, tmp_path):
    found = examine(
        np.zeros((0, 3)),
        np.zeros((0, 3), bool),
        class_names=NAMES,
        ids=[],
        kind=kind,
    )
    assert found.summary["num_examples"] == 0
    assert found.summary["mean_set_size"] is None
    assert found.labels.empty and found.review.empty
    assert found.classes["given"].tolist() == [0, 0, 0]
    assert len(found.write(tmp_path)) == 4


def votes(row=1, label=0, who=0, name="ann"):
    """Two votes, the second of which may be wrong."""
    return Votes(
        np.array([0, row]),
        np.array([0, who], "int32"),
        np.array([0, label], "int32"),
        None,
        (name,),
    )


@pytest.mark.parametrize(
    "change, words",
    [
        ({"kind": "guess"}, "'table', 'folds', 'prediction'"),
        ({"ids": ["a", "b"]}, r"2 ids .* \(3, 3\)"),
        ({"class_names": NAMES[:2]}, "2 class names"),
        ({"labels": [0]}, "1 labels, 3 ids"),
        ({"labels": [0, 3, -1]}, "from 0 to 2 .* Received: 3 in row 1"),
        ({"labels": [0, 1, -2]}, "Received: -2 in row 2"),
        ({"labels": [0.0, 1.0, -1.0]}, "must be integers.* float64"),
        ({"labels": [[0], [1], [2]]}, r"int64 of shape \(3, 1\)"),
        ({"kind": ["table", "folds"]}, r"`kind` .* of 3 .* shape \(2,\)"),
        ({"kind": ["table", "folds", 1]}, r"'table', .* \['1'\]"),
        ({"known": [True]}, r"`known` must be .* shape \(1,\)"),
        ({"ratio": [1.0, 2.0]}, r"`ratio` must be .* shape \(2,\)"),
        ({"ids": ["a", "b", "a"]}, r"1 examples .* ids a \(row 2\); give"),
        ({"class_names": ["cat", "dog", "cat"]}, "different.* twice: cat$"),
        ({"class_names": ["cat", "dog", "x\ud800"]}, r"1 class names .*ud800"),
        ({"ids": ["a", "\udcff", "c"]}, r"1 ids are no UTF-8 text: '.udcff'"),
        ({"votes": "x"}, "`votes` must be an alim_keras.data.Votes.* str$"),
        ({"votes": votes(row=3)}, r"`votes.rows` .* 0 to 2\. .* 3 in vote 1"),
        ({"votes": votes(row=-1)}, r"`votes.rows` .* -1 in vote 1"),
        ({"votes": votes(label=3)}, r"`votes.classes` .* 0 to 2\."),
        ({"votes": votes(who=1)}, r"`votes.annotators` .* 0 to 0\."),
        ({"votes": votes(name="\udcff")}, "1 annotators are no UTF-8 text"),
        ({"as_given": SETS[:2]}, r"`as_given` .* 3 ids .* \(2, 3\)"),
        ({"noise_rate": 1.0}, "noise_rate=1.0"),
        ({"noise_rate": float("nan")}, "noise_rate=nan"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    with pytest.raises(DataError, match=words) as error:
        small(**change)
    assert "\n" not in str(error.value)


def test_rows_that_are_no_distribution_are_named():
    bad = PROBABILITIES.copy()
    bad[1, 0] = np.nan
    options = {"class_names": NAMES, "ids": ["a", "b", "c"], "kind": "table"}
    with pytest.raises(DataError, match=r"not finite, ids b \(row 1\)"):
        examine(bad, SETS, **options)
    empty = SETS.copy()
    empty[2] = False
    with pytest.raises(DataError, match=r"empty candidate set, ids c"):
        examine(PROBABILITIES, empty, **options)


@pytest.mark.parametrize("count, num_classes", [(1, 1), (1, 2), (3, 2), (2, 1)])
def test_few_examples_and_few_classes(count, num_classes):
    stream = np.random.default_rng(0)
    probabilities = stream.dirichlet(np.ones(num_classes), count)
    sets = np.zeros((count, num_classes), bool)
    sets[:, 0] = True
    nobody = Votes(
        np.zeros(0, "int64"),
        np.zeros(0, "int32"),
        np.zeros(0, "int32"),
        None,
        ("ann",),
    )
    for votes in (None, nobody):
        found = examine(
            probabilities,
            sets,
            class_names=NAMES[:num_classes],
            ids=list("abc")[:count],
            kind="folds",
            votes=votes,
        )
        shares = found.labels[["probability", "suspicion"]].to_numpy()
        assert np.isfinite(shares).all()
        assert (found.labels["candidates"].str.len() == 1).all()
        if num_classes == 1:
            assert (found.labels["suspicion"] == 0).all()
    assert found.annotators["votes"].tolist() == [0]
    assert np.isnan(found.annotators["agreement"][0])
