"""The audit of candidate sets, from probabilities or from a model."""

import dataclasses
import os

import keras
import numpy as np
import pandas as pd

from alim_keras.data import CandidateSets
from alim_keras.data import eval_dataset
from alim_keras.data.annotators import VoteArrays
from alim_keras.data.annotators import blocks
from alim_keras.data.checks import default_ids
from alim_keras.data.checks import validate_labels
from alim_keras.data.images import image_rows
from alim_keras.data.pipeline import examples_of
from alim_keras.errors import DataError
from alim_keras.errors import first_rows
from alim_keras.files import write_atomically
from alim_keras.methods import PartialLabelModel
from alim_keras.noise_rate import inference
from alim_keras.report import beliefs
from alim_keras.report import embeddings
from alim_keras.report import tables
from alim_keras.report.labels import label_rows
from alim_keras.report.labels import write_table

# What a belief may come from, in words.
_WORDS = {
    "known": "true labels that a person gave",
    "table": "pseudo labels that the model learnt together with these sets",
    "folds": "predictions of networks that were trained without these sets",
    "prediction": "predictions of one network",
}


@dataclasses.dataclass(eq=False)
class Audit:
    """The result of `examine`: pandas data frames, and the report.

    Attributes:
        labels: A row per example, see `labels.label_rows`.
        review: The examples to look at first, see `tables.review`.
        classes, confusions, annotators: See the functions in `tables`; the
            last is None without votes.
        confusion_counts: Sparse floats `(C, C)`, see `tables.confusions`.
        summary: Dict of plain values, None where they are not known: `name`,
            `num_examples`, `num_classes`, `outside`, `undecided`, `suspect`
            (the expected number of wrong sets), `mean_set_size`,
            `noise_rate`, `noise_rate_reason`, `noise_rate_learnt` (from the
            sets, not told), `temperature`, `kind` (in words), `kinds` (how many
            examples of each source), `looked_at` (by a person already),
            `known_labels` (how many are known), `realised_noise` (of these),
            `realised_noise_low` to `_high` (its 95 % interval; one point, if
            all are known), `settled_accuracy`, `compared_labels` (of so many).
        history: Data frame of metrics.csv, or None.
        class_names: C strings.
        votes: `data.annotators.VoteArrays`, or None.
        identity: String, the hash of the sets: a page keeps answers by it.
        surroundings: `embeddings.Surroundings`, or None without features.
    """

    labels: object
    review: object
    classes: object
    confusions: object
    confusion_counts: object
    annotators: object
    summary: dict
    history: object
    class_names: list
    votes: object
    identity: str
    surroundings: object = None

    @property
    def confusion_matrix(self):
        """Floats `(C, C)`: rows what was given, columns what was settled."""
        return self.confusion_counts.toarray()

    def figures(self):
        """Returns the result as a dict: the name of a figure, and its text.

        Each stands on the page once, under its name.
        """
        facts = self.summary
        total, known = facts["num_examples"], facts["known_labels"]

        def counted(name):
            return f"{facts[name]:,.0f} ({tables.percent(facts[name] / total)})"

        figures = {
            "Items": f"{total:,}",
            "Classes": f"{facts['num_classes']:,}",
            "Settled labels outside their set": counted("outside"),
            "Settled labels undecided": counted("undecided"),
            "Sets expected to miss the true class": counted("suspect"),
            "Listed for review": f"{len(self.review):,}",
            "Looked at already": f"{facts['looked_at']:,}",
            "Settled labels are": facts["kind"],
        }
        if "folds" not in facts["kinds"]:
            figures["Settled labels are"] += (
                ". A network can have learnt the mistakes of sets that it was "
                "trained on; an audit with --folds asks networks that never "
                "saw the set"
            )
        if facts["noise_rate"] is not None and not facts["noise_rate_learnt"]:
            rate = tables.percent(facts["noise_rate"])
            reason = facts["noise_rate_reason"]
            figures["Noise rate assumed"] = f"{rate}: {reason}"
        if known:
            share = facts["realised_noise"]
            figures["Sets that miss a known true label"] = (
                f"{share * known:,.0f} of {known:,} ({tables.percent(share)})"
            )
        if 0 < known < total:
            ends = facts["realised_noise_low"], facts["realised_noise_high"]
            low, high = map(tables.percent, ends)
            figures["The same of all sets"] = (
                f"{low} to {high}, if those items are a random sample"
            )
        return figures

    def describe(self):
        """Returns `figures` as lines of text, for a terminal."""
        lines = (f"{name}: {text}" for name, text in self.figures().items())
        return "\n".join(lines)

    def write(self, folder):
        """Writes the tables into a folder; returns a list of the paths.

        In review.csv the settled label is called `settled`, so that nobody
        takes it for the true one.
        """
        frames = {
            "labels.csv": self.labels,
            "review.csv": self.review.rename(columns={"label": "settled"}),
            "noise_by_class.csv": self.classes,
            "confusions.csv": self.confusions,
            "annotators.csv": self.annotators,
        }
        if self.surroundings is not None:
            frames["duplicates.csv"] = self.surroundings.duplicates
            frames["outliers.csv"] = self.surroundings.outliers
        paths = []
        for name, frame in frames.items():
            if frame is not None:
                paths.append(os.path.join(folder, name))
                write_table(paths[-1], frame)
        return paths

    def to_html(self, path=None, images=None, review_images=200):
        """Returns the report as one self-contained page of HTML, a string.

        Args:
            path: File to write it to as well; a folder is a `ConfigError`.
            images: The N pictures, uint8 `(N, H, W, channels)` or
                `DiskImages`; another number of them is a `DataError`.
            review_images: Rows of the review list on the page, at most.
                Defaults to `200`.
        """
        # Imported here: it draws, and takes a second.
        from alim_keras.report.page import page
        from alim_keras.report.page import pictures

        text = page(self, pictures(images, len(self.labels)), review_images)
        if path is not None:
            write_atomically(path, text)
        return text


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

    `beliefs.Settler` has the belief P(y | x, S). The label is the most
    probable class, the suspicion the belief outside the set.

    Args:
        probabilities: Floats `(N, C)`, rows that sum to 1.
        candidates: The sets, `CandidateSets` or multi-hot `(N, C)`.
        kind: One string or N: `"table"`, learnt pseudo labels; `"folds"`,
            predictions of networks that did not fit these sets;
            `"prediction"`, others; `"known"`, what a person gave.
        class_names: C strings. Defaults to those of the candidates, or to
            the numbers from 0.
        ids: N strings. Defaults likewise.
        votes: Data frame with a row for each vote: `item` (an id),
            `annotator`, `label` (a class name) and, if known, `confidence`.
        noise_rate: eta in `[0, 1)`, an `Estimate`, or None: learnt from
            predictions that are all `"folds"`, else 0.2.
        labels: Integers `(N,)`, the true labels, -1 where not known, for
            reporting only.
        known: Bool `(N,)`, examples that a person has looked at already, which
            stay off the review list.
        history: Data frame of metrics.csv, for the curves.
        name: String, the name of what is examined, for the report.
        review: Length of the review list. Defaults to `200`.
        as_given: The sets as somebody gave them, where `candidates` hold known
            labels in the place of some: wrong sets are counted in them.
        features: Floats `(N, d)`, embeddings of the images, for a map, near
            duplicates, outliers and the neighbours of items to review.
        test: Of test images, to find near duplicates of: ids, strings
            `(n,)`, true labels, strings `(n,)`, and features `(n, d)`.

    Returns:
        An `Audit`.

    Raises:
        DataError: If something does not fit.

    Example:

    >>> audit = examine(
    ...     [[0.9, 0.1], [0.2, 0.8]], [[True, False], [True, False]],
    ...     class_names=["cat", "dog"], ids=["a", "b"], kind="folds",
    ...     noise_rate=0.3)
    >>> audit.labels["label"].tolist(), audit.labels["outside"].tolist()
    (['cat', 'dog'], [False, True])
    """
    sets = _as_sets(candidates, ids, class_names)
    given = sets
    if as_given is not None:
        given = _as_sets(as_given, sets.ids, sets.class_names)
    probabilities = np.asarray(probabilities)
    kinds = [kind] * len(sets) if isinstance(kind, str) else kind
    _check(sets, probabilities, kinds, labels, known)
    if labels is not None:
        labels = validate_labels(labels, sets.num_classes, sets.ids, True)
    sources = np.array(kinds, object)
    if votes is not None:
        votes = VoteArrays.of(votes, sets.ids, sets.class_names)
    settler = beliefs.Settler(noise_rate, probabilities, sets, sources, votes)
    frame = pd.concat(
        [
            label_rows(sets, rows, settler.belief(rows), sources[rows])
            for rows in blocks(sets.shape)
        ],
        ignore_index=True,
    )
    label = pd.Index(sets.class_names).get_indexer(frame["label"])
    outside = frame["outside"].to_numpy()
    matrix, pairs = tables.confusions(sets, label, outside)
    counts = {kind: int((sources == kind).sum()) for kind in _WORDS}
    counts = {kind: count for kind, count in counts.items() if count}
    summary = {
        "name": name,
        "num_examples": len(sets),
        "num_classes": sets.num_classes,
        "outside": int(outside.sum()),
        "undecided": int(frame["undecided"].sum()),
        "suspect": float(frame["suspicion"].astype("float64").sum()),
        "mean_set_size": float(sets.sizes.mean()),
        "looked_at": 0 if known is None else int(np.sum(known)),
        "kind": "; ".join(_WORDS[kind] for kind in counts),
        "kinds": counts,
        "noise_rate": settler.value,
        "noise_rate_reason": settler.reason,
        "noise_rate_learnt": settler.learnt,
        "temperature": settler.temperature,
        **tables.count_known(label, labels, given, sources == "known"),
    }
    annotators = None
    if votes is not None:
        annotators = tables.annotators(votes, label, sets.class_names)
    chosen = tables.review(frame, label, review, known)
    rows = pd.Index(frame["id"]).get_indexer(chosen["id"])
    choices = []
    for block in blocks((len(rows), sets.num_classes)):
        part = rows[block]
        choices += tables.choices(sets, part, settler.belief(part))
    chosen["choices"] = [names for names, _ in choices]
    chosen["chances"] = [shares for _, shares in choices]
    chosen["votes"] = tables.votes_of(votes, rows, sets.class_names)
    settled = frame["label"].to_numpy(object)
    surroundings = embeddings.survey(features, sets.ids, settled, test)
    near = [[]] * len(rows)
    if surroundings is not None:
        near = surroundings.near[rows]
    chosen["neighbours"] = [sets.ids[places].tolist() for places in near]
    return Audit(
        labels=frame,
        review=chosen,
        classes=tables.classes(sets, label, outside),
        confusions=pairs,
        confusion_counts=matrix,
        annotators=annotators,
        summary=summary,
        history=history,
        class_names=list(sets.class_names),
        votes=votes,
        identity=sets.content_hash,
        surroundings=surroundings,
    )


def _check(sets, probabilities, kinds, labels, known):
    """Raises `DataError` for arguments of `examine` that do not fit."""
    if probabilities.shape != sets.shape:
        raise DataError(
            f"`probabilities` must be {sets.shape}, a row for each example and "
            f"a column for each class. Received: {probabilities.shape}"
        )
    one_each = {"kind": kinds, "labels": labels, "known": known}
    for argument, values in one_each.items():
        if values is not None and np.shape(values) != (len(sets),):
            raise DataError(
                f"Argument `{argument}` must be one value for each of "
                f"{len(sets)} examples. Received: shape {np.shape(values)}"
            )
    unknown = set(kinds) - set(_WORDS)
    if unknown:
        raise DataError(
            f"Argument `kind` must be one of {tuple(_WORDS)}, or one for "
            f"each example. Received: {sorted(map(str, unknown))}"
        )
    sound = (np.isfinite(probabilities) & (probabilities >= 0)).all(axis=1)
    # Pseudo labels may be rounded, or zero where no step has touched them.
    off = np.abs(probabilities.sum(axis=1) - 1) > 0.01
    wrong = np.flatnonzero(~sound | (off & ~np.isin(kinds, beliefs.BELIEFS)))
    if len(wrong):
        raise DataError(
            "Probabilities must be finite, not negative, and of a prediction "
            "sum to 1: put a softmax behind logits. Received: others for "
            f"{first_rows(wrong, sets.ids)}"
        )


def _as_sets(sets, ids, class_names):
    """Returns `CandidateSets`, with the ids and names that are given."""
    if not isinstance(sets, CandidateSets):
        if ids is None:
            ids = [str(row) for row in range(len(sets))]
        return CandidateSets.from_dense(sets, ids, class_names)
    ids = sets.ids if ids is None else ids
    class_names = sets.class_names if class_names is None else class_names
    return dataclasses.replace(sets, ids=ids, class_names=class_names)


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
    if ids is None and np.array_equal(sets.ids, default_ids(len(sets), "row")):
        # The sets were given without ids.
        ids = [str(row) for row in range(len(sets))]
    options |= {"class_names": class_names, "ids": ids}
    if "features" not in options and isinstance(model, PartialLabelModel):
        options["features"] = embedded(model, images)
    return examine(probabilities, sets, kind=kind, **options)


def _predict(model, images):
    """Returns the model's probabilities for all examples, `(N, C)`."""
    shape = len(images), int(np.prod(images.shape[1:]))
    parts = [
        model.predict(image_rows(images, rows), 256, verbose=0)
        for rows in blocks(shape)
    ]
    return np.concatenate(parts).astype("float32")


def embedded(model, images):
    """Returns the features of N images before the classifier, `(N, d)`.

    They are float16; None of more images than a map has. For a model of
    feature vectors they are the images.
    """
    if model.takes_features:
        return np.reshape(images, (len(images), -1))
    if len(images) > embeddings.MOST:
        return None
    largest = np.finfo("float16").max

    def embed(x):
        features = model.backbone(model.prepare(x["image"]), training=False)
        features = keras.ops.clip(features, -largest, largest)
        return keras.ops.cast(features, "float16")

    labels = np.zeros(len(images), "int64")
    batches = eval_dataset(images, labels, model.num_classes)
    return inference(model, embed)(batches)[0]
