"""Measures ALIM's step, its parts and the floor, interleaved."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras.backend import timing as framework
from alim_keras.benchmarks import memory
from alim_keras.benchmarks import timing
from alim_keras.benchmarks.flops import macs_per_image
from alim_keras.benchmarks.plain import MatrixProduct
from alim_keras.benchmarks.plain import PlainStep
from alim_keras.errors import ConfigError
from alim_keras.runs import build
from alim_keras.runs import session


def check(settings):
    """Raises, before any data are read, for what cannot be measured."""
    build.check_settings(settings)
    if settings.method != "pico":
        raise ConfigError(
            "The benchmark measures PiCO's step. Received: "
            f"--method={settings.method}"
        )
    if settings.distribute != "none":
        raise ConfigError(
            "The benchmark measures one device. Received: "
            f"--distribute={settings.distribute}"
        )


def measure(settings, training, report=None):
    """Measures what the settings ask for.

    Args:
        settings: The benchmark command's settings.
        training: `loading.TrainingData`.
        report: See `timing.measure`.

    Returns:
        A dict: `samples` (name to seconds per step, call or epoch end, a
        number for each round), `processor` (likewise, of processor time),
        `calls` (of a turn), `traces`, `memory`, `macs`, `products` (name to
        the operations of a matrix product) and `steps_per_epoch`.
    """
    backend.set_random_seed(settings.seed)
    keras.config.set_dtype_policy(settings.precision)
    before = memory.peaks()
    model = build.model(settings, training)
    build.compile_model(settings, model)
    batches = session.train_batches(settings, training)
    loop = framework.FitLoop(model, batches)
    whole = timing.Item(
        "alim", _repeated(loop.step), units=settings.steps_per_execution
    )
    timing.warm_up([whole])
    # Nothing but training has run yet: this is what training takes.
    alim = memory.peaks()
    loop.sync()

    plain = PlainStep(settings, model.image_shape, model.num_classes)
    products = _products()
    programs = {
        "plain": (plain.step, plain.arguments),
        "forward": (plain.forward, plain.arguments[:1]),
        **{name: (p.program, p.arguments) for name, p in products.items()},
    }
    items = [
        *(timing.Item(n, _repeated(*call)) for n, call in programs.items()),
        _epoch_begin(model, batches),
        _epoch_end(settings, training, model),
    ]
    timing.warm_up(items)

    def traces():
        counts = {name: call[0].traces for name, call in programs.items()}
        return {"alim": loop.traces, **counts}

    traced = traces()
    samples, processor = timing.measure(
        [whole, *items], settings.rounds, settings.seconds, report=report
    )
    return {
        "samples": samples,
        "processor": processor,
        "calls": {item.name: item.calls for item in [whole, *items]},
        "traces": {
            "warm_up": traced,
            "measured": {
                name: count - traced[name] for name, count in traces().items()
            },
        },
        "memory": {"before": before, "alim": alim, "all": memory.peaks()},
        "macs": {
            name: macs_per_image(getattr(model, name))
            for name in ("backbone", "classifier", "projection")
        },
        "products": {name: p.flops for name, p in products.items()},
        "steps_per_epoch": len(training.trained) // settings.batch_size,
    }


def _repeated(function, arguments=()):
    """Returns a function that calls `function` n times and waits once."""

    def run(calls):
        for _ in range(calls):
            result = function(*arguments)
        framework.wait(result)

    return run


def _epoch_begin(model, batches):
    """What the pipeline takes to come to an epoch's first batch."""

    def run(calls):
        for _ in range(calls):
            first = next(framework.Epochs(model, batches).iterator())
        framework.wait(first)

    return timing.Item("epoch_begin", run, most=1)


def _epoch_end(settings, training, model):
    """What ALIM does between two epochs, with a full set of ratios."""
    # Any rate above 0 takes as long.
    (callback,) = session.alim(settings, training, 0.2)
    callback.set_model(model)
    callback.set_params({"epochs": settings.epochs})
    callback.on_train_begin()
    # The first epoch at whose end lambda is chosen.
    epoch = max(settings.warmup_epochs - 1, 0)
    table = model.pseudo_label_table
    ratios = np.random.default_rng(0).lognormal(size=table.num_examples)
    ratios = ratios.astype("float32")

    def prepare():
        table.assign_ratios(ratios)

    def run(calls):
        del calls  # One: the model forgets the ratios.
        callback.on_epoch_end(epoch, {})
        model.enter_epoch(epoch, settings.epochs)
        callback.on_epoch_begin(epoch)
        framework.wait([v.value for v in table.variables])

    return timing.Item("epoch_end", run, prepare=prepare, most=1)


def _products():
    """Matrix products in float32 and in what the networks compute in."""
    on_gpu = bool(backend.gpu_names())
    dtypes = {"float32", keras.config.dtype_policy().compute_dtype}
    if on_gpu:
        dtypes.add("bfloat16")
    size = 8192 if on_gpu else 1024
    return {f"product_{d}": MatrixProduct(d, size) for d in sorted(dtypes)}
