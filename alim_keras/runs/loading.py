"""From settings to training data: images, candidate sets, the held-out part."""

import dataclasses
import os

import numpy as np

from alim_keras.data import sources
from alim_keras.data import tables
from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.data.candidates import simulate_candidates
from alim_keras.data.checks import check_truth_inside
from alim_keras.data.messages import first_rows
from alim_keras.data.sources import own
from alim_keras.data.sparse_candidates import SparseCandidates
from alim_keras.data.splits import holdout_split
from alim_keras.data.tables import huggingface
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# Flags that are read for labels of one's own, and those for any table.
_OF_IMAGES = "images class_names known_labels known_as_sets test_labels".split()
_OF_TABLES = (
    "layout id_column candidates_column annotator_column label_column "
    "min_votes min_confidence none_of_these empty_set duplicates"
).split()
_OF_FILES = "images image_size verify on_bad_image image_cache".split()
_OF_SIMULATION = "protocol ambiguity noise_level legacy_stream".split()


@dataclasses.dataclass
class TrainingData:
    """Images, their candidate sets, and which are held out.

    Attributes:
        data: The `ImageData`, after the choice of a subset.
        candidates: `CandidateSets` of all of `data`'s training images.
        sets: Their rows in the order of `data.ids`, bool `(N, C)`, or
            `SparseCandidates`.
        trained: Rows that are trained on, int64.
        held_out: Rows that are not, int64.
        given: `CandidateSets` as somebody gave them, where `candidates` has
            known labels in their place; else the same as `candidates`.
        votes: `Votes` in the order of `data.ids`, or None.
        known: int64 `(N,)`, true labels of `--known_labels` or -1; or None.
        known_as_sets: Whether they were put in place of the sets.
        notes: Tuple of strings: what was found as the data were read.
        listed: Strings, all items of one's own table, of which `data` may be
            a part; or None.
    """

    data: sources.ImageData
    candidates: CandidateSets
    sets: np.ndarray | SparseCandidates
    trained: np.ndarray
    held_out: np.ndarray
    given: CandidateSets = None
    votes: tables.Votes | None = None
    known: np.ndarray | None = None
    known_as_sets: bool = False
    notes: tuple = ()
    listed: np.ndarray | None = None

    @property
    def max_set_size(self):
        """The number of classes in the largest set."""
        if isinstance(self.sets, SparseCandidates):
            return int(self.sets.sizes.max())
        return int(self.sets.sum(axis=1).max())


def training_data(
    settings, candidates=None, found=None, ids=None, normalisation=None
):
    """Loads images, makes or reads candidate sets, and holds a part out.

    Args:
        settings: The train command's settings.
        candidates: `CandidateSets` of a run, to use instead of what the
            settings say. A table of one's own must still hold them.
        found: What `own_data` gave, if it was called already.
        ids: Strings, the items of a run that goes on, in its order. Defaults
            to those of `candidates`. What a run learnt goes by place, and a
            table may have been sorted anew meanwhile.
        normalisation: Mean and deviation of the channels of a run that goes
            on. Defaults to what the images say.

    Raises:
        ConfigError: Settings that do not fit the data.
        DataError: The data are unsound, or are no longer those of the run.
    """
    check_use(settings)
    if found is None and sources.is_own(settings.dataset):
        found = own_data(settings)
    if found is not None:
        data = found.data
    else:
        data = _known_data(settings)
    if data.kind == "features" and settings.network not in (None, "mlp"):
        raise ConfigError(
            f"{settings.dataset} holds feature vectors, which --network=mlp "
            f"takes. Received: --network={settings.network}"
        )
    if data.kind == "features":
        settings.refuse_typed(
            _OF_FILES,
            f"is about images, and {settings.dataset} holds feature vectors",
        )
    if ids is None and candidates is not None:
        ids = candidates.ids
    if found is not None and ids is not None:
        data = data.select(_rows_of_run(found, ids))
    else:
        data = _part(settings, data)
    if normalisation is not None:
        mean, std = normalisation
        data = dataclasses.replace(data, mean=mean, std=std)
    if candidates is None:
        candidates, given = candidate_sets(settings, data, found)
    else:
        given = found.given.select(data.ids) if found else candidates
        if found and not settings.candidates_file:
            _check_unchanged(found, candidates)
    sets = candidates.align(data.ids, where=data.name)
    if data.labels is not None:
        known = np.flatnonzero(data.labels >= 0)
        check_truth_inside(sets[known], data.labels[known], settings.noise_rate)
    if settings.table == "sparse":
        sets = SparseCandidates.from_multi_hot(sets)
    trained, held_out = holdout_split(data.ids, settings.holdout, settings.seed)
    if len(trained) < settings.batch_size:
        raise ConfigError(
            f"{len(trained)} images to train on do not fill one batch; use a "
            "smaller --batch_size. Received: "
            f"--batch_size={settings.batch_size}"
        )
    more = _about(found, data.ids) if found else {}
    more["known_as_sets"] = bool(settings.known_as_sets)
    return TrainingData(
        data, candidates, sets, trained, held_out, given, **more
    )


def check_use(settings):
    """Raises for flags that nothing would read."""
    is_own = sources.is_own(settings.dataset)
    unread = [] if is_own else list(_OF_IMAGES)
    if not is_own and not settings.candidates_file:
        unread += _OF_TABLES
    elif is_own and os.path.isdir(settings.dataset):
        # Of a HuggingFace folder the columns are read.
        is_table = huggingface.is_dataset(settings.dataset)
        unread += [] if is_table else _OF_TABLES
    defaults = settings.command.new_flags()
    for name in unread:
        value = getattr(settings, name)
        if value != defaults[name].default:
            raise ConfigError(
                f"--{name} is about a table of labels, and "
                f"{settings.dataset} is none; leave it out. Received: "
                f"--{name}={value}"
            )
    if is_own or settings.candidates_file:
        file = settings.candidates_file or settings.dataset
        # A preset may set them for the data set whose sets are given.
        settings.refuse_typed(
            _OF_SIMULATION,
            f"is about simulated candidate sets, and those of {file} are as "
            "they are",
        )
    if settings.known_as_sets and not settings.known_labels:
        raise ConfigError(
            "--known_as_sets needs the true labels of some items; give them "
            "as --known_labels=FILE"
        )


