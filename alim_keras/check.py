"""Reads labels and images, trains nothing, says what was found.

It takes training's flags: the line that is checked is the line that trains.
Ends with 3 if training would refuse the data.
"""

import sys
import warnings

import numpy as np
import pandas as pd

from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app import load
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.data import known_data
from alim_keras.errors import first_five
from alim_keras.report.labels import given_counts

# Classes listed in full; of more, the commonest and the rarest.
_CLASSES = 12
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
        print(describe(training))
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


def describe(training):
    """Describes a `TrainingSet` with candidates, as lines of text."""
    parts = {**_votes(training), **_images(training)}
    parts["classes"] = _classes(training.candidates)
    lines = [*training.notes, training.candidates.describe(training.labels)]
    lines += [f"{name:<16}{text}" for name, text in parts.items()]
    return "\n".join(lines)


def _votes(training):
    if training.votes is None:
        return {}
    votes = training.votes.dropna(subset=["annotator", "label"])
    if not len(votes):
        return {"annotators": "no votes"}
    each = votes["annotator"].value_counts()
    per_item = votes["item"].value_counts().reindex(training.ids, fill_value=0)
    return {
        "annotators": f"{len(each):,} with {each.min():,} to {each.max():,} "
        f"votes each; {per_item.min()} to {per_item.max()} votes an item, "
        f"{len(votes):,} in all"
    }


def _images(training):
    shape, scan = training.images.shape, training.scan
    if training.kind == "features":
        return {"features": f"{shape[-1]} for each item"}
    size = " x ".join(map(str, shape[1:]))
    if scan is None:
        return {"images": f"{shape[0]:,} of {size}"}
    good = scan[scan["problem"].isna()]
    smallest = " x ".join(map(str, good[["width", "height"]].min()))
    largest = " x ".join(map(str, good[["width", "height"]].max()))
    grey = (good["channels"] == 1).mean()
    lines = {
        "images": f"{len(scan):,} of {scan['bytes'].sum() / 2**20:,.1f} MiB, "
        f"{smallest} to {largest} pixels, {grey:.0%} grey; read as {size}"
    }
    copies = good["copies"][good.duplicated("copies", keep=False)]
    if len(copies):
        lines["identical"] = f"{len(copies):,} in {copies.nunique():,} groups"
    return lines


def _classes(given):
    """Returns how often each class is a candidate, the commonest first."""
    count, mass = given_counts(given)
    frame = pd.DataFrame({"class": given.class_names, "in sets": count})
    frame["share"], frame["mass"] = count / len(given), mass
    frame = frame.sort_values("in sets", ascending=False, kind="stable")
    forms = {"in sets": "{:,}", "share": "{:.1%}", "mass": "{:,.0f}"}
    lines = frame.to_string(
        index=False,
        formatters={name: form.format for name, form in forms.items()},
        max_rows=_CLASSES,
        max_colwidth=30,
    ).split("\n")
    unused = [given.class_names[c] for c in np.flatnonzero(count == 0)]
    if unused:
        lines.append(
            f"{len(unused)} classes are in no set: {first_five(unused)}"
        )
    return f"\n{'':<16}".join(lines)


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main, keras=False))
