"""scripts/performance_chart.py, on a record made by hand."""

import json
import runpy

import pytest

RECORD = {
    "settings": {"network": "small_cnn", "width": None, "batch_size": 6},
    "backend": "tensorflow",
    "image_shape": [8, 8, 3],
    "seconds": {"alim": {"median": 0.02}},
    "by_round": {"efficiency": {"median": 0.75}},
    "parts": {"query": 0.010, "weak": 0.001, "strong": 0.003},
    "rest": 0.006,
}


@pytest.fixture
def chart(repository):
    path = repository / "scripts" / "performance_chart.py"
    return runpy.run_path(str(path))


@pytest.mark.parametrize(
    "rest, expected",
    [
        (0.006, {"query pass": 0.5, "views": 0.2, "rest": 0.3}),
        # Parts that take longer than the whole share it: 10 and 4 of 14.
        (-0.002, {"query pass": 10 / 14, "views": 4 / 14, "rest": 0.0}),
    ],
)
def test_shares(chart, rest, expected):
    names = [name for name, _, _ in chart["GROUPS"]]
    found = dict(zip(names, chart["shares"]({**RECORD, "rest": rest})))
    assert sum(found.values()) == pytest.approx(1.0)
    for name, share in found.items():
        assert share == pytest.approx(expected.get(name, 0.0)), name


def test_the_picture_says_what_it_shows(chart, tmp_path):
    path = tmp_path / "one.json"
    path.write_text(json.dumps(RECORD))
    bars = [chart["read"](f"before={path}"), chart["read"](str(path))]
    details = "8x8x3, batch 6, tensorflow"
    assert [name for name, _ in bars] == [
        f"before\n{details}",
        f"small_cnn\n{details}",
    ]
    axis = chart["draw"](bars).axes[0]
    texts = [text.get_text() for text in axis.texts]
    assert texts.count("20 ms\nefficiency 0.75") == 2
    assert texts.count("50%") == 2
