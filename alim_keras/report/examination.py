"""The audit of candidate sets, from probabilities or from a model."""

import dataclasses
import functools

import keras
import numpy as np
import pandas as pd

from alim_keras import backend
from alim_keras.data import CandidateSets
from alim_keras.data import eval_dataset
from alim_keras.data import image_rows
from alim_keras.data.annotators import VoteArrays
from alim_keras.data.checks import row_ids
from alim_keras.data.pipeline import examples_of
from alim_keras.errors import DataError
from alim_keras.errors import first_rows
from alim_keras.methods import PartialLabelModel
from alim_keras.report import tables
from alim_keras.report.beliefs import BELIEFS
from alim_keras.report.beliefs import KINDS
from alim_keras.report.beliefs import Settler
from alim_keras.report.embeddings import MOST
from alim_keras.report.embeddings import survey
from alim_keras.report.labels import blocks
from alim_keras.report.labels import fill_untouched
from alim_keras.report.labels import label_rows
from alim_keras.report.results import Audit

_WORDS = {
    "known": "true labels that a person gave",
    "table": "pseudo labels that the model learnt together with these sets",
    "folds": "predictions of networks that were trained without these sets",
    "prediction": "predictions of one network",
}


def examine(
    probabilities,
    candidates,
    *,
    kind,
    class_names=None,
    ids=None,
    votes=None,
    noise_rate=None,
    labels=None,
    known=None,
    history=None,
    name=None,
    review=200,
    as_given=None,
    features=None,
    test=None,
):
    """Settles each example's label and ranks the sets that look wrong.

    Rows of kind `"table"` are the belief P(y | x, S) already; from
    predictions it follows by Bayes's rule, see `beliefs.Settler`. The label
    is the most probable class, the suspicion the belief outside the set.

    Args:
        probabilities: Floats `(N, C)`, rows that sum to 1.
        candidates: The sets, `CandidateSets` or multi-hot `(N, C)`.
        kind: One string or N: `"table"`, learnt pseudo labels; `"folds"`,
            predictions of networks that did not fit these sets;
            `"prediction"`, others; `"known"`, what a person gave.
        class_names: C strings. Defaults to those of the candidates, of an
            array the numbers from 0.
        ids: N strings. Defaults likewise.
        votes: Data frame with a row for each vote: `item` (an id),
            `annotator`, `label` (a class name) and, if known, `confidence`;
            or None.
        noise_rate: eta in `[0, 1)`, an `Estimate`, or None: learnt from
            predictions that are all `"folds"`, else 0.2.
        labels: Integers `(N,)`, the true labels, -1 where not known, for
            reporting only; or None.
        known: Bool `(N,)`, examples that a person has looked at already, which
            stay off the review list; or None.
        history: Data frame of metrics.csv, for the curves, or None.
        name: String, the name of what is examined, for the report.
        review: Length of the review list. Defaults to `200`.
        as_given: The sets as somebody gave them, where `candidates` hold known
            labels in the place of some: wrong sets are counted in them.
        features: Floats `(N, d)`, embeddings of the images: the nearest
            neighbours of an item to review are shown, a map of all items,
            near duplicates and outliers; or None.
        test: Test images, which near duplicates are looked for among: ids,
            strings `(n,)`, true labels, strings `(n,)`, and features
            `(n, d)`; or None.

    Returns:
        An `Audit`.

    Raises:
        DataError: If something does not fit; the message names it.

    Example:

    >>> audit = examine(
    ...     [[0.9, 0.1], [0.2, 0.8]], [[True, False], [True, False]],
    ...     class_names=["cat", "dog"], ids=["a", "b"], kind="folds",
    ...     noise_rate=0.3)
    >>> audit.labels["label"].tolist(), audit.labels["outside"].tolist()
    (['cat', 'dog'], [False, True])
    """
    sets = _as_sets(candidates, ids, class_names)
    if as_given is not None:
        as_given = _as_sets(as_given, sets.ids, sets.class_names)
    probabilities = np.asarray(probabilities)
    _check(sets, probabilities, kind, labels, known)
    sources = np.empty(len(sets), object)
    sources[:] = kind
    if votes is not None:
        votes = VoteArrays.of(votes, sets.ids, sets.class_names)
    settler = Settler(noise_rate, probabilities, sets, sources, votes)
    believe = functools.partial(_believe, probabilities, sets, sources, settler)
    frame, vote_beliefs = _settle(believe, sets, sources, votes)
    label = pd.Index(sets.class_names).get_indexer(frame["label"])
    outside = frame["outside"].to_numpy()
    counts, pairs = tables.confusions(sets, label, outside)
    summary = {"name": name, **_summary(sets, frame)}
    summary["looked_at"] = 0 if known is None else int(np.sum(known))
    if noise_rate is not None or not np.isin(sources, BELIEFS).all():
        summary["noise_rate"] = settler.value
        summary["noise_rate_reason"] = settler.reason
        summary["temperature"] = settler.temperature
        summary["noise_rate_learnt"] = settler.learnt
    if labels is not None:
        labels = np.asarray(labels)
        summary.update(tables.count_known(labels, as_given or sets))
        # Labels that the audit was told are no test of it.
        compared = (labels >= 0) & (sources != "known")
        if compared.any():
            right = (label == labels)[compared]
            summary["compared_labels"] = len(right)
            summary["settled_accuracy"] = float(right.mean())
    annotators = None
    if votes is not None:
        annotators = tables.annotators(
            votes, label, vote_beliefs, sets.class_names
        )
    chosen = tables.review(frame, label, review, known)
    rows = pd.Index(frame["id"]).get_indexer(chosen["id"])
    names, chances = [], []
    for block in blocks(len(rows), sets.num_classes):
        found = tables.choices(*believe(rows[block]), sets.class_names)
        names += found[0]
        chances += found[1]
    chosen["choices"], chosen["chances"] = names, chances
    settled = frame["label"].to_numpy(object)
    surroundings = survey(features, sets.ids, settled, test)
    near = [[]] * len(rows)
    if surroundings is not None:
        near = surroundings.near[rows]
    chosen["neighbours"] = [sets.ids[places].tolist() for places in near]
    return Audit(
        labels=frame,
        review=chosen,
        classes=tables.classes(sets, label, outside),
        confusions=pairs,
        confusion_counts=counts,
        annotators=annotators,
        summary=summary,
        history=history,
        class_names=list(sets.class_names),
        votes=votes,
        identity=sets.content_hash,
        surroundings=surroundings,
    )


