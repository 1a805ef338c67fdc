"""Settings that nobody gave, chosen from the data by rules that were measured.

A data set with a name has `STANDARD`. For data of one's own `resolve` fills in
what neither the command line nor a flagfile or preset gave.
"""

import dataclasses
import math
import os

from alim_keras import files
from alim_keras.data import known_data
from alim_keras.data.annotators import shared_votes
from alim_keras.data.images import DiskImages
from alim_keras.data.training_set import holdout_split
from alim_keras.errors import ConfigError

STANDARD = {
    "method": "pico",
    "lam": "adaptive",
    "epochs": 80,
    "batch_size": 64,
    "learning_rate": 0.05,
    "weight_decay": 0.001,
    "warmup_epochs": 15,
    "flip": 0.0,
    "holdout": 0.1,
}
# Heads on frozen features, measured on 234 bird photos and 10,000 CIFAR-10
# images with one person's labels: docs/photos.md has the tables. The adaptive
# lambda has fewer labels right on both, with three people's votes more.
HEAD_METHOD, HEAD_EPOCHS, HEAD_LEARNING_RATE = "proden", 30, 4.0
HEAD_FOLDS, HEAD_LAM = 10, 0.1
# Coupled weight decay of the head is this over N^(3/4).
HEAD_DECAY = 0.04
# After them, of the whole network: a tenth of the standard rate, for batches of
# the standard size.
TUNE_EPOCHS, TUNE_LEARNING_RATE = 5, 0.1 * STANDARD["learning_rate"]
# A network from random weights. With fewer examples a linear head on colours
# and edges is better: 0.61 against 0.47 labels right on the bird photos. Where
# it turns was not measured.
FEWEST_TO_TRAIN = 2000
SCRATCH_NETWORK, SCRATCH_WIDTH, SCRATCH_SIDE = "cifar_resnet18", 16, 64
STATISTICS = "image_statistics"
# Steps of a whole training, and bounds of its epochs.
SCRATCH_STEPS, SCRATCH_EPOCHS = 4000, (30, 80)
STEPS_AN_EPOCH, LARGEST_BATCH, SMALLEST_BATCH = 20, 256, 4
WARMUP_SHARE = 0.2
WITHOUT_WEIGHTS = (
    "warning: no pretrained weights are at hand; with them, 234 bird photos "
    "gave 0.68 test, without 0.29. Bring\n    some: --network=FILE.keras, from "
    "pixels to features, or --weights=imagenet, which Keras downloads."
)


def is_own(dataset, network=None):
    """Returns whether the rules choose: for own data, or --network=auto."""
    return network == "auto" or known_data.is_table(dataset)


def standard(values):
    """Returns settings by name, those of `STANDARD` that are None filled in."""
    given = {k: value for k, value in values.items() if value is not None}
    return {**values, **STANDARD, **given}


def filled(config):
    """Returns a `Config` without None among the settings of `STANDARD`."""
    return config.replace(**standard(config.as_dict()))


def kept(config, folder):
    """Returns the `Config` with what was chosen as the run here began."""
    run, values = folder.begun() or {}, config.as_dict()
    is_free = {k for k, value in values.items() if value in (None, "auto")}
    names = is_free & run.get("chosen", {}).keys()
    return config.replace(**{name: run["settings"][name] for name in names})


def resolve(config, training):
    """Fills in the settings that are None: by rules, or from `STANDARD`.

    Returns the `Config`, and a dict from each setting that a rule chose to a
    line that says why, or to None where another line says it.
    """
    is_free = is_own(config.data.dataset, config.method.network)
    if not is_free and not epochs_frozen(config.method.train_backbone):
        return filled(config), {}
    rules = _Rules(config.as_dict(), training)
    rules.choose_all()
    return config.replace(**rules.values), rules.reasons


def epochs_frozen(part):
    """Returns E of `--train_backbone=after:E`, else 0."""
    word, _, epochs = (part or "").partition(":")
    return int(epochs) if word == "after" else 0


