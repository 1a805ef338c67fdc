"""From the configuration to a `TrainingSet`."""

import dataclasses
import os

import numpy as np

from alim_keras.app.config import Config
from alim_keras.data import known_data
from alim_keras.data import own_data
from alim_keras.data import simulate
from alim_keras.data import tables
from alim_keras.data.checks import check_truth_inside
from alim_keras.data.class_names import read_class_names
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_rows

# Settings that are read for labels of one's own, and those for any table.
_OF_IMAGES = "images class_names known_labels known_as_sets test_labels".split()
_OF_TABLES = (
    "format layout id_column candidates_column annotator_column label_column "
    "where min_votes min_confidence none_of_these empty_set duplicates"
).split()
_OF_FILES = "images image_size on_bad_image".split()
_OF_SIMULATION = "protocol ambiguity noise_level legacy_stream".split()


def training_set(
    config, ids=None, candidates=None, normalisation=None, table=None, line=None
):
    """Loads images, makes or reads candidate sets, and holds a part out.

    Args:
        config: The `Config`.
        ids: Strings, the items of a run that goes on, in its order. What a
            run learnt goes by row, and a table may have been sorted anew
            meanwhile. Defaults to those of `candidates`.
        candidates: `CandidateSets` of a run that is opened again, in place of
            those that the settings ask for. A table must still hold them.
        normalisation: Mean and deviation of the channels of a run that goes
            on. Defaults to those of the images.
        table: What `table_set` returned, if it was called already.
        line: The `cli.Line`, to refuse flags that do not fit the data.

    Returns:
        A `TrainingSet` with candidate sets, `trained` and `held_out`.
    """
    training = table or _load(config, candidates)
    if training.kind == "features":
        _check_features(config, training, line)
    if ids is None and candidates is not None:
        ids = candidates.ids
    if ids is None:
        training = _part(config, training)
    else:
        training = training.take(_rows_of_run(training, ids))
    if normalisation is not None:
        mean, std = normalisation
        training = dataclasses.replace(training, mean=mean, std=std)
    if candidates is not None and training.candidates is None:
        training = training.with_candidates(candidates)
    elif config.candidates.candidates_file:
        training = training.with_candidates(_read_candidates(config, training))
    elif training.candidates is None:
        training = training.with_candidates(_simulated(config, training))
    if candidates is not None:
        _check_unchanged(training, candidates)
    if training.labels is not None:
        rate = config.alim.noise_rate
        check_truth_inside(training.sets, training.labels, rate)
    training = training.hold_out(config.train.holdout, config.run.seed)
    if len(training.trained) < config.train.batch_size:
        raise ConfigError(
            f"{len(training.trained)} images to train on do not fill one "
            "batch; use a smaller --batch_size. Received: "
            f"--batch_size={config.train.batch_size}"
        )
    return training


def _load(config, candidates):
    name = config.data.dataset
    if known_data.is_table(name):
        # The file of names may be gone, or about other classes now.
        is_named = candidates is not None and config.table.class_names
        names = candidates.class_names if is_named else None
        return table_set(config, class_names=names)
    # Known data come at the size they were published at, and the views and
    # the network resize; others are unified as they are read.
    is_known = name in known_data.KNOWN
    return known_data.load(
        name,
        data_dir=config.data.data_dir,
        download=config.data.download,
        image_size=None if is_known else config.data.image_size,
    )


def _check_features(config, training, line):
    if line is not None:
        why = f"is about images, and {training.name} holds feature vectors"
        line.refuse_typed(_OF_FILES, why)
    if config.method.network not in (None, "mlp"):
        raise ConfigError(
            f"{config.data.dataset} holds feature vectors, which --network=mlp "
            f"takes. Received: --network={config.method.network}"
        )


