"""The last step of every reader: from answers to `Labels`, by the rules."""

import os

import numpy as np

from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.checks import validate_candidates
from alim_keras.data.tables import votes
from alim_keras.data.tables.labels import Labels
from alim_keras.errors import DataError

# Bytes that the matrix of sets may take.
_LARGEST = 1 << 34


def settle(
    path,
    layout,
    answers,
    class_names,
    rules,
    findings,
    *,
    labels=None,
    images=None,
    features=None,
    provenance=None,
):
    """Returns the `Labels` of some answers, by the rules.

    Args:
        path: String.
        layout: String, for the provenance.
        answers: `Answers`.
        class_names: Strings.
        rules: `Rules`.
        findings: `Findings`.
        labels: int64 `(num_items,)`, or None.
        images: A sequence of `num_items`, or None.
        features: float32 `(num_items, d)`, or None.
        provenance: Dict of plain values to go before the reader's own.
    """
    size = len(answers.ids) * len(class_names)
    if size > _LARGEST:
        raise DataError(
            f"{len(answers.ids)} items with {len(class_names)} classes would "
            f"need {size / 2**30:.0f} GiB; are the classes the right ones?"
        )
    answers = votes.merge_duplicates(answers, rules.duplicates, findings)
    answers = votes.count_once(answers, findings)
    findings.count("votes", len(answers.rows))
    if answers.annotator_names is not None:
        findings.count("annotators", len(answers.annotator_names))
    answered = None
    if rules.answered is not None:
        values = images if features is None else features
        answered = rules.answered(answers.ids, values)
    sets, found, kept = votes.to_sets(
        answers, class_names, rules, findings, answered
    )
    left_out = np.delete(np.asarray(answers.ids, str), kept)
    ids = np.asarray(answers.ids, str)[kept]
    if not len(ids):
        raise DataError("the table is empty once empty sets are left out")
    findings.count("items", len(ids))
    said = sets
    if answered is not None:
        # Those without a set are open to all classes only until answered.
        is_open = answered[kept] & sets.all(1)
        said, of = sets[~is_open], ids[~is_open]
    if len(said):
        of = ids if said is sets else of
        validate_candidates(said, ids=of, form="multi_hot")
    candidates = CandidateSets(
        ids,
        sets,
        class_names,
        provenance={
            **(provenance or {}),
            "file": os.path.basename(path),
            "layout": layout,
            "rule": rules.describe(),
        },
        source=path,
    )
    if images is not None and len(kept) < len(answers.ids):
        if isinstance(images, np.ndarray):
            images = images[kept]
        elif hasattr(images, "select"):
            images = images.select(kept)
        else:
            images = [images[row] for row in kept]
    return Labels(
        ids=candidates.ids,
        candidates=candidates,
        votes=found,
        images=images,
        features=None if features is None else features[kept],
        labels=None if labels is None else labels[kept],
        notes=tuple(findings.notes),
        counts=dict(findings.counts),
        left_out=tuple(left_out.tolist()),
    )
