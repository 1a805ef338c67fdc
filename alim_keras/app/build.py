"""From the configuration to model, optimizer, batches and callbacks."""

import contextlib
import dataclasses
import math

import keras
import numpy as np

from alim_keras import augment
from alim_keras import backend
from alim_keras import callbacks
from alim_keras import data
from alim_keras import draws
from alim_keras import errors
from alim_keras import layers
from alim_keras import methods
from alim_keras import metrics
from alim_keras import networks
from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app import features
from alim_keras.app import load
from alim_keras.app.config import Config
from alim_keras.app.run_folder import RunFolder

# The log that --select looks at.
_CRITERIA = {
    "last": None,
    "cr": "holdout_covering_rate",
    "aa": "holdout_approximated_accuracy",
}


def model(config, training, restored=False):
    """Returns the method's model, compiled.

    With `restored` a checkpoint will overwrite all weights, so those of
    `--weights` need not be at hand any more.
    """
    backend.set_random_seed(config.run.seed)
    keras.config.set_dtype_policy(config.machine.precision)
    method = methods.find_method(config.method.method)
    arguments, options = common_arguments(config, training, restored)
    options |= method_arguments(config)
    try:
        built = method(*arguments, **options)
    except (TypeError, ValueError) as error:
        given = config.method.method_options
        if not given:
            raise
        why = f"{error} (--method_options={given})"
        raise errors.ConfigError(why) from error
    if built.folds and training.copies is not None:
        groups = training.copies[training.trained]
        sizes = built.num_examples, built.folds, config.run.seed
        built.fold.assign(draws.folds(*sizes, groups))
    compile_model(config, built)
    return built


def common_arguments(config, training, restored=False):
    """Returns the arguments of every method, by place and by name."""
    backbone, mean, std = backbone_of(config, training, restored)
    classes, examples = training.num_classes, len(training.trained)
    table = config.machine.table
    if table == "sparse":
        table = layers.SparsePseudoLabelTable(
            examples,
            classes,
            max_set_size=int(training.sets.sizes.max()),
            name="pseudo_label_table",
        )
    options = {
        "views": _views(config, training, backbone.input_shape[1:3]),
        "mean": mean,
        "std": std,
        "table": table,
        "weight_decay": config.train.weight_decay,
        "folds": config.method.head_folds or 0,
        "seed": config.run.seed,
    }
    return (backbone, classes, examples), options


def backbone_of(config, training, restored=False):
    """Returns the backbone, and mean and deviation of its input."""
    pretrained = features.backbone_of(config, training)
    if training.backbone is not None:
        unit = networks.unit_features(training.images.shape[-1])
        return unit, training.mean, training.std
    if pretrained is not None:
        backbone = pretrained.build(not restored)
        word, _, count = (config.method.train_backbone or "").partition(":")
        if word == "last":
            networks.train_last(backbone, int(count))
        elif word == "after":
            # Of a new run, the mean and deviation are those of the features.
            scale = None if restored else (training.mean, training.std)
            backbone = networks.with_unit_features(backbone, scale)
        return backbone, 0.0, 1.0 / 255.0
    shape = training.images.shape[1:]
    if config.data.image_size and training.kind == "images":
        shape = (config.data.image_size, config.data.image_size, shape[-1])
    name, width = network_name(config, training), config.method.width
    weights = None if restored else config.method.weights
    backbone, is_normalised = networks.make_backbone(
        name, shape, width, weights
    )
    if is_normalised:
        return backbone, training.mean, training.std
    # A network with preprocessing of its own wants [0, 255] untouched.
    return backbone, 0.0, 1.0 / 255.0


def _views(config, training, side):
    """Returns the weak and strong augmentation, to height and width `side`."""
    seed, chosen = config.run.seed, config.views
    if training.kind == "features":
        return augment.FeatureViews(training.mean, training.std, seed=seed)
    if chosen.augmentation == "autoaugment":
        # Margin and square as published for 32 pixels, in proportion.
        return augment.AutoAugmentViews(
            side,
            padding=round(min(side) / 8),
            flip=chosen.flip,
            cutout=round(min(side) / 2),
            seed=seed,
        )
    return augment.Views(
        side,
        crop_scale=(chosen.crop_scale, 1.0),
        flip=chosen.flip,
        jitter=chosen.jitter,
        num_operations=chosen.strong_operations,
        cutout=chosen.cutout,
        seed=seed,
    )


def network_name(config, training):
    """Returns `--network`, or the default for this kind of data."""
    if training.backbone is not None:
        return f"{training.backbone.name} (frozen)"
    default = "mlp" if training.kind == "features" else "small_cnn"
    return config.method.network or default


