"""Reads labels and images, trains nothing, says what was found.

It takes training's flags: the line that is checked is the line that trains.
Ends with 3 if training would refuse the data.
"""

import sys
import warnings

import pandas as pd

from alim_keras import errors
from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app import load
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.data import known_data
from alim_keras.report.labels import given_counts

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
        for doubt in late:
            warnings.warn(doubt.message, doubt.category, stacklevel=1)


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
            problems = list("  " + bad["name"] + ": " + bad["problem"])
    is_refused = bool(problems) and config.table.on_bad_image == "error"
    if is_refused:
        print(*table.notes, sep="\n")
    else:
        training = load.training_set(config, table=table)
        config, chosen = defaults.resolve(config, training)
        training = defaults.arranged(config, training)
        steps = len(training.trained) // config.train.batch_size
        shape = " x ".join(map(str, training.images.shape[1:]))
        print(describe(training))
        print(
            f"training       {config.method.method} on images of {shape}; "
            f"epochs: {config.train.epochs}, steps an epoch: {steps}, batch: "
            f"{config.train.batch_size}; items: {len(training.trained):,} to "
            f"train on, {len(training.held_out):,} held out, "
            f"{len(training.test_images):,} to test on"
        )
        if defaults.describe(chosen):
            print(defaults.describe(chosen))
    cannot = f"images that cannot be read: {len(problems)}"
    if not problems:
        print("Sound: training would take these data.")
    elif is_refused:
        advice = "Mend them, or give --on_bad_image=skip."
        print(*problems, f"Not sound: {cannot}. {advice}", sep="\n")
        return 3
    else:
        print(*problems, f"Left out: {cannot}.", sep="\n")
    return 0


def describe(training):
    """Describes a `TrainingSet` with candidates, as lines of text."""
    sets = training.candidates
    lines = [*training.notes, sets.describe(training.labels)]
    return "\n".join([*lines, *_images(training), *_classes(sets)])


def _images(training):
    shape, scan = training.images.shape, training.scan
    if training.kind == "features":
        return [f"features        {shape[-1]} for each item"]
    size = " x ".join(map(str, shape[1:]))
    if scan is None:
        return [f"images          {shape[0]:,} of {size}"]
    good, size_in_all = scan[scan["problem"].isna()], scan["bytes"].sum()
    smallest = " x ".join(map(str, good[["width", "height"]].min()))
    largest = " x ".join(map(str, good[["width", "height"]].max()))
    copies = good["copies"][good.duplicated("copies", keep=False)]
    lines = [
        f"images          {len(scan):,} of {size_in_all / 2**20:,.1f} MiB, "
        f"{smallest} to {largest} pixels, {(good['channels'] == 1).mean():.0%} "
        f"grey; read as {size}"
    ]
    if len(copies):
        groups = copies.nunique()
        lines.append(f"identical       {len(copies):,} in {groups:,} groups")
    return lines


def _classes(sets):
    """Returns how often each class is a candidate, the commonest and rarest."""
    count, mass = given_counts(sets)
    share = [f"{part:.1%}" for part in count / len(sets)]
    frame = pd.DataFrame({"class": sets.class_names, "in sets": count})
    frame = frame.assign(share=share, mass=mass.round().astype(int))
    frame = frame.sort_values("in sets", ascending=False, kind="stable")
    lines = frame.to_string(index=False, max_rows=12, max_colwidth=30)
    lines, unused = [lines], frame["class"][frame["in sets"] == 0].tolist()
    if unused:
        some = errors.first_five(unused)
        lines.append(f"{len(unused)} classes are in no set: {some}")
    return lines


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main, keras=False))
