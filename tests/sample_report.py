"""Made-up examples to audit, for the tests of the report."""

import json
import re

import numpy as np
import pandas as pd
from scipy.special import softmax

from alim_keras.data import tables
from alim_keras.report import examine

NAMES = ["cat", "dog", "elk"]
PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
SETS = np.array([[0, 1, 1], [0, 1, 0], [1, 1, 1]], bool)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"double\" & 'single'",
    "</script><img src=x onerror=alert(2)>",
    "\N{CAT FACE} emoji",
    "{{ 7 * 7 }}",
    "never given",
)


def small(**options):
    defaults = {"class_names": NAMES, "ids": ["a", "b", "c"], "kind": "folds"}
    return examine(PROBABILITIES, SETS, **{**defaults, **options})


def vote_frame(entries, people, class_names, ids=None):
    """Votes from triples (row, number of the annotator, class or None)."""
    rows, who, classes = zip(*entries, strict=True)
    return pd.DataFrame(
        {
            "item": [str(row) if ids is None else ids[row] for row in rows],
            "annotator": [people[one] for one in who],
            "label": [None if c is None else class_names[c] for c in classes],
            "confidence": np.nan,
        }
    )


def planted(count=2000, noise=0.1, only=None, seed=0, signal=4):
    """Honest predictions, sets of one or two, and the truth."""
    num_classes = 10
    stream = np.random.default_rng(seed)
    truth = stream.integers(0, num_classes, count)
    features = stream.normal(size=(count, num_classes))
    features += signal * np.eye(num_classes)[truth]
    # Bayes's rule for such features.
    probabilities = softmax(signal * features, axis=1)
    wrong = stream.random(count) < noise
    if only is not None:
        wrong &= truth == only
    other = (truth + stream.integers(1, num_classes, count)) % num_classes
    given = np.where(wrong, other, truth)
    sets = np.eye(num_classes, dtype=bool)[given]
    more = (truth + stream.integers(1, num_classes, count)) % num_classes
    sets[np.arange(count), more] |= stream.random(count) < 0.5
    return probabilities, sets, truth


def examined(data, **options):
    probabilities, sets, truth = data
    return examine(
        probabilities,
        sets,
        class_names=[f"c{i}" for i in range(sets.shape[1])],
        ids=[f"{i}.png" for i in range(len(sets))],
        **{"kind": "folds", "labels": truth, **options},
    )


def sample_audit(count=200, class_names=HOSTILE, bare=False, ids=None, **more):
    """Examines random sets and predictions; the same every time.

    The last class is never given and never predicted. With `bare` there is no
    history, no annotator and no true label.
    """
    rng = np.random.default_rng(0)
    num_classes = len(class_names)
    logits = rng.normal(size=(count, num_classes)) * 2.5
    logits[:, -1] = -20.0
    probabilities = softmax(logits, axis=1)
    order = np.argsort(-probabilities, axis=1)
    first = np.where(rng.random(count) < 0.4, order[:, 1], order[:, 0])
    said = np.stack([first, rng.integers(num_classes - 1, size=count)])
    given = np.eye(num_classes, dtype=bool)[said].any(axis=0)
    ids = ids or [f"images/{row:05d}.png" for row in range(count)]
    options = {"class_names": class_names, "ids": ids, "review": 20, **more}
    if bare:
        return examine(probabilities, given, kind="table", **options)
    entries = [
        (row, who, said[who, row]) for row in range(count) for who in (0, 1)
    ]
    return examine(
        probabilities,
        given,
        kind="folds",
        votes=vote_frame(entries, ["ann", "<i>bob</i>"], class_names, ids),
        noise_rate=0.173,
        labels=order[:, 0],
        history=history(),
        name="sample <b>set</b>",
        **options,
    )


def history(epochs=40):
    """A metrics.csv as it is read; the accuracies of some epochs lack."""
    t = np.arange(1, epochs + 1)
    frame = pd.DataFrame(
        {
            "epoch": t,
            "loss": 6 * np.exp(-t / 12) + 1.5,
            "covering_rate": 0.95 - 0.5 * np.exp(-t / 8),
            "noise_rate": np.where(t < 10, 0.0, np.inf),
            "pseudo_label_accuracy": np.nan,
            "test_accuracy": np.where(t % 5, np.nan, 0.8125),
        }
    )
    return frame.astype(object).where(frame.notna(), "")


def answers_of(path, class_names):
    """Returns what `--known_labels` makes of answers.csv, a dict."""
    ids, labels = tables.read_known_labels(str(path), class_names)
    names = [class_names[label] for label in labels]
    return dict(zip(ids.tolist(), names, strict=True))


def data_of(text):
    """Returns what the page's script reads."""
    (found,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text
    )
    return json.loads(found)