def table_set(config, on_bad_image=None, progress=None, class_names=None):
    """Loads labels of one's own; see `data.load_table`.

    The arguments stand in place of the settings where they are not None.
    """
    table, options = config.table, reading(config.table)
    options["class_names"] = class_names or options["class_names"]
    return own_data.load_table(
        config.data.dataset,
        table.images,
        image_size=config.data.image_size,
        known_labels=table.known_labels,
        known_as_sets=table.known_as_sets,
        test_labels=table.test_labels,
        on_bad_image=on_bad_image or table.on_bad_image,
        progress=progress,
        **options,
    )


def reading(table):
    """Returns how a `TableConfig` reads a table, for `tables.read_labels`."""
    options = {name: getattr(table, name) for name in _OF_TABLES}
    for name in ("where", "none_of_these"):
        parts = map(str.strip, (options[name] or "").split(","))
        options[name] = tuple(filter(None, parts))
    names = table.class_names
    options["class_names"] = read_class_names(names) if names else None
    return options


def check_use(line):
    """Raises for flags of a `cli.Line` that nothing would read."""
    config = line.config
    dataset, sets = config.data.dataset, config.candidates.candidates_file
    is_table = known_data.is_table(dataset)
    unread = [] if is_table else list(_OF_IMAGES)
    if not (not os.path.isdir(dataset) if is_table else sets):
        unread += _OF_TABLES
    defaults, values = Config().as_dict(), config.as_dict()
    for name in unread:
        if values[name] != defaults[name]:
            raise ConfigError(
                f"--{name} is about a table of labels, and {dataset} is none; "
                f"leave it out. Received: --{name}={values[name]}"
            )
    if is_table or sets:
        # A preset may set them for the data set whose sets are given.
        line.refuse_typed(
            _OF_SIMULATION,
            "is about simulated candidate sets, and those of "
            f"{sets or dataset} are as they are",
        )
    if config.table.known_as_sets and not config.table.known_labels:
        raise ConfigError("--known_as_sets needs --known_labels=FILE")


def _part(config, training):
    """Returns the part of the training set that the settings ask for."""
    if config.data.train_size is not None:
        training = training.subset(config.data.train_size, config.run.seed)
    if config.data.imbalance is not None:
        # After the subset: its rounding could empty a class of the tail.
        training = training.long_tailed(config.data.imbalance, config.run.seed)
    return training


def _rows_of_run(training, ids):
    """Returns the rows of a run's items in the data as they are now."""
    missing = np.flatnonzero(~np.isin(ids, training.ids))
    if len(missing):
        raise DataError(
            f"{training.name}: {len(missing)} of {len(ids)} items of the run "
            f"are no longer there, {first_rows(missing, ids)}; restore the "
            "table and its images as they were, or train again"
        )
    return training.rows_of(ids)


def _check_unchanged(training, candidates):
    """Raises if a table holds other sets than when a run was trained on it."""
    now = training.sets
    if now.content_hash == candidates.content_hash:
        return
    wrong, what = np.arange(len(now)), "other classes"
    if now.class_names == candidates.class_names:
        what = "another candidate set"
        wrong = [
            row
            for row in wrong
            if not np.array_equal(now.members(row), candidates.members(row))
        ]
    raise DataError(
        f"{training.name}: {len(wrong)} items have {what} now than in "
        f"the run, {first_rows(wrong, candidates.ids)}; restore the file "
        "as it was, or train again"
    )


def _read_candidates(config, training):
    # The table's names are looked up among the data set's classes.
    options = {**reading(config.table), "class_names": training.class_names}
    return tables.read_labels(config.candidates.candidates_file, **options)[0]


def _simulated(config, training):
    chosen = config.candidates
    return simulate.simulate_candidates(
        training.labels,
        training.num_classes,
        ambiguity=chosen.ambiguity,
        noise_level=chosen.noise_level,
        protocol=chosen.protocol or training.protocol,
        seed=config.run.seed,
        stream="legacy" if chosen.legacy_stream else "default",
        superclasses=training.superclasses,
        ids=training.ids,
        class_names=training.class_names,
    )
