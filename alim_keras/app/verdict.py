"""The verdict of a run: is what it made better than something simpler?"""

import warnings

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from alim_keras import draws
from alim_keras.app import artefacts
from alim_keras.app import build
from alim_keras.data.annotators import VoteArrays
from alim_keras.data.annotators import shared_votes
from alim_keras.report.beliefs import Settler

# With so many true labels they judge.
_ENOUGH = 50
# Else so many items, by this many neighbours, weighed by exp(10 cosine).
_JUDGED, _NEIGHBOURS, _SHARPNESS = 2000, 15, 10.0
# Of the logistic regression: folds, decay as of heads, and most candidates.
_FOLDS, _DECAY, _LARGEST = 3, 0.01, 50_000


def verdict(model, training, settled):
    """Compares settled labels and the model with what is simpler.

    Settled labels, int64 `(N,)`, are judged by true ones, if 50 are known.
    Else, of features, by the belief P(y | x, S) that follows from the sets of
    the nearest neighbours, in which votes count. Models are judged by test
    labels, else by how many sets hold their answer, for examples that they did
    not see. A difference of less than two standard errors is none.

    Returns `text`, and `labels` and `model`, lists of what results.json has.
    """
    count, labels, models = len(training), [], []
    features = regression = truth = by = None
    if training.kind == "features":
        vectors = [training.images[:, 0, 0], training.test_images[:, 0, 0]]
        vectors = np.concatenate(vectors) - vectors[0].mean(axis=0)
        vectors = normalize(vectors)
        features, regression = vectors[:count], _regression(training, vectors)
    rows = np.arange(count)
    if training.known_as_sets:
        rows = np.flatnonzero(training.known < 0)
    if training.labels is not None:
        truth = training.labels[rows]
    if truth is not None and (truth >= 0).sum() >= _ENOUGH:
        rows, by = rows[truth >= 0], "known labels"
        belief = np.eye(training.num_classes)[training.labels[rows]]
    elif features is not None and len(rows):
        most, by = min(_JUDGED, len(rows)), "the sets of nearest neighbours"
        rows = np.random.default_rng(0).choice(rows, most, replace=False)
        belief = _by_neighbours(training, features, rows)
    if by:
        ours = belief[np.arange(len(rows)), settled[rows]]
        for name, scores in _rivals(training, rows, regression):
            best = scores == scores.max(axis=1, keepdims=True)
            theirs = (belief * best).sum(axis=1) / best.sum(axis=1)
            labels.append(_compared(name, ours - theirs, by))
    if regression is not None:
        ours, theirs = None, regression.argmax(axis=1)
        if len(training.test_labels) >= _ENOUGH:
            by, batches = "test labels", build.test_batches(training)
            ours = model.predict(batches, verbose=0).argmax(axis=1)
            ours = ours == training.test_labels
            theirs = theirs[count:] == training.test_labels
        elif model.folds:
            by, rows = "sets that neither had seen", training.trained
            ours = artefacts.held_out_probabilities(model, training)
            ours = training.sets.contains(rows, ours.argmax(axis=1))
            theirs = training.sets.contains(rows, theirs[rows])
        if ours is not None:
            difference = ours.astype(float) - theirs
            models = [_compared("a logistic regression", difference, by)]
    text = [_sentence("labels.csv", labels), _sentence("the model", models)]
    if labels or models:
        text = "Verdict: " + " ".join(filter(None, text))
        return {"text": text, "labels": labels, "model": models}


def _rivals(training, rows, regression):
    """Yields names and scores `(n, C)`, the largest of which are meant."""
    inside = training.sets.rows(rows) > 0
    is_plain = (inside.sum(axis=1) == 1).all()
    yield "the given labels" if is_plain else "picking in the sets", inside
    votes = shared_votes(training)
    if votes is not None:
        counts = np.zeros(training.sets.shape, np.int32)
        np.add.at(counts, (votes.rows, votes.classes), 1)
        yield "the majority vote", counts[rows]
    if regression is not None and not is_plain:
        yield "a logistic regression", inside * regression[rows]


def _compared(name, differences, by):
    error = float(differences.std() / np.sqrt(len(differences)))
    found = {"difference": float(differences.mean()), "error": error}
    return {"than": name, **found, "count": len(differences), "by": by}


def _sentence(ours, compared):
    """Says in a sentence which to use; empty without a comparison."""
    better, close, parts = [], [], []
    for one in compared:
        gain, margin = 100 * one["difference"], 200 * one["error"]
        parts.append(f"{gain:+.1f} ± {margin:.1f} points over {one['than']}")
        if gain < -margin:
            better.append((gain, one["than"]))
        elif gain <= margin:
            close.append(one["than"])
    if not compared:
        return ""
    advice = f"use {min(better)[1] if better else ours}"
    if close and not better:
        advice = f"cannot be told from {' or '.join(close)}"
        if "labels" not in compared[0]["by"]:
            advice += f"; {_ENOUGH} known labels would tell"
    by = f"by {compared[0]['by']} ({compared[0]['count']:,})"
    return f"{ours}, {by}: {', '.join(parts)}: {advice}."


def _by_neighbours(training, features, rows):
    """Returns P(y | x, S) of rows, by their neighbours' sets, `(n, C)`."""
    sets, votes, names = training.sets, training.votes, training.class_names
    count = min(_NEIGHBOURS, len(features) - 1)
    # An item is among its own neighbours.
    search = NearestNeighbors(n_neighbors=count + 1, metric="cosine")
    near = search.fit(features).kneighbors_graph(
        features[rows], mode="distance"
    )
    closeness = np.exp(-_SHARPNESS * near.data)
    # Neither the item counts nor a copy of it.
    near.data = np.where(near.data > 1e-5, closeness, 0)
    given = normalize(sets.matrix.astype(bool).astype(float), "l1")
    means = (normalize(near, "l1") @ given).toarray()
    # One more neighbour, who does not know.
    answers = (count * means + 1 / sets.num_classes) / (count + 1)
    judged = sets.take(rows)
    if votes is not None:
        votes = votes[votes["item"].isin(judged.ids)]
        votes = VoteArrays.of(votes, judged.ids, names) if len(votes) else None
    kinds = np.full(len(rows), "folds", object)
    settler = Settler(None, answers.astype("float32"), judged, kinds, votes)
    return settler.belief(np.arange(len(rows)))


def _regression(training, vectors):
    """Returns P of training rows, out of fold, and of tests; or None.

    The logistic regression learns each candidate, with a weight of 1 / |S|.
    """
    from sklearn.linear_model import LogisticRegression

    sets, count = training.sets, len(training)
    if len(sets.indices) > _LARGEST or count < 10 * _FOLDS:
        return None
    fold = draws.folds(count, _FOLDS, 0, training.copies)
    answers = np.zeros((len(vectors), sets.num_classes))
    tests = np.arange(count, len(vectors))
    for k in range(_FOLDS):
        rows = np.flatnonzero(fold != k)
        asked = np.append(np.flatnonzero(fold == k), tests)
        sizes, given = sets.sizes[rows], sets.take(rows).indices
        strength = 1 / (_DECAY * np.sqrt(len(rows)))
        fit = LogisticRegression(C=strength, max_iter=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit.fit(
                vectors[np.repeat(rows, sizes)],
                given,
                sample_weight=np.repeat(1 / sizes, sizes),
            )
        answers[np.ix_(asked, fit.classes_)] += fit.predict_proba(
            vectors[asked]
        )
    return answers
