"""From the configuration to a `TrainingSet`."""

import dataclasses
import os

import numpy as np

from alim_keras import errors
from alim_keras.data import known_data
from alim_keras.data import own_data
from alim_keras.data import simulate
from alim_keras.data import tables
from alim_keras.data.class_names import read_class_names
from alim_keras.data.training_set import UNKNOWN
from alim_keras.data.training_set import stratified_subset

# Settings of `TableConfig` that do not say how a table is read.
_OF_IMAGES = (
    "images known_labels known_as_sets test_labels on_bad_image".split()
)
_OF_SIMULATION = "protocol ambiguity noise_level legacy_stream".split()


def training_set(config, folder=None, reopen=False, table=None):
    """Loads images, and makes or reads candidate sets.

    In a run that goes on in a `RunFolder` items keep their order, and
    normalisation its values, whatever became of the data. With `reopen` the
    candidate sets are those of the folder; a table must still hold them.
    `table` is what `table_set` returned, if it was called already.
    """
    goes_on = folder is not None and folder.checkpoint.exists()
    before = folder.candidates() if goes_on else None
    given = before if reopen else None
    training = table or _load(config, given)
    network = config.method.network
    if training.kind == "features" and network not in (None, "mlp"):
        raise errors.ConfigError(
            f"{training.name} holds feature vectors, which --network=mlp "
            f"takes. Received: --network={network}"
        )
    if before is not None:
        training = training.take(_rows_of_run(training, before.ids))
    elif config.data.train_size is not None:
        labels = training.labels
        if labels is None or UNKNOWN in labels:
            # Stratified only where all are known.
            labels = np.zeros(len(training))
        size, seed = config.data.train_size, config.run.seed
        training = training.take(stratified_subset(labels, size, seed))
    if folder and (normalisation := folder.normalisation()):
        mean, std = normalisation
        training = dataclasses.replace(training, mean=mean, std=std)
    if given is not None and training.candidates is None:
        training = training.with_candidates(given)
    elif config.candidates.candidates_file:
        # The table's names are looked up among the data set's classes.
        how = {**reading(config.table), "class_names": training.class_names}
        sets, *_ = tables.read_labels(config.candidates.candidates_file, **how)
        training = training.with_candidates(sets)
    elif training.candidates is None:
        training = training.with_candidates(_simulated(config, training))
    if given is not None and training.sets.content_hash != given.content_hash:
        raise errors.DataError(
            f"{training.name}: the candidate sets are not those that the run "
            "was trained on; restore the file as it was, or train again"
        )
    return training


def _load(config, given):
    data = config.data
    if known_data.is_table(data.dataset):
        # The file of names may be gone, or about other classes now.
        is_named = given is not None and config.table.class_names
        names = given.class_names if is_named else None
        return table_set(config, class_names=names)
    # Known data come at the size they were published at, and the views and
    # the network resize; others are unified as they are read.
    size = None if data.dataset in known_data.KNOWN else data.image_size
    return known_data.load(data.dataset, data.data_dir, data.download, size)


def table_set(config, on_bad_image=None, progress=None, class_names=None):
    """Loads labels of one's own; the arguments override the settings."""
    table, options = config.table, reading(config.table)
    options |= {name: getattr(table, name) for name in _OF_IMAGES}
    options["class_names"] = class_names or options["class_names"]
    options["on_bad_image"] = on_bad_image or table.on_bad_image
    return own_data.load_table(
        config.data.dataset,
        image_size=config.data.image_size,
        progress=progress,
        **options,
    )


def reading(table):
    """Returns how a `TableConfig` reads a table, for `tables.read_labels`."""
    options = dataclasses.asdict(table)
    for name in _OF_IMAGES:
        del options[name]
    for name in ("where", "columns", "none_of_these"):
        parts = map(str.strip, (options[name] or "").split(","))
        options[name] = tuple(filter(None, parts))
    if options.pop("header") == "none" and not options["columns"]:
        raise errors.ConfigError(
            "--header=none needs the names of the columns: --columns=id,label"
        )
    ids, names = table.ids or "", table.class_names
    if ids.lower().endswith((".txt", ".csv")) and not os.path.isfile(ids):
        raise errors.DataError(f"There is no such file. Received: --ids={ids}")
    options["class_names"] = read_class_names(names) if names else None
    return options


def check_use(line):
    """Raises for flags of a `cli.Line` that nothing would read."""
    config = line.config
    dataset, sets = config.data.dataset, config.candidates.candidates_file
    is_table = known_data.is_table(dataset)
    if is_table or sets:
        # A preset may set them for the data set whose sets are given.
        line.refuse_typed(
            _OF_SIMULATION,
            "is about simulated candidate sets, and those of "
            f"{sets or dataset} are as they are",
        )
    if not is_table:
        unread = _OF_IMAGES if sets else dataclasses.asdict(config.table)
        line.refuse_typed(
            unread, f"is about a table of labels, and {dataset} is none"
        )
    if config.table.known_as_sets and not config.table.known_labels:
        raise errors.ConfigError("--known_as_sets needs --known_labels=FILE")


def _rows_of_run(training, ids):
    """Returns the rows of a run's items in the data as they are now."""
    missing = ids[~np.isin(ids, training.ids)]
    if len(missing):
        raise errors.DataError(
            f"{training.name}: items of the run that are no longer there: "
            f"{len(missing)} of {len(ids)}, {errors.first_five(missing)}; "
            "restore the table and its images as they were, or train again"
        )
    return training.rows_of(ids)


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
