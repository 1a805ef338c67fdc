"""Measures what a training step costs, beside a plain one of its network.

    python -m alim_keras.benchmark --preset=cifar10 --precision=mixed_bfloat16

Without any flag the built-in digits run is measured.
"""

import dataclasses
import json
import math
import sys
import time

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.app.values import number
from alim_keras.app.values import path
from alim_keras.errors import ConfigError
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically


@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """Benchmark.

    Attributes:
        seconds: Begin rounds of measurements for so long; one at least.
        output: Write all numbers to this file, as JSON. Without it: no file.
    """

    seconds: float = number(60.0, low=0)
    output: str | None = path()


COMMAND = cli.Command(
    name="benchmark",
    doc=(
        "Measures a training step of ALIM beside a plain training step of the "
        "same network: one process, in turns. It takes training's flags too; "
        "those that do not shape a step are ignored."
    ),
    groups=(BenchmarkConfig, *TRAINING),
    examples=("benchmark --preset=cifar10 --width=16",),
)
# A turn has so many steps that it lasts about this long, so that the clock's
# grain and a cold cache do not count.
TURN_SECONDS = 0.2
_MOST_STEPS = 200


def main(line):
    """Measures, prints a table, and writes `--output`."""
    from alim_keras.app import build
    from alim_keras.app import defaults
    from alim_keras.app import load

    config, options = defaults.filled(line.config), line.options
    build.check(config)
    method, distribute = config.method.method, config.machine.distribute
    if (method, distribute) != ("pico", "none"):
        raise ConfigError(
            "The benchmark measures PiCO's step on one device. Received: "
            f"--method={method} --distribute={distribute}"
        )
    if options.output:
        check_is_no_folder(options.output, "--output")
    training = defaults.arranged(config, load.training_set(config))
    turns = make_turns(config, training)
    samples = measure(turns, options.seconds)
    result = record(config, training, samples)
    print(table(result))
    if options.output:
        content = json.dumps(result, indent=1, allow_nan=False)
        write_atomically(options.output, f"{content}\n")


# What is timed.


def make_turns(config, training):
    """Returns a dict from a name to a function that times it once, in seconds.

    They are ALIM's step, and an ordinary step of its network on one batch of
    normalised images that is on the device already.
    """
    import keras
    import numpy as np

    from alim_keras import backend
    from alim_keras.app import build
    from alim_keras.networks import classifier_head

    backend.set_random_seed(config.run.seed)
    keras.config.set_dtype_policy(config.machine.precision)
    model = build.model(config, training)
    build.compile_model(config, model)
    batches = build.train_batches(config, training)
    steps = len(training.trained) // config.train.batch_size

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
        jit_compile=config.machine.jit_compile
        or keras.config.backend() == "jax",
    )
    size, shape = config.train.batch_size, build.image_shape(config, training)
    images = keras.random.normal((size, *shape), seed=0)
    labels = keras.ops.one_hot(np.arange(size) % classes, classes)

    class OneBatch(keras.utils.PyDataset):
        """The same batch again and again."""

        def __len__(self):
            return 2 * _MOST_STEPS + 1

        def __getitem__(self, step):
            return images, labels

    return {
        "alim": _turn(model, batches, steps),
        "plain": _turn(network, OneBatch(), len(OneBatch())),
    }


def _turn(model, data, available):
    """Returns a function that times a step of `model.fit`, in seconds.

    It trains for two short epochs and times the second: in the first the
    pipeline comes up to speed. `available` is the number of steps in the data.
    """
    import keras

    times = []

    def end(epoch, logs=None):
        # Reading a weight waits until the last step has written it.
        model.trainable_variables[-1].numpy()
        times.append(time.perf_counter())

    timer = keras.callbacks.LambdaCallback(
        lambda epoch, logs: times.append(time.perf_counter()), end
    )

    def run(count):
        model.fit(
            data, epochs=2, steps_per_epoch=count, verbose=0, callbacks=[timer]
        )
        return (times[-1] - times[-2]) / count

    run(1)  # Compiles.
    wanted = math.ceil(TURN_SECONDS / max(run(1), 1e-9))
    count = max(1, min(wanted, _MOST_STEPS, (available - 1) // 2))
    return lambda: run(count)


def measure(turns, seconds):
    """Times the turns one after the other, so that a disturbance meets all.

    Returns a dict from a name to a list of seconds, one for each round. Rounds
    begin until `seconds` are over.
    """
    samples = {name: [] for name in turns}
    began = time.perf_counter()
    while True:
        for name, turn in turns.items():
            samples[name].append(turn())
        if time.perf_counter() - began >= seconds:
            return samples


# Results.


def record(config, training, samples):
    """Returns what a benchmark found, ready for JSON.

    `efficiency` says how close ALIM's step comes to plain steps of its
    network: the limit is `passes` of them and one forward pass, the key
    encoder's, which is taken for a third of one.
    """
    import numpy as np

    from alim_keras.app import build
    from alim_keras.app import run_folder

    seconds = {name: float(np.median(each)) for name, each in samples.items()}
    passes = 2 if build.mixup_weight(config) else 1
    return {
        "settings": config.as_dict(),
        "versions": run_folder.versions(),
        "machine": run_folder.machine(),
        "network": build.network_name(config, training),
        "image_shape": list(build.image_shape(config, training)),
        "samples": samples,
        "seconds": seconds,
        "images_per_second": {
            name: config.train.batch_size / each
            for name, each in seconds.items()
        },
        "efficiency": seconds["plain"] * (passes + 1 / 3) / seconds["alim"],
    }


def table(result):
    """Returns the record as text for a terminal."""
    rounds, rates = len(result["samples"]["alim"]), result["images_per_second"]
    lines = [
        f"{result['network']} on {result['image_shape']}; medians of {rounds} "
        "rounds"
    ]
    for name, seconds in result["seconds"].items():
        lines.append(
            f"{name:<12}{1e3 * seconds:>10.3f} ms {rates[name]:>10.2f} images/s"
        )
    lines.append(f"{'efficiency':<12}{result['efficiency']:>10.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