def of_frozen_part(config, run_dir):
    """Returns the `Config` of the run that trains the head of `after:E`."""
    epochs = epochs_frozen(config.method.train_backbone)
    return config.replace(
        run_dir=run_dir,
        train_backbone="none",
        epochs=epochs,
        warmup_epochs=_warmup(epochs),
        learning_rate=HEAD_LEARNING_RATE,
    )


def _warmup(epochs):
    return max(1, round(WARMUP_SHARE * epochs))


def arranged(config, training):
    """Returns the `TrainingSet` at the chosen size, with its part held out."""
    if config.data.image_size:
        channels = training.images.shape[-1]
        training = with_form(training, config.data.image_size, channels)
    trained, held_out = holdout_split(
        training.ids, config.train.holdout, config.run.seed, training.copies
    )
    training = dataclasses.replace(training, trained=trained, held_out=held_out)
    size = config.train.batch_size
    if len(trained) < size:
        raise ConfigError(
            f"The images to train on, {len(trained)}, do not fill one batch; "
            f"use a smaller --batch_size. Received: --batch_size={size}"
        )
    return training


def with_form(training, side, channels):
    """Returns a `TrainingSet` whose image files are decoded in another form."""
    if not isinstance(training.images, DiskImages):
        return training
    return dataclasses.replace(
        training,
        images=training.images.with_form(side, channels),
        test_images=training.test_images.with_form(side, channels),
    )


def describe(reasons):
    """Returns the lines of `resolve` as a block of text; empty without any."""
    lines = [line for line in reasons.values() if line]
    if not lines:
        return ""
    return "\n  ".join(["Chosen for these data (a flag overrides):", *lines])


