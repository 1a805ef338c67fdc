"""What `Audit` writes, and what it refuses to."""

import numpy as np
import pytest
from sample_audit import sample_audit

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.report import html


def test_a_file_is_no_folder_for_the_tables(tmp_path):
    place = tmp_path / "tables"
    place.write_text("mine")
    for asked in (place, place / "inside"):
        with pytest.raises(ConfigError, match=f"a file, .*folder={asked}$"):
            sample_audit(20).write(asked)
    assert place.read_text() == "mine"


def test_a_folder_is_no_file_for_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "page", None)
    with pytest.raises(ConfigError, match="path must be the name of a file"):
        sample_audit(20).to_html(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "images, received",
    [
        (np.zeros((19, 8, 8, 3), "uint8"), r"\(19, 8, 8, 3\)"),
        (np.zeros((21, 1, 1, 7), "float32"), r"\(21, 1, 1, 7\)"),
        (np.zeros((20, 8, 8), "uint8"), r"\(20, 8, 8\)"),
        ([1, 2], "list"),
    ],
)
def test_pictures_are_one_for_each_example(images, received):
    with pytest.raises(DataError, match=f"each of 20 .* {received}$"):
        sample_audit(20).to_html(images=images)


def test_pictures_of_another_type_are_refused():
    with pytest.raises(DataError, match="must be uint8"):
        sample_audit(20).to_html(images=np.zeros((20, 8, 8, 3), "float32"))
