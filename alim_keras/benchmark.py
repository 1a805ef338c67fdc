"""Measures what a training step costs, beside a plain one of its network.

    python -m alim_keras.benchmark --preset=cifar10 --input_shape=32x32x3

Without any flag the built-in digits run is measured.
"""

import dataclasses
import itertools
import json
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Callable

from alim_keras.app import cli
from alim_keras.app import process
from alim_keras.app.config import TRAINING
from alim_keras.app.values import number
from alim_keras.app.values import path
from alim_keras.app.values import text
from alim_keras.app.values import whole
from alim_keras.errors import ConfigError
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically


@dataclasses.dataclass(frozen=True)
class BenchmarkConfig:
    """Benchmark.

    Attributes:
        rounds: Rounds of measurements, at most.
        seconds: Begin no round that would end later than this, warm-up not
            counted.
        output: Write all numbers to this file, as JSON. Without it: no file.
        input_shape: Measure on random images of this shape, such as 32x32x3,
            and random candidate sets. Without it: on --dataset.
        num_classes: Classes of the random images.
        num_examples: How many random images.
    """

    rounds: int = whole(15, low=1)
    seconds: float = number(60.0, low=0)
    output: str | None = path()
    input_shape: str | None = text()
    num_classes: int = whole(10, low=2, high=10**5)
    num_examples: int = whole(10000, low=1)


COMMAND = cli.Command(
    name="benchmark",
    doc=(
        "Measures a training step of ALIM beside a plain training step of the "
        "same network: one process, in turns. It takes training's flags too; "
        "those that do not shape a step are ignored."
    ),
    groups=(BenchmarkConfig, *TRAINING),
    examples=("benchmark --preset=cifar10 --input_shape=32x32x3 --width=16",),
)
# A turn repeats a call until it lasts about this long, so that the clock's
# grain and a cold cache do not count.
TURN_SECONDS = 0.2
MOST_CALLS = 200
# Batches that are read before a turn of the pipeline begins, so that what it
# made in advance does not count.
_AHEAD = 4
_TITLES = {
    "plain": "plain step",
    "forward": "its forward pass",
    "alim": "ALIM's step, from the pipeline",
    "data": "  of it, the next batch",
    "epoch_end": "end of an epoch, ALIM",
}


@dataclasses.dataclass
class Turn:
    """One thing that is timed.

    Attributes:
        name: String.
        run: Function of a number of calls, which returns the seconds that
            they took together.
        units: Things done in a call, such as steps. Defaults to `1`.
        most: Most calls of a turn. Defaults to `MOST_CALLS`.
        calls: Calls of a turn; `warm_up` chooses it.
    """

    name: str
    run: Callable
    units: int = 1
    most: int = MOST_CALLS
    calls: int = 1


