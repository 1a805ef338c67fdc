"""Reads labels and images, trains nothing, says what was found.

It takes training's flags: the line that is checked is the line that trains.
Ends with 3 if training would refuse the data.
"""

import sys
import warnings

from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app import load
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.data import known_data
from alim_keras.report import findings

COMMAND = cli.Command(
    name="check",
    doc=__doc__,
    groups=TRAINING,
    examples=(
        "check --dataset=labels.csv --images=photos",
        "check --dataset=labels.csv --images=photos --on_bad_image=skip",
        "check --dataset=labels.csv --none_of_these=unsure --min_votes=2",
    ),
    first=(
        "dataset images format layout class_names known_labels "
        "test_labels on_bad_image none_of_these"
    ).split(),
)


def main(line):
    """Checks the data of a command line, and says doubts at the end."""
    late = []
    try:
        with warnings.catch_warnings(record=True) as late:
            return _check(line)
    finally:
        for one in late:
            warnings.showwarning(
                one.message, one.category, one.filename, one.lineno
            )


def _check(line):
    load.check_use(line)
    origins = {line.origins.get(name) for name in ("method", "network")}
    if origins - {None, "default"}:
        # It takes seconds.
        process.import_keras()
        from alim_keras.app import build

        build.check(line.config)
    config, table, problems = line.config, None, []
    if known_data.is_table(config.data.dataset):
        table = load.table_set(config, "skip", process.show_progress)
        if table.scan is not None:
            bad = table.scan[table.scan["problem"].notna()]
            problems = list(bad["name"] + ": " + bad["problem"])
    if problems and config.table.on_bad_image == "error":
        print("\n".join(table.notes))
    else:
        training = load.training_set(config, table=table)
        config, chosen = defaults.resolve(config, training)
        training = defaults.arranged(config, training)
        steps = len(training.trained) // config.train.batch_size
        shape = " x ".join(map(str, training.images.shape[1:]))
        print(findings.describe(training))
        print(
            f"training       {config.method.method} on images of {shape}; "
            f"epochs: {config.train.epochs}, steps an epoch: {steps}, batch: "
            f"{config.train.batch_size}; items: {len(training.trained):,} to "
            f"train on, {len(training.held_out):,} held out, "
            f"{len(training.test_images):,} to test on",
            flush=True,
        )
        if defaults.describe(chosen):
            print(defaults.describe(chosen), flush=True)
    if not problems:
        print("Sound: training would take these data.")
        return 0
    print("\n".join(f"  {problem}" for problem in problems))
    cannot = f"images that cannot be read: {len(problems)}"
    if config.table.on_bad_image == "skip":
        print(f"Left out: {cannot}.")
        return 0
    print(f"Not sound: {cannot}. Mend them, or give --on_bad_image=skip.")
    return 3


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main, keras=False))