def _part(settings, data):
    """Returns the part of the training set that the settings ask for."""
    if settings.train_size is not None:
        data = data.subset(settings.train_size, settings.seed)
    if settings.imbalance is not None:
        # After the subset: its rounding could empty a class of the tail.
        data = data.long_tailed(settings.imbalance, settings.seed)
    return data


def _rows_of_run(found, ids):
    """Returns where the items of a run stand in the table now."""
    missing = np.flatnonzero(~np.isin(ids, found.data.ids))
    if len(missing):
        raise DataError(
            f"{found.data.name}: {len(missing)} of {len(ids)} items of the run "
            f"are no longer there, {first_rows(missing, ids)}; restore the "
            "table and its images as they were, or train again"
        )
    return found.rows_of(ids)


def _check_unchanged(found, candidates):
    """Raises if a table holds other sets than when a run was trained on it."""
    now = found.candidates.select(candidates.ids)
    if now.class_names != candidates.class_names:
        wrong, what = np.arange(len(now.ids)), "other classes"
    else:
        wrong = np.flatnonzero((now.sets != candidates.sets).any(axis=1))
        what = "another candidate set"
    if len(wrong):
        raise DataError(
            f"{found.data.name}: {len(wrong)} items have {what} now than in "
            f"the run, {first_rows(wrong, candidates.ids)}; restore the file "
            "as it was, or train again"
        )


def _about(found, ids):
    """Returns what one's own data say beside the sets, about some items."""
    rows = found.rows_of(ids)
    return {
        "votes": found.votes and found.votes.select(rows),
        "known": None if found.known is None else found.known[rows],
        "notes": found.notes,
        "listed": found.data.ids,
    }


def own_data(settings, progress=None, refuse=True):
    """Loads labels of one's own, as the settings say.

    Args:
        settings: The train command's settings.
        progress: Function of (done, total), called as images are looked at.
        refuse: Whether bad images may be refused; else this is only a look:
            they are left out, whatever the settings say, and nothing is
            written.
    """
    cache = settings.image_cache
    if cache == "disk" and not refuse:
        cache = "none"
    if cache == "disk":
        folder = settings.run_dir or os.path.join("runs", "image_cache")
        cache = os.path.join(folder, "images.npy")
    return own.load_own(
        settings.dataset,
        settings.images,
        image_size=settings.image_size,
        known_labels=settings.known_labels,
        known_as_sets=settings.known_as_sets,
        test_labels=settings.test_labels,
        on_bad_image=settings.on_bad_image if refuse else "skip",
        verify=settings.verify,
        image_cache=cache,
        progress=progress,
        **reading(settings),
    )


def reading(settings):
    """Returns how a table of labels is read, for `tables.read_labels`."""
    names = settings.class_names
    words = settings.none_of_these or ""
    return {
        "layout": settings.layout,
        "id_column": settings.id_column,
        "candidates_column": settings.candidates_column,
        "annotator_column": settings.annotator_column,
        "label_column": settings.label_column,
        "class_names": tables.read_class_names(names) if names else None,
        "min_votes": settings.min_votes,
        "min_confidence": settings.min_confidence,
        "none_of_these": tuple(
            word.strip() for word in words.split(",") if word.strip()
        ),
        "empty_set": settings.empty_set,
        "duplicates": settings.duplicates,
    }


def _known_data(settings):
    """Loads a data set that has a name."""
    # Known sets come at the size they were published at, and the views and
    # the network resize; others are unified as they are read.
    size = None if settings.dataset in sources.KNOWN else settings.image_size
    return sources.load(
        settings.dataset,
        data_dir=settings.data_dir,
        download=settings.download,
        image_size=size,
    )


def candidate_sets(settings, data, found=None):
    """Returns the sets to train on, and those that somebody gave.

    They are those of one's own table, or are read from `--candidates_file`,
    or simulated.
    """
    if settings.candidates_file:
        read = _read_candidates(settings, data)
        return read, read
    if found:
        return found.candidates.select(data.ids), found.given.select(data.ids)
    simulated = _simulated(settings, data)
    return simulated, simulated


def _read_candidates(settings, data):
    if settings.candidates_file.endswith(".npz"):
        candidates = CandidateSets.load(settings.candidates_file)
        if candidates.class_names != tuple(data.class_names):
            raise ConfigError(
                f"{settings.candidates_file} is about the classes "
                f"{list(candidates.class_names)[:5]}..., {data.name} has "
                f"{list(data.class_names)[:5]}... Use sets of the same data."
            )
    else:
        # The table's names are looked up among the data set's classes.
        how = {**reading(settings), "class_names": tuple(data.class_names)}
        candidates = tables.read_labels(
            settings.candidates_file, **how
        ).candidates
    return candidates.select(data.ids)


def _simulated(settings, data):
    return simulate_candidates(
        data.labels,
        len(data.class_names),
        ambiguity=settings.ambiguity,
        noise_level=settings.noise_level,
        protocol=settings.protocol or data.protocol,
        seed=settings.seed,
        stream="legacy" if settings.legacy_stream else "default",
        superclasses=data.superclasses,
        ids=data.ids,
        class_names=data.class_names,
    )