def _check(sets, probabilities, kind, labels, known):
    """Raises `DataError` for arguments of `examine` that do not fit."""
    if probabilities.shape != sets.shape:
        raise DataError(
            f"`probabilities` must be {sets.shape}, a row for each example and "
            f"a column for each class. Received: {probabilities.shape}"
        )
    one_each = {"labels": labels, "known": known}
    if not isinstance(kind, str):
        one_each["kind"] = kind
    for argument, values in one_each.items():
        if values is not None and np.shape(values) != (len(sets),):
            raise DataError(
                f"Argument `{argument}` must be one value for each of "
                f"{len(sets)} examples. Received: shape {np.shape(values)}"
            )
    unknown = {kind} if isinstance(kind, str) else set(kind)
    unknown -= set(KINDS)
    if unknown:
        raise DataError(
            f"Argument `kind` must be one of {KINDS}, or one for each example. "
            f"Received: {sorted(map(str, unknown))}"
        )
    if labels is not None:
        labels = np.asarray(labels)
        if labels.dtype.kind not in "iu" or not (
            -1 <= labels.min() <= labels.max() < sets.num_classes
        ):
            raise DataError(
                "True labels must be integers from 0 to "
                f"{sets.num_classes - 1}, or -1 where the truth is not known. "
                f"Received: {labels.dtype}, {labels.min()} to {labels.max()}"
            )


def _believe(probabilities, sets, sources, settler, rows):
    """Returns of some rows P(y | x, S) and S, `(n, C)`."""
    weights = sets.rows(rows)
    predicted = ~np.isin(sources[rows], BELIEFS)
    belief = np.asarray(probabilities[rows], "float32")
    _check_rows(belief, predicted, rows, sets.ids)
    belief = fill_untouched(belief, weights)
    if predicted.any():
        settled = settler.belief(rows, belief, weights)
        belief = np.where(predicted[:, None], settled, belief)
    return belief, weights


def _settle(believe, sets, sources, votes):
    """Returns labels.csv as a frame, and the belief in each vote or None."""
    frames, names = [], sets.class_names
    vote_beliefs = None if votes is None else np.zeros(len(votes))
    for rows in blocks(*sets.shape):
        belief, weights = believe(rows)
        found = sets.ids[rows], belief, weights, names, sources[rows]
        frames.append(label_rows(*found, sets.weights is not None))
        if votes is not None:
            span = votes.of_rows(rows)
            own = votes.rows[span] - rows[0]
            shares = belief / np.maximum(belief.sum(axis=1), 1e-30)[:, None]
            vote_beliefs[span] = shares[own, votes.classes[span]]
    return pd.concat(frames, ignore_index=True), vote_beliefs


def _summary(sets, labels):
    """Returns `Audit.summary`, None where `examine` may know more."""
    kinds = {kind: int((labels["source"] == kind).sum()) for kind in KINDS}
    kinds = {kind: count for kind, count in kinds.items() if count}
    suspicion = labels["suspicion"].astype("float64")
    return {
        "num_examples": len(sets),
        "num_classes": sets.num_classes,
        "kind": "; ".join(_WORDS[kind] for kind in kinds),
        "kinds": kinds,
        "outside": int(labels["outside"].sum()),
        "undecided": int(labels["undecided"].sum()),
        "suspect": float(suspicion.sum()),
        "mean_set_size": float(sets.sizes.mean()),
        "known_labels": 0,
        "compared_labels": 0,
        **dict.fromkeys(
            "noise_rate noise_rate_reason noise_rate_learnt temperature "
            "settled_accuracy realised_noise realised_noise_low "
            "realised_noise_high".split()
        ),
    }


