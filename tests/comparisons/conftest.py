import json

import pytest

from alim_keras.cli import compare_flags
from alim_keras.comparisons import grid
from alim_keras.runs import identity

# Cells of seconds; a test adds what it is about.
TINY = (
    "--preset=smoke --train_size=64 --batch_size=32 --holdout=0 --epochs=2 "
    "--warmup_epochs=1 --strong_operations=0"
).split()


@pytest.fixture
def tiny():
    return TINY


@pytest.fixture
def make_grid(tmp_path):
    """Makes the grid of a command line, in the test's own folder."""

    def make(*flags):
        arguments = [f"--out={tmp_path / 'out'}", *TINY, *flags]
        return grid.make(compare_flags.COMMAND.parse(arguments))

    return make


@pytest.fixture
def leave_results():
    """Writes what a training would leave, with numbers of one's choice."""

    def leave(settings, folder, accuracy):
        folder.write(
            "run.json",
            {
                "settings": settings.as_dict(),
                "data": {"trained_on": 70},
                "files": identity.of_files(settings.as_dict()),
            },
        )
        # 2 batches of 32 in an epoch: 64 / 320, 64 / 128 and 64 / 64 seconds.
        rates = "images_per_second\n320\n128\n64\n"
        with open(folder.file("metrics.csv"), "w") as file:
            file.write(rates)
        results = {
            "test_accuracy": accuracy,
            "test_accuracy_selected": accuracy / 2,
            "pseudo_label_accuracy": 0.5,
            "lambda": 0.25,
            "noise_rate": 0.3,
            "realised_noise": 0.31,
            "epochs": 3,
            "train_seconds": 12.5,
        }
        path = folder.file("results.json")
        with open(path, "w") as file:
            json.dump(results, file)

    return leave
