"""The command, and twelve pictures."""

import pytest
from checking import SMALL
from PIL import Image

from alim_keras import check
from alim_keras import cli
from alim_keras.cli import check_flags


@pytest.fixture
def run(capsys):
    """Checks a table; returns the exit code and what was printed."""

    def checked(path, *flags):
        code = cli.run(
            check_flags.COMMAND,
            check.main,
            [*SMALL, f"--dataset={path}", *flags],
            keras=False,
        )
        out, err = capsys.readouterr()
        assert len(err.strip().splitlines()) <= 1, err
        return code, out + err

    return checked


@pytest.fixture
def photos(tmp_path):
    """Twelve pictures, 0.png to 11.png."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for row in range(12):
        Image.new("L", (8, 8), 20 * row).save(folder / f"{row}.png")
    return folder
