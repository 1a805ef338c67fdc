"""From the configuration to a `TrainingSet`."""

import dataclasses

import numpy as np

from alim_keras.app.config import Config
from alim_keras.data import known_data
from alim_keras.data import own_data
from alim_keras.data import simulate
from alim_keras.data import tables
from alim_keras.data.class_names import read_class_names
from alim_keras.data.validation import check_truth_inside
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
    config, ids=None, candidates=None, normalisation=None, table=None
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

    Returns:
        A `TrainingSet` with candidate sets, `trained` and `held_out`.

    Raises:
        ConfigError: Settings that do not fit the data.
        DataError: The data are unsound, or are no longer those of the run.
    """
    is_table = known_data.is_table(config.data.dataset)
    if table is not None:
        training = table
    elif is_table:
        # The file of names may be gone, or about other classes now.
        is_named = candidates is not None and config.table.class_names
        names = candidates.class_names if is_named else None
        training = table_set(config, class_names=names)
    else:
        # Known data come at the size they were published at, and the views
        # and the network resize; others are unified as they are read.
        is_known = config.data.dataset in known_data.KNOWN
        training = known_data.load(
            config.data.dataset,
            data_dir=config.data.data_dir,
            download=config.data.download,
            image_size=None if is_known else config.data.image_size,
        )
    if training.kind == "features":
        if config.method.network not in (None, "mlp"):
            raise ConfigError(
                f"{config.data.dataset} holds feature vectors, which "
                "--network=mlp takes. Received: --network="
                f"{config.method.network}"
            )
    if ids is None and candidates is not None:
        ids = candidates.ids
    if ids is not None:
        training = training.take(_rows_of_run(training, ids))
    else:
        training = _part(config, training)
    if normalisation is not None:
        mean, std = normalisation
        training = dataclasses.replace(training, mean=mean, std=std)
    if candidates is not None and not (is_table and training.candidates):
        training = training.with_candidates(candidates)
    elif config.candidates.candidates_file:
        training = training.with_candidates(_read_candidates(config, training))
    elif training.candidates is None:
        training = training.with_candidates(_simulated(config, training))
    if candidates is not None:
        _check_unchanged(training, candidates)
    if training.labels is not None:
        check_truth_inside(
            training.sets, training.labels, config.alim.noise_rate
        )
    training = training.hold_out(config.train.holdout, config.run.seed)
    if len(training.trained) < config.train.batch_size:
        raise ConfigError(
            f"{len(training.trained)} images to train on do not fill one "
            "batch; use a smaller --batch_size. Received: "
            f"--batch_size={config.train.batch_size}"
        )
    return training


def table_set(config, on_bad_image=None, progress=None, class_names=None):
    """Loads labels of one's own, as the configuration says.

    Args:
        config: The `Config`.
        on_bad_image: `"error"` or `"skip"`. Defaults to the setting.
        progress: Function of (done, total), called as images are looked at.
        class_names: Strings. Defaults to the setting.
    """
    options = reading(config.table)
    if class_names is not None:
        options["class_names"] = class_names
    return own_data.load_table(
        config.data.dataset,
        config.table.images,
        image_size=config.data.image_size,
        known_labels=config.table.known_labels,
        known_as_sets=config.table.known_as_sets,
        test_labels=config.table.test_labels,
        on_bad_image=on_bad_image or config.table.on_bad_image,
        progress=progress,
        **options,
    )


def reading(table):
    """Returns how a table of labels is read, for `tables.read_labels`.

    Args:
        table: The `TableConfig`.
    """
    return {
        "format": table.format,
        "layout": table.layout,
        "id_column": table.id_column,
        "candidates_column": table.candidates_column,
        "annotator_column": table.annotator_column,
        "label_column": table.label_column,
        "class_names": table.class_names
        and read_class_names(table.class_names),
        "where": _words(table.where),
        "min_votes": table.min_votes,
        "min_confidence": table.min_confidence,
        "none_of_these": _words(table.none_of_these),
        "empty_set": table.empty_set,
        "duplicates": table.duplicates,
    }


def check_use(line):
    """Raises for flags of a command line that nothing would read.

    Args:
        line: The `cli.Line`.
    """
    config = line.config
    dataset, sets = config.data.dataset, config.candidates.candidates_file
    is_table = known_data.is_table(dataset)
    unread = [] if is_table else list(_OF_IMAGES)
    if not (known_data.is_table_file(dataset) if is_table else sets):
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
        raise ConfigError(
            "--known_as_sets needs the true labels of some items; give them "
            "as --known_labels=FILE"
        )


def check_use_of(line, training):
    """Raises for flags that do not fit the kind of data; see `check_use`."""
    if training.kind == "features":
        line.refuse_typed(
            _OF_FILES,
            f"is about images, and {training.name} holds feature vectors",
        )


def _words(text):
    return tuple(filter(None, map(str.strip, (text or "").split(","))))


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
    if now.class_names != candidates.class_names:
        wrong, what = np.arange(len(now)), "other classes"
    elif now.content_hash == candidates.content_hash:
        return
    else:
        wrong, what = [], "another candidate set"
        for row, (one, two) in enumerate(
            zip(_lists(now), _lists(candidates), strict=True)
        ):
            if not np.array_equal(one, two):
                wrong.append(row)
    raise DataError(
        f"{training.name}: {len(wrong)} items have {what} now than in "
        f"the run, {first_rows(wrong, candidates.ids)}; restore the file "
        "as it was, or train again"
    )


def _lists(sets):
    return np.split(sets.indices, sets.indptr[1:-1])


def _read_candidates(config, training):
    path = config.candidates.candidates_file
    # The table's names are looked up among the data set's classes.
    options = {**reading(config.table), "class_names": training.class_names}
    return tables.read_labels(path, **options)[0]


def _simulated(config, training):
    return simulate.simulate_candidates(
        training.labels,
        training.num_classes,
        ambiguity=config.candidates.ambiguity,
        noise_level=config.candidates.noise_level,
        protocol=config.candidates.protocol or training.protocol,
        seed=config.run.seed,
        stream="legacy" if config.candidates.legacy_stream else "default",
        superclasses=training.superclasses,
        ids=training.ids,
        class_names=training.class_names,
    )
