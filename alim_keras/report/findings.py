"""The text of `check`: one screen on a training set."""

import numpy as np

from alim_keras.errors import first_five
from alim_keras.report.classes import given_counts

# Classes listed in full; of more, the commonest and the rarest.
_CLASSES = 12


def describe(training):
    """Describes a `TrainingSet` with candidates, as lines of text."""
    lines = {
        **_votes(training),
        **_images(training),
        "classes": _classes(training.candidates),
    }
    return "\n".join(
        [
            *training.notes,
            training.candidates.describe(training.labels),
            *(f"{name:<16}{text}" for name, text in lines.items()),
        ]
    )


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
    good = scan.width > 0
    width, height = scan.width[good], scan.height[good]
    grey = np.mean(scan.channels[good] == 1)
    lines = {
        "images": f"{len(scan):,} of {scan.bytes.sum() / 2**20:,.1f} MiB, "
        f"{width.min()} x {height.min()} "
        f"to {width.max()} x {height.max()} pixels, {grey:.0%} grey; read as "
        f"{size}"
    }
    if scan.identical:
        rows = sum(len(group) for group in scan.identical)
        lines["identical"] = f"{rows:,} in {len(scan.identical):,} groups"
    return lines


def _classes(given):
    """Returns how often each class is a candidate, a line for each."""
    count, mass = given_counts(given)
    names = given.class_names
    shown = np.argsort(-count, kind="stable").tolist()
    left_out = len(shown) - _CLASSES
    if left_out > 0:
        shown = [*shown[: _CLASSES // 2], *shown[-(_CLASSES // 2) :]]
    width = min(max(5, *(len(names[c]) for c in shown)), 30)
    lines = [f"{'class':<{width}}  in sets   share    mass"]
    for c in shown:
        lines.append(
            f"{names[c][:width]:<{width}}  {count[c]:>7,}  "
            f"{count[c] / len(given):>6.1%}  {mass[c]:>6,.0f}"
        )
    if left_out > 0:
        lines.insert(1 + _CLASSES // 2, f"... {left_out} more")
    unused = [names[c] for c in np.flatnonzero(count == 0)]
    if unused:
        lines.append(
            f"{len(unused)} classes are in no set: {first_five(unused)}"
        )
    return f"\n{'':<16}".join(lines)
