"""Writes a run's artefacts again, from the checkpoint of its selected epoch.

Makes saved_model/, model.keras, labels.csv and classes.csv in the run folder.
"""

import sys

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import ReopenConfig

COMMAND = cli.Command(
    name="export",
    doc=__doc__,
    groups=(ReopenConfig,),
    words=("run",),
    examples=("export runs/mine", "export runs/mine --images=photos"),
)


def main(line):
    """Exports the run named on the command line."""
    import keras

    from alim_keras.app import artefacts
    from alim_keras.app import build

    with build.open_run(line) as run:
        folder = run.folder
        # An audit's labels.csv holds more, and answers may stand in it.
        is_new = folder.existing("labels.csv") is None
        artefacts.write(folder, run.model, run.training, is_new)
    names = ["model.keras", *(["labels.csv", "classes.csv"] if is_new else [])]
    if not is_new:
        print(
            "labels.csv and classes.csv stay as they are: an audit or a person "
            "may have changed labels.csv. Remove it to have both written again."
        )
    if keras.config.backend() == "tensorflow":
        names.insert(0, "saved_model")
    else:
        artefacts.export_on_tensorflow(folder)
    print(f"Wrote {', '.join(names)} of epoch {run.epoch} into {folder.path}")


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
