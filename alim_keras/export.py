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
from alim_keras.errors import CheckpointError


def main(settings):
    """Exports the run named on the command line."""
    import keras

    from alim_keras.data.candidate_sets import CandidateSets
    from alim_keras.runs import artefacts
    from alim_keras.runs import build
    from alim_keras.runs import loading
    from alim_keras.runs.folder import RunFolder

    folder = RunFolder(settings.run)
    if not folder.checkpoint.exists():
        raise CheckpointError(
            f"There is no checkpoint in {folder.path}. Give the folder of a "
            "run that finished at least one epoch."
        )
    with folder.lock():
        run = train_flags.COMMAND.parse(
            [f"--flagfile={folder.file('run.flags')}", *_overrides(settings)]
        )
        keras.config.set_dtype_policy(run.precision)
        candidates = CandidateSets.load(folder.file("candidates.npz"))
        folder.check_candidates(candidates.content_hash)
        training = loading.training_data(run, candidates)
        model = build.model(run, training, restored=True)
        build.compile_model(run, model)
        which = "best" if settings.checkpoint == "selected" else "last"
        folder.checkpoint.restore(model, which)
        artefacts.write_artefacts(folder, model, training)
    state = folder.checkpoint.state
    epoch = state["best"]["epoch"] if which == "best" else state["epochs"]
    names = ("saved_model", "model.keras", "labels.csv", "classes.csv")
    written = [name for name in names if os.path.exists(folder.file(name))]
    print(f"Wrote {', '.join(written)} of epoch {epoch} into {folder.path}")


def _overrides(settings):
    return [f"--data_dir={settings.data_dir}"] if settings.data_dir else []


if __name__ == "__main__":
    sys.exit(cli.run(export_flags.COMMAND, main))
