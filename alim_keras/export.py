"""Writes a run's artefacts again, from the checkpoint of its selected epoch.

    python -m alim_keras.export runs/digits-pico-seed0

Makes `saved_model/`, `model.keras`, `labels.csv` and `classes.csv` in the run
folder.
"""

import dataclasses
import sys

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import ReopenConfig
from alim_keras.app.values import switch
from alim_keras.errors import EnvironmentLacksError


@dataclasses.dataclass(frozen=True)
class ExportConfig:
    """Export.

    Attributes:
        saved_model: Write saved_model/ alone.
    """

    saved_model: bool = switch(False)


COMMAND = cli.Command(
    name="export",
    doc=(
        "Writes saved_model/, model.keras, labels.csv and classes.csv of a run "
        "again, from the checkpoint of its selected epoch."
    ),
    groups=(ExportConfig, ReopenConfig),
    words=("run",),
    examples=("export runs/mine", "export runs/mine --saved_model"),
)


def main(line):
    """Exports the run named on the command line."""
    import keras

    from alim_keras.app import artefacts
    from alim_keras.app import build

    on_tensorflow = keras.config.backend() == "tensorflow"
    names = ["saved_model"] if on_tensorflow else []
    if line.options.saved_model and not on_tensorflow:
        raise EnvironmentLacksError(
            "TensorFlow writes saved_model/: set KERAS_BACKEND=tensorflow."
        )
    with build.open_run(line) as run:
        folder, model, training = run.folder, run.model, run.training
        if line.options.saved_model:
            artefacts.write_saved_model(folder, model, training)
        else:
            # An audit's labels.csv holds more, and answers may stand in it.
            is_new = folder.existing("labels.csv") is None
            artefacts.write(folder, model, training, is_new)
            names += ["model.keras"]
            names += ["labels.csv", "classes.csv"] if is_new else []
            if not is_new:
                print(
                    "labels.csv and classes.csv stay as they are: an audit or "
                    "a person may have changed labels.csv. Remove it to have "
                    "both written again."
                )
    print(f"Wrote {', '.join(names)} of epoch {run.epoch} into {folder.path}")
    if not on_tensorflow:
        artefacts.export_on_tensorflow(folder)


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
