"""The page for people who know cleanlab runs as written."""

import re

import numpy as np
import pytest
from sklearn.metrics import average_precision_score


@pytest.fixture(scope="module")
def steps(repository, tmp_path_factory):
    """Returns the names that each program of the page defines."""
    text = (repository / "docs" / "from_cleanlab.md").read_text()
    names, after = {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        for program in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(program, "from_cleanlab.md", "exec"), names)
            after.append(dict(names))
    return after


def test_flags_and_scores_find_the_slips(steps):
    found = steps[1]
    wrong = found["labels"] != found["truth"]
    assert wrong[found["issues"]].mean() > 0.85
    assert found["issues"][wrong].mean() > 0.8
    assert found["expected"] == pytest.approx(wrong.sum(), rel=0.15)
    assert average_precision_score(wrong, 1 - found["quality"]) > 0.9
    rows = found["most_suspect"]["id"].astype(int)
    assert wrong[rows].mean() > 0.8


def test_sets_are_settled_and_written(steps):
    found = steps[3]
    right = found["settled"]["label"].astype(int) == found["truth"]
    assert right.mean() > 0.9
    assert found["paths"][0].endswith("labels.csv")
    assert len(found["first"]) == 200 and "data:image/" in found["page"]


def test_people(steps):
    found = steps[4]
    right = found["consensus"].astype(int) == found["truth"]
    assert right.mean() > 0.97
    assert found["quality"].mean() == pytest.approx(right.mean(), abs=0.03)
    agreement = found["about_people"]["agreement"].to_numpy()
    # Who guesses in a share g of the cases is right in 1 - 0.9 g.
    np.testing.assert_allclose(agreement, [0.91, 0.82, 0.64], atol=0.03)
    assert found["about_people"]["annotator"].tolist() == ["ann", "bob", "cy"]
