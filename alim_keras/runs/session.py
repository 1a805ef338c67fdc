"""The batches and callbacks of a training run."""

import keras

from alim_keras import backend
from alim_keras import callbacks as alim_callbacks
from alim_keras.data import eval_dataset
from alim_keras.data import train_dataset
from alim_keras.runs import build
from alim_keras.runs import choice

CRITERIA = {
    "last": None,
    "cr": "holdout_covering_rate",
    "aa": "holdout_approximated_accuracy",
}


def train_batches(settings, training):
    """Returns the training batches, with views if the host makes them."""
    data, rows = training.data, training.trained
    views = None
    if settings.views == "tf_data":
        shape = build.image_shape(settings, data)
        views = build.views(settings, shape, data)
    return train_dataset(
        data.images[rows],
        training.sets[rows],
        batch_size=settings.batch_size,
        seed=settings.seed,
        views=views,
        shard=(backend.process_index(), backend.process_count()),
        view_names=choice.method(settings).view_names,
    )


def callbacks(settings, folder, training, finished_epochs, noise_rate):
    """Returns the run's callbacks, in the order in which they must act.

    The timer comes first, then the guard, so that nothing is written after a
    loss that is not a number; the checkpoint last, so that it holds what all
    others did.
    """
    steps = len(training.trained) // settings.batch_size
    chosen = [
        alim_callbacks.EpochTimer(steps * settings.batch_size),
        alim_callbacks.NonFiniteGuard(),
        keras.callbacks.LearningRateScheduler(build.learning_rate(settings)),
        *alim(settings, training, noise_rate),
        *evaluations(settings, training),
    ]
    if not backend.is_chief():
        # What follows prints and writes.
        return chosen
    chosen += [
        alim_callbacks.Progress(settings.progress),
        alim_callbacks.Selection(folder.checkpoint, CRITERIA[settings.select]),
        alim_callbacks.MetricsLog(folder.file("metrics.csv"), finished_epochs),
    ]
    if settings.tensorboard:
        chosen.append(keras.callbacks.TensorBoard(folder.file("tensorboard")))
    return [*chosen, folder.checkpoint]


def alim(settings, training, noise_rate):
    """Returns the ALIM callback that the settings describe, in a list.

    `noise_rate` is what `noise.prepare` returned, or a number. The list is
    empty for a method without pseudo labels.
    """
    if not choice.keeps_pseudo_labels(settings):
        return []
    data, rows = training.data, training.trained
    everything = None
    if settings.update == "epoch":
        everything = eval_dataset(
            data.images[rows], training.sets[rows], training.sets.shape[1]
        )
    known = training.known[rows] >= 0 if training.known_as_sets else None
    made = training.candidates.provenance
    protocol = {"superclass": "pico"}.get(made.get("protocol"))
    callback = alim_callbacks.ALIM(
        norm=settings.norm,
        scale_factor=settings.scale_factor,
        lam=settings.lam,
        noise_rate=noise_rate,
        warmup_epochs=settings.warmup_epochs,
        update=settings.update,
        data=everything,
        per_class=settings.lam_per_class,
        protocol=protocol or made.get("protocol", "size"),
        ambiguity=made.get("ambiguity"),
        labels=None if data.labels is None else data.labels[rows],
        known=known,
    )
    return [callback]


def evaluations(settings, training):
    """Returns the evaluations on held-out sets and on the test set."""
    data, rows = training.data, training.held_out
    num_classes = training.sets.shape[1]
    found = []
    if len(rows):
        held_out = eval_dataset(
            data.images[rows], training.sets[rows], num_classes
        )
        names = ("covering_rate", "approximated_accuracy")
        found.append(
            alim_callbacks.Evaluation(
                held_out,
                {name: f"holdout_{name}" for name in names},
                settings.evaluate_every,
            )
        )
    if not len(data.test_images):
        return found
    test = eval_dataset(data.test_images, data.test_labels, num_classes)
    names = {"covering_rate": "test_accuracy", "loss": "test_loss"}
    every = settings.evaluate_every
    return [*found, alim_callbacks.Evaluation(test, names, every)]