def main(line):
    """Measures, prints a table, and writes `--output`."""
    from alim_keras.app import build

    config, options = line.config, line.options
    build.check(config)
    for flag, wanted in (("method", "pico"), ("distribute", "none")):
        if line.values[flag] != wanted:
            raise ConfigError(
                "The benchmark measures PiCO's step on one device. Received: "
                f"{cli.flag_text(flag, line.values[flag])}"
            )
    if options.output:
        check_is_no_folder(options.output, "--output")
    training = training_set(config, options)
    turns, steps = make_turns(config, training)
    warm_up(turns)

    def report(done, seconds):
        if config.run.progress != "none":
            print(
                f"round {done} of {options.rounds}, {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    samples = measure(turns, options.rounds, options.seconds, report=report)
    result = record(config, training, turns, steps, samples)
    print(table(result))
    if options.output:
        content = json.dumps(result, indent=1, allow_nan=False)
        write_atomically(options.output, f"{content}\n")


def training_set(config, options):
    """Returns the `TrainingSet` of `--dataset`, or one of random images.

    Args:
        config: The `Config`.
        options: The `BenchmarkConfig`.
    """
    import numpy as np

    from alim_keras.app import load
    from alim_keras.data import simulate
    from alim_keras.data.training_set import TrainingSet

    if options.input_shape is None:
        return load.training_set(config)
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[13]", options.input_shape):
        raise ConfigError(
            "--input_shape must be height x width x channels, 1 or 3 "
            "channels, such as 32x32x3. Received: "
            f"--input_shape={options.input_shape}"
        )
    count, classes = options.num_examples, options.num_classes
    if count < config.train.batch_size:
        raise ConfigError(
            f"{count} images do not fill one batch. Received: "
            f"--num_examples={count} --batch_size={config.train.batch_size}"
        )
    shape = [int(side) for side in options.input_shape.split("x")]
    stream = np.random.default_rng(config.run.seed)
    images = stream.integers(0, 256, (count, *shape), "uint8")
    labels = stream.integers(0, classes, count)
    ids = [f"random_{row}" for row in range(count)]
    return TrainingSet(
        name="random images",
        ids=ids,
        images=images,
        class_names=range(classes),
        test_images=images[:0],
        test_labels=labels[:0],
        test_ids=[],
        labels=labels,
        candidates=simulate.simulate_candidates(
            labels,
            classes,
            ambiguity=config.candidates.ambiguity,
            noise_level=config.candidates.noise_level,
            seed=config.run.seed,
            ids=ids,
        ),
        source="--input_shape",
    )


# What is timed.


def make_turns(config, training):
    """Returns the turns, a list of `Turn`, and the steps of an epoch."""
    import keras
    import numpy as np

    from alim_keras import backend
    from alim_keras.app import build

    backend.set_random_seed(config.run.seed)
    keras.config.set_dtype_policy(config.machine.precision)
    model = build.model(config, training)
    build.compile_model(config, model)
    batches = build.train_batches(config, training)
    steps = len(training.trained) // config.train.batch_size

    def data(calls):
        reader = iter(batches)
        if isinstance(batches, keras.utils.PyDataset):
            reader = (batches[step] for step in range(steps))
        list(itertools.islice(reader, min(_AHEAD, steps - 1)))
        began = time.perf_counter()
        for x, _ in itertools.islice(reader, calls):
            pass
        keras.ops.convert_to_numpy(x["index"])
        return time.perf_counter() - began

    # Any rate above 0 takes as long.
    (callback,) = build.alim(config, training, 0.2)
    callback.set_model(model)
    callback.set_params({"epochs": config.train.epochs})
    callback.on_train_begin()
    table = model.pseudo_label_table
    ratios = np.random.default_rng(0).lognormal(size=len(training.trained))
    # The first epoch at whose end lambda is chosen.
    epoch = max(config.alim.warmup_epochs - 1, 0)

    def epoch_end(_):
        # As after a whole epoch, in which each example has its ratio.
        table.candidate_ratio.assign(ratios)
        began = time.perf_counter()
        callback.on_epoch_end(epoch, {})
        model.enter_epoch(epoch + 1, config.train.epochs)
        callback.on_epoch_begin(epoch + 1)
        table.lam.numpy()
        return time.perf_counter() - began

    execution = config.machine.steps_per_execution
    return [
        _fit_turn("alim", model, batches, steps, execution),
        *_plain_turns(config, training),
        Turn("data", data, most=max(1, steps - _AHEAD)),
        Turn("epoch_end", epoch_end, most=1),
    ], steps


def _fit_turn(name, model, data, steps, execution=1):
    """Returns the turn of the steps within `model.fit`.

    It trains for two short epochs and times the second: in the first the
    pipeline comes up to speed.
    """
    import keras

    began = seconds = None

    def begin(epoch, logs=None):
        nonlocal began
        began = time.perf_counter()

    def end(epoch, logs=None):
        nonlocal seconds
        # Reading a weight waits until the last step has written it.
        model.trainable_variables[-1].numpy()
        seconds = time.perf_counter() - began

    timer = keras.callbacks.LambdaCallback(begin, end)

    def run(calls):
        model.fit(
            data,
            epochs=2,
            steps_per_epoch=calls * execution,
            verbose=0,
            callbacks=[timer],
        )
        return seconds

    most = max(1, (steps // execution - 1) // 2)
    return Turn(name, run, execution, min(most, MOST_CALLS))


def _plain_turns(config, training):
    """Returns the floor: an ordinary step of the network, and its forward pass.

    Backbone, linear classifier, cross-entropy, SGD, on one batch of images
    that is normalised and on the device already.
    """
    import keras
    import numpy as np

    from alim_keras import backend
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
        jit_compile=config.machine.jit_compile
        or keras.config.backend() == "jax",
    )
    stream = np.random.default_rng(config.run.seed)
    size = config.train.batch_size
    images = stream.normal(size=(size, *build.image_shape(config, training)))
    images = keras.ops.convert_to_tensor(images, "float32")
    labels = stream.integers(0, classes, size)
    labels = keras.ops.one_hot(labels, classes, dtype="float32")

    class OneBatch(keras.utils.PyDataset):
        """The same batch again and again."""

        def __len__(self):
            return 10**6

        def __getitem__(self, step):
            return images, labels

    run_forward = backend.compiled(
        lambda images: network(images, training=True),
        network.variables,
        config.machine.jit_compile,
    )

    def forward(calls):
        began = time.perf_counter()
        for _ in range(calls):
            logits = run_forward(images)
        keras.ops.convert_to_numpy(logits)
        return time.perf_counter() - began

    return [
        _fit_turn("plain", network, OneBatch(), len(OneBatch())),
        Turn("forward", forward),
    ]


# Timing.


def warm_up(turns):
    """Runs each turn, so that all is compiled, and chooses its `calls`."""
    for turn in turns:
        turn.run(1)
        seconds = max(turn.run(1), 1e-9)
        turn.calls = min(turn.most, math.ceil(TURN_SECONDS / seconds))


def measure(turns, rounds, seconds, clock=time.perf_counter, report=None):
    """Times the turns one after the other, round after round.

    So a disturbance meets all of them.

    Args:
        turns: List of `Turn`, warmed up.
        rounds: Integer, how many rounds at most.
        seconds: No round begins that, at the last one's pace, would end
            later than this. The first always runs.
        clock: Function that returns seconds.
        report: Function of (rounds done, seconds since the start), called
            after each round, or None.

    Returns:
        Dict from a turn's name to a list of seconds per unit, one for each
        round.
    """
    samples = {turn.name: [] for turn in turns}
    began = clock()
    for done in range(1, rounds + 1):
        start = clock()
        for turn in turns:
            elapsed = turn.run(turn.calls)
            samples[turn.name].append(elapsed / (turn.calls * turn.units))
        now = clock()
        if report:
            report(done, now - began)
        if (now - began) + (now - start) > seconds:
            break
    return samples


# Results.


def summary(samples):
    """Returns the median and the quartiles of a list of numbers, as a dict.

    Quartiles lie between the sorted numbers, by linear interpolation.

    Example:

    >>> summary([1.0, 2.0, 4.0, 8.0, 16.0])
    {'median': 4.0, 'lower': 2.0, 'upper': 8.0}
    """
    import numpy as np

    lower, median, upper = np.quantile(samples, [0.25, 0.5, 0.75]).tolist()
    return {"median": median, "lower": lower, "upper": upper}


def efficiencies(seconds, passes, forwards=1):
    """Returns how close ALIM's step comes to plain steps of its network.

    The limit is `passes` forward and backward passes and `forwards` forward
    ones. `efficiency` takes a forward pass for a third of a plain step, so
    with mixup it is ALIM's images/s over 3/7 of the plain images/s;
    `efficiency_measured` takes the forward pass that was measured.
    `views_and_bookkeeping` is the share of the step beyond that limit.

    Args:
        seconds: Dict with the seconds of `alim`, `plain` and `forward`.
        passes: Forward and backward passes of a step.
        forwards: Forward passes alone. Defaults to `1`, the key encoder's.

    Example:

    >>> efficiencies({"alim": 10.0, "plain": 3.0, "forward": 1.2}, passes=2)
    {'efficiency': 0.7, 'efficiency_measured': 0.72,
     'views_and_bookkeeping': 0.28}
    """
    plain, alim = seconds["plain"], seconds["alim"]
    limit = passes * plain + forwards * seconds["forward"]
    return {
        "efficiency": plain * (passes + forwards / 3) / alim,
        "efficiency_measured": limit / alim,
        "views_and_bookkeeping": (alim - limit) / alim,
    }


def record(config, training, turns, steps, samples):
    """Returns all that is known of a benchmark, ready for JSON.

    Args:
        config: The `Config`.
        training: The `TrainingSet`.
        turns: List of `Turn`.
        steps: Integer, steps of an epoch.
        samples: What `measure` returned.
    """
    import keras

    from alim_keras.app import build
    from alim_keras.app import record as records

    timings = {n: {**summary(v), "samples": v} for n, v in samples.items()}
    medians = {name: times["median"] for name, times in timings.items()}
    passes = 2 if build.mixup_weight(config) else 1
    end = medians["epoch_end"]
    rounds = [
        efficiencies(dict(zip(samples, values)), passes)
        for values in zip(*samples.values())
    ]
    cores = None
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
    return {
        "command": shlex.join(sys.orig_argv),
        "settings": config.as_dict(),
        "versions": records.versions(),
        "machine": {**records.machine(), "affinity": cores},
        "backend": keras.config.backend(),
        "network": build.network_name(config, training),
        "image_shape": list(build.image_shape(config, training)),
        "num_classes": training.num_classes,
        "num_examples": len(training.trained),
        "rounds": len(samples["alim"]),
        "calls": {turn.name: turn.calls for turn in turns},
        "seconds": timings,
        "images_per_second": {
            name: config.train.batch_size / medians[name]
            for name in ("plain", "alim")
        },
        "passes": {"forward_backward": passes, "forward": 1},
        **efficiencies(medians, passes),
        "by_round": {
            name: summary([each[name] for each in rounds]) for name in rounds[0]
        },
        "epoch_end_share": end / (end + steps * medians["alim"]),
    }


def table(result):
    """Returns the record as text for a terminal."""
    settings, cores = result["settings"], result["machine"]["affinity"]
    shape = "x".join(map(str, result["image_shape"]))
    cores = "unknown" if cores is None else len(cores)
    device = ", ".join(result["machine"]["gpus"]) or f"CPU, {cores} core(s)"
    lines = [
        f"{result['network']} (width {settings['width'] or 'default'}), "
        f"{shape}, batch {settings['batch_size']}, "
        f"{result['num_examples']:,} examples, {result['num_classes']} classes",
        f"{result['backend']}, {settings['precision']}, {device}; medians of "
        f"{result['rounds']} rounds [quartiles]",
        "",
    ]
    for name, title in _TITLES.items():
        times = {k: 1e3 * result["seconds"][name][k] for k in summary([0.0])}
        lines.append(
            f"{title:<36}{times['median']:>11.2f} ms  "
            f"[{times['lower']:.2f}, {times['upper']:.2f}]"
        )
    rates, passes = result["images_per_second"], result["passes"]
    limit = passes["forward_backward"] + passes["forward"] / 3
    lines += [
        "",
        f"images/s: plain {rates['plain']:.2f}, limit "
        f"{rates['plain'] / limit:.2f}, ALIM {rates['alim']:.2f}",
    ]
    for name, title in (
        ("efficiency", "efficiency, of the limit"),
        ("efficiency_measured", "  with the forward pass that was measured"),
        ("views_and_bookkeeping", "views and bookkeeping, of the step"),
    ):
        spread = result["by_round"][name]
        lines.append(
            f"{title:<42}{result[name]:.3f}; round by round "
            f"{spread['median']:.3f} [{spread['lower']:.3f}, "
            f"{spread['upper']:.3f}]"
        )
    share = result["epoch_end_share"]
    return "\n".join([*lines, f"the epochs' ends {share:.2%} of the time"])


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