def _as_sets(sets, ids, class_names):
    """Returns `CandidateSets`, with the ids and names that are given."""
    if not isinstance(sets, CandidateSets):
        if ids is None:
            ids = [str(row) for row in range(len(sets))]
        return CandidateSets.from_dense(sets, ids, class_names)
    names = {"ids": ids, "class_names": class_names}
    names = {name: value for name, value in names.items() if value is not None}
    return dataclasses.replace(sets, **names) if names else sets


def _check_rows(probabilities, predicted, rows, ids):
    """Raises `DataError` for rows that are no distribution."""
    sound = (np.isfinite(probabilities) & (probabilities >= 0)).all(axis=1)
    # Pseudo labels may be rounded.
    off = np.abs(probabilities.sum(axis=1) - 1) > 0.01
    wrong = ~sound | (predicted & off)
    if wrong.any():
        raise DataError(
            "Probabilities must be finite, not negative, and of a prediction "
            "sum to 1: put a softmax behind logits. Received: others for "
            f"{first_rows(rows[wrong], ids)}"
        )


def audit(model, dataset, *, class_names=None, ids=None, folds=None, **options):
    """Settles each training example's label and ranks sets that look wrong.

    Labels come from `folds` where these are given; else from the pseudo
    labels of a model that keeps some; else from the model's predictions. A
    network agrees with the sets that it was trained on, wrong ones included.

    Args:
        model: A `PartialLabelModel`, or any `keras.Model` from images to
            class probabilities `(B, C)`; with `folds` it may be None.
        dataset: The data set that `train_dataset` or `eval_dataset` returned,
            or a pair (images, candidates): all N examples, in the order of
            the pseudo labels' rows.
        class_names: C strings. Defaults to those of the candidates.
        ids: N strings. Defaults likewise, or to the numbers from 0.
        folds: Floats `(N, C)`, probabilities from networks that were trained
            without the example they predict, see `noise_rate.out_of_fold`.
        **options: Those of `report.examine`. `features` defaults to the
            model's own, those before its classifier, of up to 100,000
            examples; None does without.

    Returns:
        An `Audit`.

    Raises:
        DataError: If the data do not fit the model.

    Example:

    >>> audit = alim_keras.audit(model, train, class_names=["cat", "dog"])
    >>> audit.labels[audit.labels["outside"]]
    >>> text = audit.to_html("report.html", images)
    """
    images, sets = examples_of(dataset)
    if folds is not None:
        kind, probabilities = "folds", np.asarray(folds, "float32")
    elif isinstance(model, PartialLabelModel) and model.keeps_pseudo_labels:
        kind, table = "table", model.pseudo_label_table
        if table.num_examples != len(sets):
            raise DataError(
                "The data set must hold the examples that the model was "
                "trained on, in their order. Received: "
                f"{len(sets)} examples, a table of {table.num_examples}"
            )
        probabilities = np.asarray(model.pseudo_labels.numpy(), "float32")
        rate = float(table.noise_rate) or None
        options = {"noise_rate": rate, **options}
    else:
        kind = "prediction"
        probabilities = _predict(model, images)
    if ids is None and np.array_equal(sets.ids, row_ids(len(sets))):
        # The sets were given without ids.
        ids = [str(row) for row in range(len(sets))]
    options |= {"class_names": class_names, "ids": ids}
    if "features" not in options and isinstance(model, PartialLabelModel):
        options["features"] = embedded(model, images)
    return examine(probabilities, sets, kind=kind, **options)


def _predict(model, images):
    """Returns the model's probabilities for all examples, `(N, C)`."""
    parts = []
    for rows in blocks(len(images), int(np.prod(images.shape[1:]))):
        found = model.predict(image_rows(images, rows), 256, verbose=0)
        parts.append(np.asarray(found, "float32"))
    return np.concatenate(parts)


def embedded(model, images):
    """Returns the features of N images before the classifier, `(N, d)`.

    They are float16; None of more images than a map has. For a model of
    feature vectors they are the images.
    """
    count = len(images)
    if model.takes_features:
        return np.reshape(images, (count, -1))
    if count > MOST:
        return None

    def embed(pixels):
        features = model.backbone(model.prepare(pixels), training=False)
        return keras.ops.cast(features, "float32")

    embed = backend.compiled(embed, model.variables)
    found = np.zeros((count, model.feature_dim), "float16")
    largest, labels = np.finfo("float16").max, np.zeros(count, "int64")
    for x, _ in eval_dataset(images, labels, model.num_classes):
        rows = keras.ops.convert_to_numpy(x["index"])
        features = keras.ops.convert_to_numpy(embed(x["image"]))
        found[rows] = np.clip(features, -largest, largest)
    return found