def method_arguments(config):
    """Returns the arguments that settings give; `--method_options` wins."""
    method, alim = methods.find_method(config.method.method), config.alim
    known = methods.arguments_of(method)
    arguments = {
        name: value
        for name, value in vars(config.method).items()
        if name in known and value is not None
    }
    arguments["pseudo_label_start"] = config.method.prototype_start
    start = alim.pseudo_label_momentum_start
    end = alim.pseudo_label_momentum_end
    if start is not None:
        pair = (start, start if end is None else end)
        arguments["pseudo_label_momentum"] = pair
    if alim.scores != "method" and "scores_from" in known:
        arguments["scores_from"] = alim.scores
    elif alim.scores == "prototypes":
        why = f"--method={config.method.method} has no prototypes"
        _refuse(why, "scores", alim.scores)
    options = methods.parse_options(config.method.method_options, method)
    return {**arguments, **options}


def mixup_weight(config):
    """Returns the weight of mixup: the one that is asked, or the method's."""
    method = methods.find_method(config.method.method)
    arguments = {**methods.arguments_of(method), **method_arguments(config)}
    return float(arguments.get("mixup_weight") or 0.0)


def keeps_pseudo_labels(config):
    """Returns whether the method has a table for ALIM to work on."""
    return methods.find_method(config.method.method).keeps_pseudo_labels


def compile_model(config, built):
    """Compiles with SGD and the metrics that evaluation reads."""
    # On JAX there is no other way to compile.
    on_jax = keras.config.backend() == "jax"
    built.compile(
        optimizer=keras.optimizers.SGD(
            config.train.learning_rate, momentum=config.train.momentum
        ),
        metrics=[metrics.CoveringRate(), metrics.ApproximatedAccuracy()],
        jit_compile=config.machine.jit_compile or on_jax,
    )
    built.optimizer.build(built.trainable_variables)


def learning_rate(config):
    """Returns the authors' cosine: a function of an epoch, from 0.

    The last epoch has a thousandth of the rate at the start.
    """
    epochs, rate = config.train.epochs, config.train.learning_rate
    floor = rate * 1e-3 if config.train.lr_schedule == "cosine" else rate

    def rate_of(epoch, _=None):
        share = (1 + math.cos(math.pi * (epoch + 1) / epochs)) / 2
        return floor + (rate - floor) * share

    return rate_of


def train_batches(config, training):
    """Returns the training batches of this process."""
    rows = training.trained
    return data.train_dataset(
        training.images[rows],
        training.sets.take(rows),
        batch_size=config.train.batch_size,
        seed=config.run.seed,
        shard=backend.process(),
    )


def eval_batches(training, rows):
    """Returns batches of training images and their candidate sets."""
    sets = training.sets.take(rows)
    return data.eval_dataset(training.images[rows], sets, training.num_classes)


