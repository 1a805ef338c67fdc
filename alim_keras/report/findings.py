"""What `check` says of data: one screen of text."""

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.report.classes import given_counts

# Classes shown in full; of more, the commonest and the rarest.
_CLASSES = 12


def describe(training, own=None):
    """Returns what was found of a training set as lines of text.

    Args:
        training: The `TrainingData`.
        own: The `OwnData` it was made of, or None.
    """
    data, given = training.data, training.given
    lines = [*training.notes]
    lines.append(
        f"{'items':<15}{len(data.ids):,}, {len(data.class_names)} classes, "
        f"from {given.source}"
    )
    lines += _set_sizes(given)
    lines += _truth(training)
    if training.votes is not None:
        lines.append(_votes(training.votes, len(data.ids)))
    if own is not None and own.scan is not None:
        lines += _images(own)
    elif data.kind == "features":
        lines.append(f"{'features':<15}{data.images.shape[-1]} for each item")
    lines += _classes(given)
    lines.append(f"{'content hash':<15}{given.content_hash}")
    return "\n".join(lines)


def _set_sizes(given):
    sizes = given.sets.sum(axis=1)
    common = [
        f"{size}: {np.mean(sizes == size):.1%}" for size in np.unique(sizes)[:6]
    ]
    found = given.statistics()
    return [
        f"{'set sizes':<15}min {found['size_min']}, mean "
        f"{found['size_mean']:.3f}, max {found['size_max']}; "
        f"{', '.join(common)}",
        f"{'all classes':<15}{found['share_full']:.2%} of the sets hold every "
        "class and say nothing",
    ]


def _truth(training):
    labels = training.data.labels
    if labels is None:
        return [f"{'true labels':<15}none known, none needed"]
    known = int(np.sum(labels >= 0))
    noise = training.given.statistics(labels)["realised_noise"]
    return [
        f"{'true labels':<15}{known:,} known; {noise:.2%} of their sets leave "
        "the truth out"
    ]


def _votes(votes, count):
    each = np.bincount(votes.annotators, minlength=len(votes.annotator_names))
    per_item = np.bincount(votes.rows, minlength=count)
    return (
        f"{'annotators':<15}{len(each):,} with {each.min():,} to "
        f"{each.max():,} votes each; {per_item.min()} to {per_item.max()} "
        f"votes an item, {len(votes):,} in all"
    )


def _images(own):
    """Says what the image files are like."""
    scan = own.scan
    good = scan.width > 0
    width, height = scan.width[good], scan.height[good]
    lines = []
    if good.any():
        grey = np.mean(scan.channels[good] == 1)
        shape = own.data.images.shape
        same = np.ptp(width) == 0 and np.ptp(height) == 0
        sides = (
            f"{width[0]} x {height[0]} pixels"
            if same
            else f"{width.min()} x {height.min()} to {width.max()} x "
            f"{height.max()} pixels"
        )
        lines.append(
            f"{'images':<15}{len(scan):,} of {scan.bytes.sum() / 2**20:,.1f} "
            f"MiB, {scan.num_files:,} different files, {sides}, {grey:.0%} "
            f"grey; "
            f"read as {shape[1]} x {shape[2]} x {shape[3]}"
        )
    if scan.identical:
        rows = sum(len(group) for group in scan.identical)
        group = scan.identical[0]
        names = first_five([own.files[row] for row in group[:6]])
        compared = "contents" if scan.compared else "links only"
        lines.append(
            f"{'identical':<15}{rows:,} images in {len(scan.identical):,} "
            f"groups show the same ({compared} compared), such as {names}"
        )
    return lines


def _classes(given):
    """Lists how often each class is a candidate."""
    count, mass = given_counts(given.sets)
    names = given.class_names
    order = np.argsort(-count, kind="stable")
    shown = order
    if len(order) > _CLASSES:
        half = _CLASSES // 2
        shown = [*order[:half], None, *order[-half:]]
    width = max(len(names[n]) for n in shown if n is not None)
    width = min(max(width, 5), 30)
    head = f"{'class':<{width}}  in sets   share    mass"
    lines = [f"{'classes':<15}{head}"]
    for number in shown:
        if number is None:
            text = f"... {len(order) - len(shown) + 1} more"
        else:
            text = (
                f"{names[number][:width]:<{width}}  {count[number]:>7,}  "
                f"{count[number] / len(given):>6.1%}  {mass[number]:>6,.0f}"
            )
        lines.append(f"{'':<15}{text}")
    unused = [names[n] for n in np.flatnonzero(count == 0)]
    if unused:
        lines.append(
            f"{'':<15}{len(unused)} classes are in no set: {first_five(unused)}"
        )
    return lines
