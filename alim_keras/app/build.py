"""From the configuration to model, optimizer, batches and callbacks."""

import math

import keras
import numpy as np

from alim_keras import augment
from alim_keras import backend
from alim_keras import callbacks
from alim_keras import layers
from alim_keras import methods
from alim_keras import metrics
from alim_keras.data import eval_dataset
from alim_keras.data import train_dataset
from alim_keras.errors import ConfigError
from alim_keras.networks import make_backbone

# Flags that are arguments of the methods that have them.
_METHOD_FLAGS = (
    "mixup_weight mixup_alpha logit_adjustment embedding_dim queue_size "
    "key_momentum prototype_momentum temperature prototype_temperature "
    "contrastive_weight"
).split()
# The log that --select looks at.
CRITERIA = {
    "last": None,
    "cr": "holdout_covering_rate",
    "aa": "holdout_approximated_accuracy",
}


def model(config, training, restored=False):
    """Returns the method's model, not compiled.

    Args:
        config: The `Config`.
        training: The `TrainingSet`.
        restored: Whether a checkpoint will overwrite all weights, so that
            those of `--weights` need not be at hand any more.
    """
    backbone, mean, std = backbone_of(config, training, restored)
    method = method_class(config)
    try:
        return method(
            backbone,
            training.num_classes,
            len(training.trained),
            views=views(config, training),
            mean=mean,
            std=std,
            table=table(config, training),
            weight_decay=config.train.weight_decay,
            seed=config.run.seed,
            name=method.__name__.lower(),
            **method_arguments(config),
        )
    except (TypeError, ValueError) as error:
        if not config.method.method_options:
            raise
        raise ConfigError(
            f"{error} (--method_options={config.method.method_options})"
        ) from error


def backbone_of(config, training, restored=False):
    """Returns the backbone, and mean and deviation of what it takes.

    Args:
        config: The `Config`.
        training: The `TrainingSet`.
        restored: See `model`.
    """
    backbone, is_normalised = make_backbone(
        network_name(config, training),
        image_shape(config, training),
        config.method.width,
        None if restored else config.method.weights,
    )
    # A network that brings its own preprocessing wants [0, 255] untouched.
    mean, std = 0.0, 1.0 / 255.0
    if is_normalised:
        mean, std = training.mean, training.std
    return backbone, np.asarray(mean).tolist(), np.asarray(std).tolist()


def views(config, training):
    """Returns the weak and strong augmentation."""
    side = image_shape(config, training)[:2]
    seed, chosen = config.run.seed, config.views
    if training.kind == "features":
        return augment.FeatureViews(training.mean, training.std, seed=seed)
    if chosen.augmentation == "autoaugment":
        # Margin and square as published for 32 pixels, in proportion.
        return augment.AutoAugmentViews(
            image_size=side,
            seed=seed,
            padding=round(min(side) / 8),
            flip=chosen.flip,
            cutout=round(min(side) / 2),
        )
    return augment.Views(
        image_size=side,
        seed=seed,
        crop_scale=(chosen.crop_scale, 1.0),
        flip=chosen.flip,
        jitter=(0.4, 0.4, 0.4, 0.1) if chosen.jitter else None,
        grayscale_probability=0.2 if chosen.jitter else 0.0,
        num_operations=chosen.strong_operations,
        cutout=chosen.cutout,
    )


def image_shape(config, training):
    """Returns the shape `(H, W, channels)` the network works at."""
    height, width, channels = training.images.shape[1:]
    if config.data.image_size and training.kind == "images":
        height = width = config.data.image_size
    return height, width, channels


def table(config, training):
    """Returns the pseudo-label table of the trained rows."""
    size = (len(training.trained), training.num_classes)
    options = {"table_dtype": config.machine.table_dtype}
    options["name"] = "pseudo_label_table"
    if config.machine.table == "dense":
        return layers.PseudoLabelTable(*size, **options)
    largest = int(training.sets.sizes.max())
    return layers.SparsePseudoLabelTable(*size, max_set_size=largest, **options)


def network_name(config, training):
    """Returns `--network`, or the default for this kind of data."""
    default = "mlp" if training.kind == "features" else "small_cnn"
    return config.method.network or default


def method_class(config):
    """Returns the class of the method."""
    return methods.find_method(config.method.method, methods.METHODS)


