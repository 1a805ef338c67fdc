"""The text of `check`: one screen on a training set."""

import numpy as np

from alim_keras.errors import first_five
from alim_keras.report.classes import given_counts

# Classes listed in full; of more, the commonest and the rarest.
_CLASSES = 12


def describe(training):
    """Describes a training set as lines of text.

    Args:
        training: The `TrainingSet`, with candidates.
    """
    given = training.candidates
    lines = [
        *training.notes,
        _line(
            "items",
            f"{len(given):,}, {given.num_classes} classes, from {given.source}",
        ),
        *_set_sizes(given),
        _truth(training),
    ]
    if training.votes is not None:
        lines.append(_votes(training))
    lines += _images(training)
    lines += _classes(given)
    lines.append(_line("content hash", given.content_hash))
    return "\n".join(lines)


def _line(name, text):
    return f"{name:<15}{text}"


def _set_sizes(given):
    sizes = given.sizes
    common = [
        f"{size}: {np.mean(sizes == size):.1%}" for size in np.unique(sizes)[:6]
    ]
    full = np.mean(sizes == given.num_classes)
    return [
        _line(
            "set sizes",
            f"min {sizes.min()}, mean {sizes.mean():.3f}, max {sizes.max()}; "
            f"{', '.join(common)}",
        ),
        _line(
            "all classes",
            f"{full:.2%} of the sets hold every class and carry no information",
        ),
    ]


def _truth(training):
    labels = training.labels
    if labels is None or not (labels >= 0).any():
        return _line("true labels", "none known, none needed")
    rows = np.flatnonzero(labels >= 0)
    wrong = ~training.candidates.contains(rows, labels[rows])
    return _line(
        "true labels",
        f"{len(rows):,} known; {wrong.mean():.2%} of their sets leave the "
        "truth out",
    )


def _votes(training):
    votes = training.votes.dropna(subset=["annotator", "label"])
    each = votes["annotator"].value_counts()
    per_item = votes["item"].value_counts()
    fewest = per_item.min() if len(per_item) >= len(training.ids) else 0
    if not len(votes):
        return _line("annotators", "no votes")
    return _line(
        "annotators",
        f"{len(each):,} with {each.min():,} to {each.max():,} votes each; "
        f"{fewest} to {per_item.max()} votes an item, {len(votes):,} in all",
    )


def _images(training):
    shape, scan = training.images.shape, training.scan
    if training.kind == "features":
        return [_line("features", f"{shape[-1]} for each item")]
    size = " x ".join(map(str, shape[1:]))
    if scan is None:
        return [_line("images", f"{shape[0]:,} of {size}")]
    good = scan.width > 0
    width, height = scan.width[good], scan.height[good]
    sides = f"{width.min()} x {height.min()}"
    if np.ptp(width) or np.ptp(height):
        sides += f" to {width.max()} x {height.max()}"
    grey = np.mean(scan.channels[good] == 1)
    lines = [
        _line(
            "images",
            f"{len(scan):,} of {scan.bytes.sum() / 2**20:,.1f} MiB, "
            f"{scan.num_files:,} different files, {sides} pixels, {grey:.0%} "
            f"grey; read as {size}",
        )
    ]
    if scan.identical:
        rows = sum(len(group) for group in scan.identical)
        compared = "contents" if scan.compared else "links only"
        ids = [*training.ids, *training.test_ids]
        names = first_five([ids[row] for row in scan.identical[0][:6]])
        lines.append(
            _line(
                "identical",
                f"{rows:,} images in {len(scan.identical):,} groups show the "
                f"same ({compared} compared), such as {names}",
            )
        )
    return lines


def _classes(given):
    """Lists how often each class is a candidate."""
    count, mass = given_counts(given)
    names = given.class_names
    order = np.argsort(-count, kind="stable").tolist()
    half = _CLASSES // 2
    left_out = max(0, len(order) - _CLASSES)
    if left_out:
        order = [*order[:half], *order[-half:]]
    width = min(max(5, *(len(names[c]) for c in order)), 30)
    lines = [
        _line("classes", f"{'class':<{width}}  in sets   share    mass"),
        *(
            _line(
                "",
                f"{names[c][:width]:<{width}}  {count[c]:>7,}  "
                f"{count[c] / len(given):>6.1%}  {mass[c]:>6,.0f}",
            )
            for c in order
        ),
    ]
    if left_out:
        lines.insert(1 + half, _line("", f"... {left_out} more"))
    unused = [names[c] for c in np.flatnonzero(count == 0)]
    if unused:
        text = f"{len(unused)} classes are in no set: {first_five(unused)}"
        lines.append(_line("", text))
    return lines
