"""The text of `check`: one screen on a training set."""

import numpy as np

from alim_keras.errors import first_five
from alim_keras.report.classes import given_counts

# Classes listed in full; of more, the commonest and the rarest.
_CLASSES = 12


def describe(training):
    """Describes a `TrainingSet` with candidates, as lines of text."""
    given, sizes = training.candidates, training.candidates.sizes
    common = ", ".join(
        f"{size}: {np.mean(sizes == size):.1%}" for size in np.unique(sizes)[:6]
    )
    full = np.mean(sizes == given.num_classes)
    lines = {
        "items": f"{len(given):,}, {given.num_classes} classes, from "
        f"{given.source}",
        "set sizes": f"min {sizes.min()}, mean {sizes.mean():.3f}, max "
        f"{sizes.max()}; {common}",
        "all classes": f"{full:.2%} of the sets hold every class and carry no "
        "information",
        "true labels": _truth(training),
        **_votes(training),
        **_images(training),
        "classes": _classes(given),
        "content hash": given.content_hash,
    }
    return "\n".join(
        [
            *training.notes,
            *(f"{name:<15}{text}" for name, text in lines.items()),
        ]
    )


def _truth(training):
    labels = training.labels
    if labels is None or not (labels >= 0).any():
        return "none known, none needed"
    rows = np.flatnonzero(labels >= 0)
    wrong = ~training.candidates.contains(rows, labels[rows])
    return (
        f"{len(rows):,} known; {wrong.mean():.2%} of their sets leave the "
        + ("truth out")
    )


def _votes(training):
    if training.votes is None:
        return {}
    votes = training.votes.dropna(subset=["annotator", "label"])
    each = votes["annotator"].value_counts()
    per_item = votes["item"].value_counts().reindex(training.ids, fill_value=0)
    if not len(votes):
        return {"annotators": "no votes"}
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
    sides = f"{width.min()} x {height.min()}"
    if np.ptp(width) or np.ptp(height):
        sides += f" to {width.max()} x {height.max()}"
    grey = np.mean(scan.channels[good] == 1)
    lines = {
        "images": f"{len(scan):,} of {scan.bytes.sum() / 2**20:,.1f} MiB, "
        f"{scan.num_files:,} different files, {sides} pixels, {grey:.0%} grey; "
        f"read as {size}"
    }
    if scan.identical:
        rows = sum(len(group) for group in scan.identical)
        compared = "contents" if scan.compared else "links only"
        ids = [*training.ids, *training.test_ids]
        names = first_five([ids[row] for row in scan.identical[0][:6]])
        lines["identical"] = (
            f"{rows:,} images in {len(scan.identical):,} groups show the same "
            f"({compared} compared), such as {names}"
        )
    return lines


def _classes(given):
    """Returns how often each class is a candidate, a line for each."""
    count, mass = given_counts(given)
    names = given.class_names
    order = np.argsort(-count, kind="stable").tolist()
    left_out = max(0, len(order) - _CLASSES)
    shown = order
    if left_out:
        shown = [*order[: _CLASSES // 2], *order[-(_CLASSES // 2) :]]
    width = min(max(5, *(len(names[c]) for c in shown)), 30)
    lines = [f"{'class':<{width}}  in sets   share    mass"]
    for c in shown:
        lines.append(
            f"{names[c][:width]:<{width}}  {count[c]:>7,}  "
            f"{count[c] / len(given):>6.1%}  {mass[c]:>6,.0f}"
        )
    if left_out:
        lines.insert(1 + _CLASSES // 2, f"... {left_out} more")
    unused = [names[c] for c in np.flatnonzero(count == 0)]
    if unused:
        lines.append(
            f"{len(unused)} classes are in no set: {first_five(unused)}"
        )
    return f"\n{'':<15}".join(lines)