def method_arguments(config):
    """Returns the method's arguments that the settings give.

    Flags that the method has no argument for are left out, those without a
    value leave the method's own in force, and `--method_options` wins.
    """
    method, alim = method_class(config), config.alim
    known = methods.arguments_of(method)
    arguments = {
        name: getattr(config.method, name)
        for name in _METHOD_FLAGS
        if name in known and getattr(config.method, name) is not None
    }
    arguments["pseudo_label_start"] = config.method.prototype_start
    start = alim.pseudo_label_momentum_start
    end = alim.pseudo_label_momentum_end
    if start is not None:
        pair = (start, start if end is None else end)
        arguments["pseudo_label_momentum"] = pair
    if alim.scores != "method":
        if "scores_from" in known:
            arguments["scores_from"] = alim.scores
        elif alim.scores != "classifier":
            raise ConfigError(
                f"--method={config.method.method} has no prototypes. Received: "
                f"--scores={alim.scores}"
            )
    options = methods.parse_options(config.method.method_options, method)
    return {**arguments, **options}


def mixup_weight(config):
    """Returns the weight of the mixup loss, the method's own if none is set."""
    default = methods.default_of(method_class(config), "mixup_weight")
    return float(method_arguments(config).get("mixup_weight", default))


def keeps_pseudo_labels(config):
    """Returns whether the method has a table for ALIM to work on."""
    targets = method_arguments(config).get("targets")
    method = method_class(config)
    return method.keeps_pseudo_labels or targets == "pseudo_labels"


def compile_model(config, built):
    """Compiles with SGD and the metrics that evaluation reads."""
    # On JAX there is no other way to compile, and without it each operation
    # runs on its own.
    on_jax = keras.config.backend() == "jax"
    built.compile(
        optimizer=keras.optimizers.SGD(
            config.train.learning_rate, momentum=config.train.momentum
        ),
        metrics=[metrics.CoveringRate(), metrics.ApproximatedAccuracy()],
        jit_compile=config.machine.jit_compile or on_jax,
        steps_per_execution=config.machine.steps_per_execution,
    )
    built.optimizer.build(built.trainable_variables)


def learning_rate(config, epochs=None):
    """Returns the rate of an epoch (from 0) as a function.

    The authors' cosine: it ends at a thousandth of the rate it starts from,
    and epochs count from 1, so that the last epoch runs at the floor.

    Args:
        config: The `Config`.
        epochs: Length of the training. Defaults to `--epochs`.
    """
    epochs, rate = epochs or config.train.epochs, config.train.learning_rate

    def cosine(epoch, _=None):
        share = (1 + math.cos(math.pi * (epoch + 1) / epochs)) / 2
        return rate * 1e-3 + (rate - rate * 1e-3) * share

    def constant(epoch, _=None):
        return rate

    return cosine if config.train.lr_schedule == "cosine" else constant


def train_batches(config, training):
    """Returns the training batches of this process."""
    rows = training.trained
    return train_dataset(
        training.images[rows],
        training.sets.take(rows),
        batch_size=config.train.batch_size,
        seed=config.run.seed,
        shard=(backend.process_index(), backend.process_count()),
    )


def eval_batches(training, rows):
    """Returns batches of training images and their candidate sets."""
    return eval_dataset(training.images[rows], training.sets.take(rows))


def run_callbacks(config, folder, training, finished_epochs, noise_rate):
    """Returns the run's callbacks, in the order in which they must act.

    The timer comes first, then the guard, so that nothing is written after a
    loss that is not a number; the checkpoint last, so that it holds what all
    others did.

    Args:
        config: The `Config`.
        folder: The `RunFolder`.
        training: The `TrainingSet`.
        finished_epochs: Integer, how many the checkpoint has behind it.
        noise_rate: A number, an estimator or None, see `noise.prepare`.
    """
    steps = len(training.trained) // config.train.batch_size
    chosen = [
        callbacks.EpochTimer(steps * config.train.batch_size),
        callbacks.NonFiniteGuard(),
        keras.callbacks.LearningRateScheduler(learning_rate(config)),
        *alim(config, training, noise_rate),
        *evaluations(config, training),
    ]
    if not backend.is_chief():
        # The others print and write.
        return chosen
    criterion = CRITERIA[config.train.select]
    return [
        *chosen,
        callbacks.Progress(config.run.progress),
        callbacks.Selection(folder.checkpoint, criterion),
        callbacks.MetricsLog(folder.file("metrics.csv"), finished_epochs),
        folder.checkpoint,
    ]


