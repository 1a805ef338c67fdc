"""The served model: class names, no images, pixels that are no numbers."""

import numpy as np
import pytest
import tiny

from alim_keras.backend.tensorflow import load_served_model
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


def test_names_empty_batches_and_broken_pixels(tmp_path):
    names = ["ant", "b\u2028ee", "c at"]
    model = tiny.plain(count=40)
    path = str(tmp_path / "saved")
    model.export(path, class_names=names)
    file = tmp_path / "saved" / "assets" / "class_names.txt"
    assert file.read_text(encoding="utf-8").split("\n") == [*names, ""]

    serve, shape = load_served_model(path)
    assert shape == tiny.SHAPE
    images = tiny.examples(3)[0]
    expected = model.predict(images, verbose=0)
    np.testing.assert_allclose(serve(images), expected, atol=1e-6)
    assert serve(images[:0]).shape == (0, 3)
    broken = images.astype("float32")
    broken[1, 2, 2] = np.nan
    broken[2, 0, 0] = np.inf
    for found in (serve(broken), model.predict(broken, verbose=0)):
        np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
        assert np.isnan(found[1:]).all()
