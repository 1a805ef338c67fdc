"""Writes a run's artefacts again, from one of its checkpoints.

    python -m alim_keras.export runs/digits-pico-seed0

Makes `saved_model/`, `model.keras`, `labels.csv` and `classes.csv` in the run
folder.
"""

import os
import sys

from alim_keras import cli
from alim_keras.cli import export_flags
from alim_keras.cli import train_flags


def main(settings):
    """Exports the run named on the command line."""
    from alim_keras.runs import artefacts
    from alim_keras.runs.folder import RunFolder
    from alim_keras.runs.reopen import check_begun
    from alim_keras.runs.reopen import reopen

    folder = RunFolder(settings.run)
    check_begun(folder)
    with folder.lock():
        run = reopen(
            folder,
            train_flags.COMMAND,
            settings.checkpoint,
            data_dir=settings.data_dir,
            images=settings.images,
        )
        artefacts.write_artefacts(folder, run.model, run.training)
    names = ("saved_model", "model.keras", "labels.csv", "classes.csv")
    written = [name for name in names if os.path.exists(folder.file(name))]
    print(f"Wrote {', '.join(written)} of epoch {run.epoch} into {folder.path}")


if __name__ == "__main__":
    sys.exit(cli.run(export_flags.COMMAND, main))
