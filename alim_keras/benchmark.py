"""Measures a training step of ALIM beside a plain one of the same network.

In one process, in turns. It takes training's flags too; those that do not
shape a step are ignored. Without any flag the built-in digits run is measured.
Prints JSON.
"""

import dataclasses
import json
import sys
import time

import numpy as np

from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app import load
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.app.values import number
from alim_keras.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """Benchmark.

    Attributes:
        seconds: Begin rounds of measurements for so long; one at least.
    """

    seconds: float = number(60.0, low=0)


COMMAND = cli.Command(
    name="benchmark",
    doc=__doc__,
    groups=(BenchmarkConfig, *TRAINING),
    examples=("benchmark --preset=cifar10 --width=16",),
)
# Steps that are timed together, so that the clock's grain does not count.
_STEPS = 20


def main(line):
    """Measures, and prints what was found."""
    from alim_keras.app import build

    config = defaults.filled(line.config)
    build.check(config)
    method, distribute = config.method.method, config.machine.distribute
    if (method, distribute) != ("pico", "none"):
        raise ConfigError(
            "The benchmark measures PiCO's step on one device. Received: "
            f"--method={method} --distribute={distribute}"
        )
    training = defaults.arranged(config, load.training_set(config))
    model = build.model(config, training)
    turns = make_turns(model, config, training)
    found = record(model, config, measure(turns, line.options.seconds))
    found["network"] = build.network_name(config, training)
    print(json.dumps(found, indent=1))


def make_turns(model, config, training):
    """Returns functions that time ALIM's step and a plain one, by name.

    The plain one has a batch that is on the device already.
    """
    import keras

    from alim_keras.app import build
    from alim_keras.networks import classifier_head

    backbone, *_ = build.backbone_of(config, training)
    width, classes = backbone.output_shape[-1], training.num_classes
    network = keras.Sequential([backbone, classifier_head(width, classes)])
    network.compile(
        keras.optimizers.SGD(
            config.train.learning_rate,
            momentum=config.train.momentum,
            weight_decay=config.train.weight_decay or None,
        ),
        keras.losses.CategoricalCrossentropy(from_logits=True),
        jit_compile=model.jit_compile,
    )
    size = config.train.batch_size
    images = keras.random.normal((size, *model.image_shape), seed=0)
    labels = keras.ops.one_hot(np.arange(size) % classes, classes)

    class OneBatch(keras.utils.PyDataset):
        """The same batch again and again."""

        def __len__(self):
            return 2 * _STEPS

        def __getitem__(self, step):
            return images, labels

    batches = build.train_batches(config, training)
    count = max(1, min(_STEPS, len(training.trained) // size // 2))
    return {
        "alim": _turn(model, batches, count),
        "plain": _turn(network, OneBatch(), count),
    }


def _turn(model, data, count):
    """Returns a function that times a step of `model.fit`, in seconds."""
    from alim_keras.callbacks import EpochTimer

    def run():
        done = model.fit(
            data,
            epochs=2,  # In the first the pipeline comes up to speed.
            steps_per_epoch=count,
            verbose=0,
            callbacks=[EpochTimer(count)],
        )
        # Of `count` images that it was told.
        return 1 / done.history["images_per_second"][-1]

    run()  # Compiles.
    return run


def measure(turns, seconds):
    """Returns each turn's seconds, of rounds that begin for so long."""
    samples = {name: [] for name in turns}
    began = time.perf_counter()
    while True:
        for name, turn in turns.items():
            samples[name].append(turn())
        if time.perf_counter() - began >= seconds:
            return samples


def record(model, config, samples):
    """Returns what was found as a dict: medians, in seconds, and images/s.

    `efficiency` says how close ALIM's step comes to its limit: a plain step, or
    two with mixup, and the key encoder's forward pass, a third of one.
    """
    seconds = {name: float(np.median(each)) for name, each in samples.items()}
    limit = seconds["plain"] * ((2 if model.mixup_weight else 1) + 1 / 3)
    size = config.train.batch_size
    return {
        "image_shape": list(model.image_shape),
        "rounds": len(samples["alim"]),
        "seconds": seconds,
        "images_per_second": {n: size / each for n, each in seconds.items()},
        "efficiency": limit / seconds["alim"],
    }


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
