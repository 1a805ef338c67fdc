"""Small tables on disk, and what is read from them as plain values."""

import types

from alim_keras.data.tables import RULES
from alim_keras.data.tables import read_votes
from alim_keras.data.votes import sets_of_votes
from alim_keras.data.votes import true_labels


def written(folder, text, name="table.csv"):
    """Returns the path of a file that holds a text or bytes."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return str(path)


def read(path, **options):
    """Returns what stands in a table, by the names of its parts.

    `sets` are {id: names of candidates}, `answers` (item, annotator, label) of
    the votes that counted.
    """
    rules = {name: options.pop(name) for name in RULES if name in options}
    votes = read_votes(path, **options)
    names = options.get("class_names")
    candidates, counted = sets_of_votes(
        votes, class_names=names, source=str(path), **rules
    )
    names = candidates.class_names
    columns = ("item", "annotator", "label")
    return types.SimpleNamespace(
        candidates=candidates,
        ids=candidates.ids.tolist(),
        classes=names,
        sets={
            item: {names[number] for number in candidates.members(row)}
            for row, item in enumerate(candidates.ids.tolist())
        },
        votes=votes,
        counted=counted,
        answers=list(zip(*(counted[name].tolist() for name in columns))),
        labels=true_labels(votes, candidates),
        notes=counted.attrs["notes"],
    )
