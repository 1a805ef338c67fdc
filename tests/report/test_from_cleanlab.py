"""The page for people who know cleanlab runs as written."""

import re

import numpy as np
import pytest
from sklearn.metrics import average_precision_score


def test_the_programs_of_the_page(repository, tmp_path, monkeypatch):
    text = (repository / "docs" / "from_cleanlab.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names, steps = {}, []
    for program in programs:
        exec(compile(program, "from_cleanlab.md", "exec"), names)
        steps.append(dict(names))
    # Flags and scores find the slips.
    found = steps[1]
    wrong = found["labels"] != found["truth"]
    assert wrong[found["issues"]].mean() > 0.85
    assert found["issues"][wrong].mean() > 0.8
    assert found["expected"] == pytest.approx(wrong.sum(), rel=0.15)
    assert average_precision_score(wrong, 1 - found["quality"]) > 0.9
    rows = found["most_suspect"]["id"].astype(int)
    assert wrong[rows].mean() > 0.8
    # Sets are settled and written.
    found = steps[3]
    right = found["settled"]["label"].astype(int) == found["truth"]
    assert right.mean() > 0.9
    assert found["paths"][0].endswith("labels.csv")
    assert len(found["first"]) == 200 and "data:image/" in found["page"]
    # People: who guesses in a share g of the cases is right in 1 - 0.9 g.
    found = steps[4]
    right = found["consensus"].astype(int) == found["truth"]
    assert right.mean() > 0.97
    assert found["quality"].mean() == pytest.approx(right.mean(), abs=0.03)
    agreement = found["about_people"]["agreement"].to_numpy()
    np.testing.assert_allclose(agreement, [0.91, 0.82, 0.64], atol=0.03)
    assert found["about_people"]["annotator"].tolist() == ["ann", "bob", "cy"]
