"""Small tables on disk, and what is read from them as plain values."""

import json
import types

from alim_keras.data.tables import RULES
from alim_keras.data.tables import read_votes
from alim_keras.data.votes import sets_of_votes
from alim_keras.data.votes import true_labels


def written(folder, content, name=None):
    """Returns the path of a file that holds a text, bytes or JSON.

    Without a name its ending is the one of what the content begins with.
    """
    endings = {"[": "t.json", "{": "t.jsonl", "<": "t.xml"}
    if not isinstance(content, (str, bytes)):
        content, endings = json.dumps(content), {"[": "t.json", "{": "t.json"}
    name = name or endings.get(content[:1], "table.csv")
    path = folder / name
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    return str(path)


def read(path, **options):
    """Returns what stands in a table: `sets`, {id: names}, `answers`, ..."""
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
