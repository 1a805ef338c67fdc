"""An audit of made-up predictions, for the tests of the report."""

import numpy as np
import pandas as pd

from alim_keras.data.tables import Votes
from alim_keras.report.examine import examine

HOSTILE = (
    "<script>alert(1)</script>",
    "\"double\" & 'single'",
    "</script><img src=x onerror=alert(2)>",
    "\N{CAT FACE} emoji",
    "\u05d7\u05ea\u05d5\u05dc",
    "{{ 7 * 7 }}",
    "a|b",
    "never given",
)


def sample_audit(
    count=200,
    class_names=HOSTILE,
    *,
    kind="folds",
    bare=False,
    ids=None,
    review=20,
    name="sample <b>set</b>",
    noise=0.15,
):
    """Examines random sets and predictions; the same every time.

    The last class is never given and never predicted. With `bare` there is no
    history, no annotator, no true label and no candidate ratio.
    """
    rng = np.random.default_rng(0)
    num_classes = len(class_names)
    logits = rng.normal(size=(count, num_classes)) * 2.5
    logits[:, -1] = -20.0
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    order = np.argsort(-probabilities, axis=1)
    said = np.stack(
        [
            np.where(rng.random(count) < noise, order[:, 1], order[:, 0]),
            rng.integers(num_classes - 1, size=count),
        ]
    )
    given = np.zeros((count, num_classes), bool)
    given[np.arange(count), said] = True
    if ids is None:
        ids = [f"images/{row:05d}.png" for row in range(count)]
    if bare:
        kind = "table"
    return examine(
        probabilities,
        given,
        class_names=class_names,
        ids=ids,
        kind=kind,
        votes=None if bare else _votes(said),
        noise_rate=None if bare else 0.173,
        labels=None if bare else order[:, 0],
        history=None if bare else history(),
        name=name,
        review=review,
    )


def _votes(said):
    people, count = said.shape
    return Votes(
        rows=np.tile(np.arange(count), people),
        annotators=np.repeat(np.arange(people), count).astype("int32"),
        classes=said.ravel().astype("int32"),
        confidences=None,
        annotator_names=("ann", "<i>bob</i>", "never asked"),
    )


def history(epochs=40):
    """A metrics.csv as it is read; the accuracies of some epochs lack."""
    t = np.arange(1, epochs + 1)
    frame = pd.DataFrame(
        {
            "epoch": t,
            "loss": 6 * np.exp(-t / 12) + 1.5,
            "cls_loss": 2 * np.exp(-t / 9) + 0.3,
            "cont_loss": 4 * np.exp(-t / 15) + 1.1,
            "covering_rate": 0.95 - 0.5 * np.exp(-t / 8),
            "outside": np.where(t < 10, 0, 0.14 - 0.14 * np.exp((10 - t) / 9)),
            "lambda": np.where(t < 10, 0, 0.43 - 0.3 * np.exp((10 - t) / 9)),
            "noise_rate": np.where(t < 10, 0.0, 0.173),
            "pseudo_label_accuracy": np.nan,
            "test_accuracy": np.where(t % 5, np.nan, 0.8125),
        }
    )
    return frame.astype(object).where(frame.notna(), "")
