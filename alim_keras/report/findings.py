"""The text of `check`: one screen on a training set."""

import numpy as np
import pandas as pd

from alim_keras.errors import first_five
from alim_keras.report.labels import given_counts

# Classes listed in full; of more, the commonest and the rarest.
_CLASSES = 12


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
