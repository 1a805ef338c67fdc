"""Writes a run's artefacts again, from one of its checkpoints.

    python -m alim_keras.export runs/digits-pico-seed0

Makes `saved_model/`, `model.keras`, `labels.csv` and `classes.csv` in the run
folder.
"""

import dataclasses
import sys

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.values import choice
from alim_keras.app.values import path
from alim_keras.app.values import switch
from alim_keras.errors import EnvironmentLacksError


@dataclasses.dataclass(frozen=True)
class ExportConfig:
    """Export.

    Attributes:
        checkpoint: Which epoch's weights: the selected one's, as training
            exports, or the last one's.
        saved_model: Write saved_model/ alone.
        data_dir: Where the images lie now, if no longer where the run found
            them.
        images: Where the images of a table lie now, likewise.
        trust_code: Run the code that the run's run.flags names, such as a
            method of its own.
    """

    checkpoint: str = choice("selected", ("selected", "last"))
    saved_model: bool = switch(False)
    data_dir: str | None = path()
    images: str | None = path()
    trust_code: bool = switch(False)


COMMAND = cli.Command(
    name="export",
    doc=(
        "Writes saved_model/, model.keras, labels.csv and classes.csv of a run "
        "again, from a checkpoint."
    ),
    groups=(ExportConfig,),
    words=("run",),
    examples=(
        "export runs/mine",
        "export runs/mine --checkpoint=last",
        "export runs/mine --saved_model",
    ),
)


def main(line):
    """Exports the run named on the command line."""
    import keras

    from alim_keras.app import artefacts
    from alim_keras.app import build
    from alim_keras.app.run_folder import RunFolder

    options = line.options
    folder = RunFolder(line.words["run"])
    build.check_begun(folder)
    on_tensorflow = keras.config.backend() == "tensorflow"
    if options.saved_model and not on_tensorflow:
        raise EnvironmentLacksError(
            "TensorFlow writes saved_model/: set KERAS_BACKEND=tensorflow."
        )
    with folder.lock():
        run = build.open_run(folder, options, options.checkpoint)
        names = ["saved_model"] if on_tensorflow else []
        if options.saved_model:
            artefacts.write_saved_model(
                folder, run.model, run.training.class_names
            )
        else:
            # An audit's labels.csv holds more, and answers may stand in it.
            is_audited = folder.existing("review.csv") is not None
            artefacts.write(folder, run.model, run.training, not is_audited)
            names += ["model.keras"]
            names += [] if is_audited else ["labels.csv", "classes.csv"]
            if is_audited:
                print(
                    "labels.csv and classes.csv stay: the audit wrote "
                    "labels.csv. Remove review.csv to have them written again."
                )
    print(f"Wrote {', '.join(names)} of epoch {run.epoch} into {folder.path}")
    if not on_tensorflow and options.checkpoint == "selected":
        artefacts.export_on_tensorflow(folder)


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
