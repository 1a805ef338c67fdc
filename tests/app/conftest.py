"""One finished run on digits, and one folder of pictures with a table."""

import commands
import own
import pytest


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """The folder of a run of three epochs."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    flags = ("--epochs=3", "--select=aa", f"--run_dir={folder}")
    commands.works("train", *commands.SMOKE, *flags)
    return folder


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A folder with photos/, labels.csv, truth.csv and test.csv."""
    folder = tmp_path_factory.mktemp("own")
    own.write_folder(folder, count=96, tested=12)
    known = [tuple(row.values()) for row in own.read_rows(folder / "truth.csv")]
    own.write_rows(folder / "known.csv", [("id", "label"), *known[:20]])
    return folder


@pytest.fixture(scope="session")
def own_run(photos, tmp_path_factory):
    """The folder of a finished run on that table, without any truth."""
    folder = tmp_path_factory.mktemp("own_run") / "run"
    images = f"--images={photos / 'photos'}"
    commands.trained_own(folder, photos / "labels.csv", images)
    return folder
