"""What features show: a map of the items, near duplicates, and outliers."""

import dataclasses

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

# Directions in which neighbours are looked for, and how many of an item.
_DIRECTIONS, _NEAR = 50, 10
# Items that t-SNE places, and how many may have a map: it takes minutes.
_PLACED, MOST = 5000, 100_000
# Of the usual distance to a nearest neighbour: a near duplicate's. Chosen from
# the closest pairs of 10,000 CIFAR-10 images and 294 photos of birds.
_CLOSE, _ROUNDING = 0.25, 1e-5
_FARTHEST = 50
# Neighbours that a review shows of an item.
_SHOWN = 5


@dataclasses.dataclass(eq=False)
class Surroundings:
    """What the features of the items show; distance is 1 - cosine.

    Attributes:
        places: Floats `(N, 2)`, where each item is on a map of all.
        near: Integers `(N, k)`, the rows of the nearest others, at most 5.
        duplicates: Data frame of near duplicates, those closer than a quarter
            of the median distance to a nearest neighbour, whose settled labels
            differ or of which one is a test image, the closest first: `of`,
            "training" or "test"; `id` and `label` of the one, of a test image
            its true label; `near` and `near_label`, of the other; `distance`.
        outliers: Data frame of the items farthest from their 10 nearest
            neighbours: `id`, `label` and the mean `distance`.
    """

    places: np.ndarray
    near: np.ndarray
    duplicates: pd.DataFrame
    outliers: pd.DataFrame


def survey(features, ids, labels, test=None):
    """Returns the `Surroundings` of N items, None of too many or too few.

    Arguments are those of `examine`; `labels` are the settled ones, strings.
    """
    if features is None or not 3 <= len(features) <= MOST:
        return None
    mean = np.mean(features, axis=0, dtype="float32")
    vectors = normalize(features - mean)
    shape = min(_DIRECTIONS, *vectors.shape)
    directions = PCA(shape, random_state=0).fit(vectors)
    points = directions.transform(vectors)
    search = NearestNeighbors(n_neighbors=min(_NEAR, len(features) - 1))
    search.fit(points)
    # Without points, none is a neighbour of itself.
    near = search.kneighbors(return_distance=False)
    gaps = _gaps(vectors, vectors, near)
    close = max(_CLOSE * np.median(gaps.min(axis=1)), _ROUNDING)
    pairs = _pairs(gaps, near, close, "training", ids, labels, ids, labels)
    pairs = pairs[pairs["label"] != pairs["near_label"]]
    # Each pair once, whichever found the other.
    both = np.sort(pairs[["id", "near"]].to_numpy(str), axis=1)
    found = [pairs[~pd.DataFrame(both, pairs.index).duplicated()]]
    if test is not None and test[2] is not None:
        others = normalize(test[2] - mean)
        seen = search.kneighbors(directions.transform(others))[1]
        own = _gaps(others, vectors, seen)
        found += [_pairs(own, seen, close, "test", *test[:2], ids, labels)]
    far = gaps.mean(axis=1)
    rows = np.argsort(-far, kind="stable")[:_FARTHEST]
    outliers = {"id": ids[rows], "label": labels[rows], "distance": far[rows]}
    return Surroundings(
        places=_places(points),
        near=near[:, :_SHOWN],
        duplicates=pd.concat(found, ignore_index=True),
        outliers=pd.DataFrame(outliers),
    )


def _gaps(ones, others, near):
    """Returns the distances to the neighbours `near`, integers `(n, k)`."""
    cosines = [np.einsum("nd,nd->n", ones, others[rows]) for rows in near.T]
    return 1 - np.stack(cosines, axis=1)


def _pairs(gaps, near, close, of, ids, labels, near_ids, near_labels):
    """Returns `Surroundings.duplicates` of all pairs within `close`."""
    rows, places = np.nonzero(gaps <= close)
    others = near[rows, places]
    frame = pd.DataFrame(
        {
            "of": of,
            "id": ids[rows],
            "label": labels[rows],
            "near": near_ids[others],
            "near_label": near_labels[others],
            "distance": np.maximum(gaps[rows, places], 0),
        }
    )
    return frame.sort_values("distance", kind="stable")


def _places(points):
    """Returns t-SNE's places of points `(N, D)`, floats `(N, 2)`.

    It places up to 5,000; each of the others goes among its three nearest.
    """
    # Here, as it takes a second that a training need not wait for.
    from sklearn.manifold import TSNE

    points = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))
    order = np.random.default_rng(0).permutation(len(points))[:_PLACED]
    sample = points[order]
    start = sample[:, :2] / max(sample[:, 0].std(), 1e-12) * 1e-4
    spread = min(30, (len(sample) - 1) / 3)
    tsne = TSNE(perplexity=spread, init=start.astype("float32"), random_state=0)
    # Its threads wait for each other: on a busy machine it took a hundred
    # times as long with two.
    with threadpool_limits(1):
        placed = tsne.fit_transform(sample)
    nearest = KNeighborsRegressor(3, weights="distance").fit(sample, placed)
    places = nearest.predict(points)
    places[order] = placed
    return places