def alim(config, training, noise_rate):
    """Returns the ALIM callback in a list; empty without pseudo labels.

    Args:
        config: The `Config`.
        training: The `TrainingSet`.
        noise_rate: A number, an estimator or None.
    """
    if not keeps_pseudo_labels(config):
        return []
    rows, known = training.trained, None
    if training.known_as_sets:
        known = training.known[rows] >= 0
    made = training.sets.provenance
    protocol = {"superclass": "pico"}.get(made.get("protocol"))
    everything = None
    if config.alim.update == "epoch":
        everything = eval_batches(training, rows)
    callback = callbacks.ALIM(
        norm=config.alim.norm,
        scale_factor=config.alim.scale_factor,
        lam=config.alim.lam,
        noise_rate=noise_rate,
        warmup_epochs=config.alim.warmup_epochs,
        update=config.alim.update,
        data=everything,
        per_class=config.alim.lam_per_class,
        protocol=protocol or made.get("protocol", "size"),
        ambiguity=made.get("ambiguity"),
        labels=None if training.labels is None else training.labels[rows],
        known=known,
    )
    return [callback]


def evaluations(config, training):
    """Returns the evaluations on held-out sets and on the test set."""
    every, chosen = config.train.evaluate_every, []
    if len(training.held_out):
        names = ("covering_rate", "approximated_accuracy")
        chosen.append(
            callbacks.Evaluation(
                eval_batches(training, training.held_out),
                {name: f"holdout_{name}" for name in names},
                every,
            )
        )
    if len(training.test_images):
        test = eval_dataset(
            training.test_images, training.test_labels, training.num_classes
        )
        names = {"covering_rate": "test_accuracy", "loss": "test_loss"}
        chosen.append(callbacks.Evaluation(test, names, every))
    return chosen


def check(config, replicas=1):
    """Raises, before any data are read, for settings that cannot work.

    Args:
        config: The `Config`.
        replicas: Integer, how many train together.
    """
    alim, batch = config.alim, config.train.batch_size
    if alim.lam not in (0, "adaptive") and not keeps_pseudo_labels(config):
        raise ConfigError(
            f"--method={config.method.method} keeps no pseudo labels, so ALIM "
            "has nothing to adjust; use rc, proden, pico, crdpll, irnet or "
            f"pico_plus, or --lam=0. Received: --lam={alim.lam}"
        )
    if alim.lam_per_class and alim.lam != "adaptive":
        raise ConfigError(
            f"--lam_per_class is for --lam=adaptive. Received: --lam={alim.lam}"
        )
    if config.train.select != "last" and not config.train.holdout:
        raise ConfigError(
            f"--select={config.train.select} judges epochs by images held out "
            "of training; add --holdout=0.1. Received: --holdout=0"
        )
    if config.machine.replicas and config.machine.distribute != "mirrored":
        raise ConfigError(
            "--replicas needs --distribute=mirrored; multi_worker runs one in "
            f"each process. Received: --replicas={config.machine.replicas} "
            f"--distribute={config.machine.distribute}"
        )
    if batch % replicas:
        raise ConfigError(
            f"A batch must split evenly over {replicas} replicas. "
            f"Received: --batch_size={batch}"
        )
    if replicas > 1 and mixup_weight(config) and batch // replicas % 2:
        raise ConfigError(
            "Mixup pairs neighbours, so each replica needs an even share "
            f"of the batch. Received: --batch_size={batch} "
            f"for {replicas} replicas"
        )
    if replicas > 1 and config.machine.steps_per_execution > 1:
        raise ConfigError(
            "--steps_per_execution above 1 does not work with more than one "
            "replica in Keras. Received: --steps_per_execution="
            f"{config.machine.steps_per_execution}"
        )


def notes(config):
    """Returns sentences about settings that work, and surprise."""
    alim, epochs = config.alim, config.train.epochs
    found = []
    if (
        alim.lam != 0
        and keeps_pseudo_labels(config)
        and alim.warmup_epochs >= epochs
    ):
        found.append(
            f"ALIM stays off: --warmup_epochs={alim.warmup_epochs} is as long "
            f"as the training, --epochs={epochs}. Give fewer, such as "
            f"--warmup_epochs={epochs // 4}."
        )
    return found


def describe(config, built, training, replicas=1):
    """Returns what the run's model is, and how much memory it takes."""
    trainable = sum(math.prod(v.shape) for v in built.trainable_variables)
    variables = (*built.variables, *built.optimizer.variables)
    state = sum(variable.value.nbytes for variable in variables)
    held = training.images.nbytes + training.sets.nbytes
    return (
        f"Model: {config.method.method} on {network_name(config, training)}, "
        f"{trainable:,} trainable parameters, all decayed by "
        f"{config.train.weight_decay:g}; {replicas} replica(s)\n"
        f"Memory: {_size(state)} of weights, table and optimizer on each "
        f"device, {_size(held)} of images and sets, and the activations of a "
        "step"
    )


def _size(count):
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = "GiB"
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
