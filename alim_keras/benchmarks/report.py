"""From samples to efficiencies, as a record for JSON and as a table."""

import os

import keras

from alim_keras.benchmarks import flops
from alim_keras.benchmarks import timing
from alim_keras.runs import choice
from alim_keras.runs.record import machine
from alim_keras.runs.record import versions


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


def record(settings, command, training, measured):
    """Returns all that is known of a benchmark, ready for JSON.

    Args:
        settings: The benchmark command's settings.
        command: The command line, a string.
        training: `loading.TrainingData`.
        measured: What `measurement.measure` returned.
    """
    samples = measured["samples"]
    timings, busy = (
        {
            name: {**timing.summary(values), "samples": values}
            for name, values in measured[kind].items()
        }
        for kind in ("samples", "processor")
    )
    medians = {name: entry["median"] for name, entry in timings.items()}
    used = {name: entry["median"] for name, entry in busy.items()}
    passes = 2 if choice.mixup_weight(settings) else 1
    batch = settings.batch_size
    epoch = measured["steps_per_epoch"] * medians["alim"]
    between = medians["epoch_end"] + medians["epoch_begin"]
    rounds = [
        efficiencies(dict(zip(samples, values)), passes)
        for values in zip(*samples.values())
    ]
    return {
        "command": command,
        "settings": settings.as_dict(),
        "versions": versions(),
        "machine": {**machine(), "affinity": _affinity()},
        "backend": keras.config.backend(),
        "image_shape": list(training.data.images.shape[1:]),
        "num_classes": training.sets.shape[1],
        "num_examples": len(training.trained),
        "rounds": len(samples["alim"]),
        "calls": measured["calls"],
        "traces": measured["traces"],
        "seconds": timings,
        "processor_seconds": busy,
        "images_per_second": {
            name: batch / medians[name] for name in ("plain", "alim")
        },
        "passes": {"forward_backward": passes, "forward": 1},
        **efficiencies(medians, passes),
        "by_round": {
            name: timing.summary([each[name] for each in rounds])
            for name in rounds[0]
        },
        "processor_efficiency": efficiencies(used, passes),
        "between_epochs": between,
        "between_epochs_share": between / (between + epoch),
        "memory": measured["memory"],
        "flops": _flops(measured, medians, settings, passes),
    }


def _flops(measured, medians, settings, passes):
    """Operations of networks on an image, and shares of the product's."""
    macs = measured["macs"]
    plain = macs["backbone"] + macs["classifier"]
    keys = macs["backbone"] + macs["projection"]
    alim = (
        flops.step_flops(plain, passes)
        + flops.step_flops(macs["projection"], 1)
        + flops.step_flops(keys, 0, forwards=1)
    )
    per_image = {"plain": flops.step_flops(plain, 1), "alim": alim}
    peaks = {
        name.removeprefix("product_"): count / medians[name]
        for name, count in measured["products"].items()
    }
    # The type that the networks compute in: mixed_bfloat16 is bfloat16.
    peak = peaks[settings.precision.removeprefix("mixed_")]
    return {
        "macs_per_image": macs,
        "per_image": per_image,
        "matrix_product_per_second": peaks,
        "share_of_matrix_product": {
            name: count * settings.batch_size / medians[name] / peak
            for name, count in per_image.items()
        },
    }


def _affinity():
    """The processor cores that this process may use, or None if unknown."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return sorted(os.sched_getaffinity(0))


def table(result):
    """Returns the record as text for a terminal."""
    return "\n".join([*_heading(result), *_times(result), *_sums(result)])


def _heading(result):
    settings, affinity = result["settings"], result["machine"]["affinity"]
    shape = "x".join(str(n) for n in result["image_shape"])
    width = settings["width"] or "default"
    cores = "unknown" if affinity is None else len(affinity)
    device = ", ".join(result["machine"]["gpus"]) or f"CPU, {cores} core(s)"
    return [
        f"{settings['network']} (width {width}), {shape}, batch "
        f"{settings['batch_size']}, {result['num_examples']:,} examples, "
        f"{result['num_classes']} classes, queue {settings['queue_size']}",
        f"{result['backend']}, {settings['precision']}, {device}; medians "
        f"of {result['rounds']} rounds [quartiles]",
        "",
    ]


def _times(result):
    timings, whole = result["seconds"], result["seconds"]["alim"]["median"]

    def row(name, title):
        entry = timings[name]
        return (
            f"{title:<36}{1e3 * entry['median']:>11.2f} ms  "
            f"[{1e3 * entry['lower']:.2f}, {1e3 * entry['upper']:.2f}]"
        )

    def share(text, seconds):
        return f"{text:<80}{seconds / whole:>6.1%}"

    lines = [
        row("plain", "plain step"),
        row("forward", "its forward pass"),
        share(row("alim", "ALIM's step, from the pipeline"), whole),
    ]
    lines.append(row("epoch_end", "end of an epoch, ALIM"))
    lines.append(row("epoch_begin", "beginning of an epoch, first batch"))
    return [*lines, ""]


# What `efficiencies` returns, as the table says it.
_RATIOS = {
    "efficiency": "efficiency, of the limit",
    "efficiency_measured": "  with the forward pass that was measured",
    "views_and_bookkeeping": "views and bookkeeping, of the step",
}


def _ratios(result):
    """Of the medians, round by round, and by processor time."""
    for name, title in _RATIOS.items():
        spread = result["by_round"][name]
        line = (
            f"{title:<42}{result[name]:.3f}; round by round "
            f"{spread['median']:.3f} [{spread['lower']:.3f}, "
            f"{spread['upper']:.3f}]"
        )
        if not result["machine"]["gpus"]:
            used = result["processor_efficiency"][name]
            line += f"; by processor time {used:.3f}"
        yield line


def _sums(result):
    rates, count = result["images_per_second"], result["passes"]
    operations = result["flops"]
    shares = operations["share_of_matrix_product"]
    peaks = operations["matrix_product_per_second"]
    limit = count["forward_backward"] + count["forward"] / 3
    memory = result["memory"]["alim"]
    lines = [
        f"images/s: plain {rates['plain']:.2f}, limit "
        f"{rates['plain'] / limit:.2f}, ALIM {rates['alim']:.2f}",
        *_ratios(result),
        f"between epochs {result['between_epochs_share']:.2%} of the time",
        "networks: "
        f"{operations['per_image']['plain'] / 1e9:.3f} GFLOP an image plain, "
        f"{operations['per_image']['alim'] / 1e9:.3f} ALIM; share of a matrix "
        f"product's speed {shares['plain']:.1%} plain, {shares['alim']:.1%} "
        "ALIM",
        "matrix product: "
        + ", ".join(f"{v / 1e9:,.1f} GFLOP/s {k}" for k, v in peaks.items()),
        f"peak memory of training: {_mebibytes(memory['host'])} host, "
        f"{_mebibytes(memory['device'])} device",
    ]
    traces = result["traces"]
    often = {name: n for name, n in traces["warm_up"].items() if n > 1}
    again = {name: n for name, n in traces["measured"].items() if n}
    if often:
        lines.append(f"traced more than once in the warm-up: {often}")
    if again:
        lines.append(f"traced again while measured: {again}")
    return lines


def _mebibytes(count):
    return "none" if count is None else f"{count / 2**20:,.0f} MiB"