class _Rules:
    """Chooses what is None in `values`, a dict, and notes the `reasons`."""

    def __init__(self, values, training):
        self.values, self.training, self.reasons = values, training, {}
        self.count = len(training)
        self.is_photo = training.kind == "images"
        self.is_colour = self.is_photo and training.images.shape[-1] == 3
        noun = "photos" if self.is_colour else "images"
        self.what = f"{self.count:,} {noun if self.is_photo else 'items'}"
        self.is_tuned = bool(epochs_frozen(values["train_backbone"]))

    def choose_all(self):
        """Chooses in an order in which rules find what they build on."""
        values = self.values
        is_frozen = self.is_photo and self._network()
        if is_frozen:
            rate, decay = self._head()
        if self.is_colour and (self.is_tuned or not is_frozen):
            self._choose("flip", 0.5, "a mirrored photo shows the same class")
        # Nothing looks at it: folds judge, or lambda is no estimate's.
        is_idle = values["head_folds"] or values["lam"] == HEAD_LAM
        if is_idle and values["select"] == "last":
            self._choose("holdout", 0.0, "nothing needs a held-out part")
        self._choose("holdout", STANDARD["holdout"])
        trained = self.count - round(self.count * values["holdout"])
        most = 2 ** int(math.log2(max(trained / STEPS_AN_EPOCH, 1)))
        size = min(max(most, SMALLEST_BATCH), LARGEST_BATCH, trained)
        self._choose("batch_size", size, f"steps an epoch: {trained // size}")
        if self.is_tuned:
            why = "the frozen run before has settled the labels"
            self._choose("epochs", TUNE_EPOCHS, why)
            self._choose("warmup_epochs", 0)
            share = values["batch_size"] / STANDARD["batch_size"]
            tenth = float(f"{TUNE_LEARNING_RATE * share:.1e}")
            why = "a tenth of a new network's with such batches"
            self._choose("learning_rate", tenth, why)
        if is_frozen:
            self._choose("epochs", HEAD_EPOCHS, "a head has settled by then")
            self._choose("learning_rate", rate, "a linear head's")
            why = f"{decay} / {trained:,}^0.75: with less, pseudo labels fit "
            decay = float(f"{decay / trained**0.75:.1e}")
            self._choose("weight_decay", decay, f"{why}their own set")
        fewest, most = SCRATCH_EPOCHS
        steps = max(1, trained // values["batch_size"])
        epochs = min(max(round(SCRATCH_STEPS / steps), fewest), most)
        why = f"about {SCRATCH_STEPS:,} steps, and {fewest} to {most} epochs"
        self._choose("epochs", epochs, why)
        why = f"{WARMUP_SHARE:.0%} of the epochs; then ALIM acts"
        self._choose("warmup_epochs", _warmup(values["epochs"]), why)
        for name, value in STANDARD.items():
            self._choose(name, value)

    def _choose(self, name, value, why=None, shown=None):
        """Sets what is None."""
        if self.values[name] in (None, "auto"):
            self.values[name] = value
            shown = value if shown is None else shown
            self.reasons[name] = why and f"{name}: {shown}: {why}"

    def _head(self):
        """Chooses for a head; returns its rate, and its decay before N."""
        rate, decay = HEAD_LEARNING_RATE, HEAD_DECAY
        lam, why = HEAD_LAM, "on frozen features it beat the adaptive one"
        if shared_votes(self.training) is not None:
            lam, rate, decay = STANDARD["lam"], 2 * rate, decay / 2
            why = "the votes of several people give the noise rate"
        if self.values["noise_rate"] is None:
            self._choose("lam", lam, why)
        self._choose("method", HEAD_METHOD, "a head needs no contrast loss")
        folds, why = HEAD_FOLDS, "heads that did not see an item judge it"
        if self.values["network"] == STATISTICS:
            folds, rate, decay = 0, HEAD_LEARNING_RATE / 2, HEAD_DECAY
            why = "on so weak features folds lose more than they gain"
        self._choose("head_folds", folds, why)
        return rate, decay

    def _network(self):
        """Chooses a network; returns whether it is frozen."""
        values = self.values
        name, weights = values["network"], values["weights"]
        is_free = name in (None, "auto") and values["width"] is None
        if is_free and str(weights).endswith(".keras"):
            # A file that holds a whole network.
            name, weights, values["weights"] = weights, None, None
        is_free = is_free and weights in (None, "imagenet")
        backbone = None
        is_likely = weights or os.path.isdir(files.weights_folder())
        if name not in (None, "auto") or (is_free and is_likely):
            # It imports Keras, which takes seconds.
            from alim_keras.networks import pretrained

            backbone = pretrained.find(name, weights, values["image_size"])
        if backbone is None:
            return self._without_weights(is_free)
        few = f"{self.what} are too few to train a network from random weights"
        if self.count >= FEWEST_TO_TRAIN:
            few = f"it has seen far more than these {self.what}"
        named = f"a head learns on the features of {backbone.name[:30]}"
        self._choose("train_backbone", "none", None if is_free else named)
        is_frozen = values["train_backbone"] == "none" or self.is_tuned
        if is_free:
            values["weights"] = None if backbone.path else "imagenet"
            dim = backbone.network.output_shape[1]
            shown = f"{backbone.name[:30]} ({dim:,} features)"
            shown = f"{'frozen ' if is_frozen else ''}{shown}"
            chosen = backbone.path or backbone.name
            self._choose("network", chosen, few, shown)
        return is_frozen

    def _without_weights(self, is_free):
        """Chooses where weights are missing; returns whether it is frozen."""
        if is_free and self.count < FEWEST_TO_TRAIN:
            why = f"a head on colours and edges: {self.what} train no network"
            self._choose("network", STATISTICS, why)
            self._choose("train_backbone", "none")
        elif self.values["network"] in (None, "auto"):
            self._choose("width", SCRATCH_WIDTH)
            why = f"{self.what}, from random weights"
            shown = f"{SCRATCH_NETWORK} of width {self.values['width']}"
            self._choose("network", SCRATCH_NETWORK, why, shown)
            side = self.training.images.shape[1]
            if side > SCRATCH_SIDE:
                times = (side / SCRATCH_SIDE) ** 2
                why = f"{side} pixels would take {times:.0f} times as long"
                self._choose("image_size", SCRATCH_SIDE, why)
        if self.reasons.get("network") and not self.values["weights"]:
            self.reasons["warning"] = WITHOUT_WEIGHTS
        return self.values["network"] == STATISTICS
