"""Class names that a served model can keep in a file of lines."""

import pytest
import tiny

from alim_keras.backend import serving
from alim_keras.errors import ConfigError


@pytest.mark.parametrize("name", ["c\nat", "cat\r", "", " ", "\udcff"])
def test_a_name_must_be_one_line_of_text(name, tmp_path):
    model = tiny.plain(count=40)
    with pytest.raises(ConfigError) as error:
        model.export(tmp_path / "saved", class_names=["ant", name, "bee"])
    text = str(error.value)
    assert text.endswith(f"Received: class_names[1]={ascii(name)}")
    assert "\n" not in text
    assert not (tmp_path / "saved").exists()


def test_other_names_are_kept(tmp_path):
    names = ["ant", "b\u2028ee", "c at"]
    tiny.plain(count=40).export(str(tmp_path / "saved"), class_names=names)
    file = tmp_path / "saved" / "assets" / serving.CLASS_NAMES
    assert file.read_text(encoding="utf-8").split("\n") == [*names, ""]