def run_callbacks(config, folder, training, finished_epochs, noise_rate):
    """Returns the run's callbacks, in the order in which they must act.

    The guard comes before those that write, and the checkpoint, which holds
    what all others did, last.
    """
    size = config.train.batch_size
    chosen = [
        callbacks.EpochTimer(len(training.trained) // size * size),
        callbacks.NonFiniteGuard(),
        keras.callbacks.LearningRateScheduler(learning_rate(config)),
        *_alim(config, training, noise_rate),
        *_evaluations(training),
    ]
    if not backend.is_chief():
        # The others print and write.
        return chosen
    folder.checkpoint.criterion = _CRITERIA[config.train.select]
    return [
        *chosen,
        callbacks.Progress(config.run.progress),
        callbacks.MetricsLog(folder.file("metrics.csv"), finished_epochs),
        folder.checkpoint,
    ]


def _alim(config, training, noise_rate):
    """Returns the ALIM callback in a list; empty without pseudo labels."""
    if not keeps_pseudo_labels(config):
        return []
    rows, labels, chosen = training.trained, training.labels, config.alim
    known = training.known >= 0 if training.known_as_sets else None
    if known is not None:
        # Answers are no test of what is learnt.
        others = (labels >= 0) & ~known
        labels = np.where(others, labels, -1) if others.any() else None
    callback = callbacks.ALIM(
        norm=chosen.norm,
        scale_factor=chosen.scale_factor,
        lam=chosen.lam,
        noise_rate=noise_rate,
        warmup_epochs=chosen.warmup_epochs,
        update=chosen.update,
        data=eval_batches(training, rows) if chosen.update == "epoch" else None,
        labels=None if labels is None else labels[rows],
        known=None if known is None else known[rows],
    )
    return [callback]


def _evaluations(training):
    """Returns the evaluations on held-out sets and on the test set."""
    chosen = []
    if len(training.held_out):
        names = ("covering_rate", "approximated_accuracy")
        names = {name: f"holdout_{name}" for name in names}
        batches = eval_batches(training, training.held_out)
        chosen.append(callbacks.Evaluation(batches, names))
    if len(training.test_images):
        names = {"covering_rate": "test_accuracy", "loss": "test_loss"}
        chosen.append(callbacks.Evaluation(test_batches(training), names))
    return chosen


def test_batches(training):
    """Returns batches of test images and their labels."""
    images, labels = training.test_images, training.test_labels
    return data.eval_dataset(images, labels, training.num_classes)


def check(config, replicas=1):
    """Raises, before any data are read, for settings that cannot work."""
    config = defaults.filled(config)
    methods.find_method(config.method.method)
    alim, train, machine = config.alim, config.train, config.machine
    needs_table = alim.lam not in (0, "adaptive")
    if needs_table and not keeps_pseudo_labels(config):
        _refuse(
            f"--method={config.method.method} keeps no pseudo labels, so ALIM "
            "has nothing to adjust; use another method, or --lam=0",
            "lam",
            alim.lam,
        )
    if train.select != "last" and not train.holdout:
        why = f"--select={train.select} judges epochs by images held out of "
        _refuse(f"{why}training; add --holdout=0.1", "holdout", 0)
    if machine.replicas and machine.distribute != "mirrored":
        why = "--replicas needs --distribute=mirrored"
        _refuse(why, "distribute", machine.distribute)
    if replicas > 1:
        # Mixup pairs the images of a replica.
        share = replicas * (2 if mixup_weight(config) else 1)
        if train.batch_size % share:
            why = f"{replicas} replicas need a multiple of {share} images"
            _refuse(why, "batch_size", train.batch_size)


def _refuse(why, name, value):
    raise errors.ConfigError(f"{why}. Received: --{name}={value}")


def describe(config, built, training, replicas):
    """Returns what the model is, how much memory it takes, and what is odd."""
    trainable = sum(math.prod(v.shape) for v in built.trainable_variables)
    state = callbacks.state_bytes(built)
    text = (
        f"Model: {config.method.method} on {network_name(config, training)}, "
        f"{trainable:,} trainable parameters; weights, table and optimizer "
        f"take {state / 2**20:,.1f} MiB on each of {replicas} device(s)"
    )
    warmup, epochs = config.alim.warmup_epochs, config.train.epochs
    is_on = config.alim.lam != 0 and keeps_pseudo_labels(config)
    if is_on and warmup >= epochs:
        why = f"--warmup_epochs={warmup} is as long as --epochs={epochs}"
        text += f"\nALIM stays off: {why}. Give fewer, such as {epochs // 4}."
    return text


@dataclasses.dataclass
class OpenRun:
    """A run that was opened again, with the weights of the selected `epoch`."""

    folder: RunFolder
    config: Config
    training: data.TrainingSet
    model: keras.Model
    epoch: int


def settings(line, folder):
    """Returns the `Config` of a run folder that a `cli.Line` names."""
    options = line.options
    for name in ("run.flags", "candidates.npz"):
        if folder.existing(name) is None:
            raise errors.CheckpointError(
                f"There is no {name} in {folder.path}. The train command "
                "with this --run_dir writes it again."
            )
    config = cli.read_flags(folder.read_text("run.flags"))
    config = config.replace(
        run_dir=folder.path,
        data_dir=options.data_dir or config.data.data_dir,
        images=options.images or config.table.images,
    )
    code = {"method": config.method.method, "format": config.table.format}
    for name, value in code.items():
        if value and ":" in value and not options.trust_code:
            raise errors.ConfigError(
                "The run's run.flags names code of its own, "
                f"--{name}={value}, which would run with your rights. Read "
                "it, then add --trust_code."
            )
    return config


@contextlib.contextmanager
def open_run(line, lock=True):
    """Yields the `OpenRun` that a `cli.Line` names, and keeps it locked."""
    folder = RunFolder(line.words["run"])
    if not folder.checkpoint.exists():
        raise errors.CheckpointError(
            f"There is no checkpoint in {folder.path}. Give the folder of a "
            "run that finished at least one epoch."
        )
    with folder.lock(lock):
        yield reopened(settings(line, folder), folder)


def reopened(config, folder):
    """Returns the `OpenRun` of a folder that is locked, and its `Config`."""
    training = load.training_set(config, folder, reopen=True)
    training = defaults.arranged(config, training)
    training = features.at_own_size(config, training)
    training = features.frozen(config, training, folder)
    built = model(config, training, restored=True)
    folder.checkpoint.restore(built, "best")
    epoch = folder.checkpoint.state["best"]["epoch"]
    return OpenRun(folder, config, training, built, epoch)


def start_from(built, first):
    """Gives a model the table, heads and state of an `OpenRun` of features."""
    states = {v.path: v for v in first.model.variables}
    for variable in built.variables:
        state = states.get(variable.path)
        if state is not None and state.shape == variable.shape:
            variable.assign(state.numpy())
