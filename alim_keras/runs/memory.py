"""How much memory a training run takes, known before it is taken.

The formula counts what stays: state, training images, candidate sets. The
activations of a step come on top; they grow with the batch and the network.
"""

import numpy as np

from alim_keras import backend
from alim_keras import quantile
from alim_keras.data import DiskImages
from alim_keras.errors import ConfigError
from alim_keras.methods import PiCO
from alim_keras.runs import choice

# What to change where an item is too big.
REMEDIES = {
    "network": "a smaller --network or --width",
    "optimizer": "a smaller --network or --width",
    "key encoder": "a smaller --network or --width",
    "queue": "a smaller --queue_size or --embedding_dim",
    "prototypes": "a smaller --embedding_dim",
    "pseudo-label table": "--table=sparse, --table_dtype=float16 or both",
    "label weights": "another method",
    "candidate sets": "--table=sparse",
    "images": "a smaller --image_size or --train_size",
}


def needed(settings, backbone, training):
    """Returns the bytes that each part of a run takes on every device.

    Images and candidate sets lie in the host's memory on TensorFlow; on JAX
    on the device, where they fit. `DiskImages` take none, unless they are
    kept in memory once decoded.

    Args:
        settings: The train command's settings.
        backbone: The backbone, a built `keras.Model`.
        training: The `TrainingData`.

    Returns:
        A dict from the part's name to its bytes, in a fixed order.
    """
    num_classes = training.sets.shape[1]
    found = state(
        settings,
        backbone,
        num_classes,
        len(training.trained),
        training.max_set_size,
    )
    images, count = training.data.images, len(training.trained)
    share = count / len(images)
    found["candidate sets"] = round(training.sets.nbytes * share)
    if isinstance(images, DiskImages):
        found["images"] = images[:count].kept_bytes
    else:
        found["images"] = count * images[:1].nbytes
    return found


def state(settings, backbone, num_classes, num_examples, max_set_size):
    """Returns the bytes of all weights and optimizer slots, part by part.

    Args:
        settings: The train command's settings.
        backbone: The backbone, a built `keras.Model`.
        num_classes: C.
        num_examples: N, how many examples are trained on.
        max_set_size: M, the size of the largest candidate set.
    """
    features, hidden = backbone.output_shape[-1], settings.embedding_dim
    integer = np.dtype(backend.INTEGER).itemsize
    heads = _dense(features, num_classes)
    method = choice.method(settings)
    losses = len(method.loss_names) + bool(choice.mixup_weight(settings))
    pico = issubclass(method, PiCO)
    found = {}
    if pico:
        projection = _dense(features, features) + _dense(features, hidden)
        heads += projection
    found["network"] = _bytes(backbone.weights) + heads
    slots = _bytes(backbone.trainable_weights) + heads
    found["optimizer"] = slots if settings.momentum else 0
    if pico:
        found["key encoder"] = _bytes(backbone.weights) + projection
        found["queue"] = settings.queue_size * (4 * hidden + integer)
        found["prototypes"] = 4 * num_classes * hidden
    # The epoch and progress; the first non-finite step of each loss; the
    # optimizer's step and learning rate.
    counters = 8 + integer * losses + integer + 4
    if method.keeps_pseudo_labels:
        found["pseudo-label table"] = table(
            settings, num_classes, num_examples, max_set_size
        )
        # Lambda and its factors by size and class, their mean, eta, phi and
        # three more.
        counters += 4 * (1 + num_classes + 1 + num_classes + 2 + 1 + 4)
    if settings.logit_adjustment:
        counters += 4 * num_classes
    found.update(method.state_bytes(num_examples, num_classes))
    if settings.precision == "mixed_float16":
        # The loss scale, the steps since it changed, and a wrapper's own two.
        counters += 2 * (integer + 4)
    found["counters"] = counters
    return found


def table(settings, num_classes, num_examples, max_set_size):
    """Returns the bytes of the rows and of the candidate ratios."""
    size = np.dtype(settings.table_dtype).itemsize
    if settings.table == "dense":
        return num_examples * (size * num_classes + 12)
    slots = min(max_set_size + settings.table_others, num_classes)
    number = 2 if num_classes <= 2048 else 4
    counts = np.dtype(backend.INTEGER).itemsize * (quantile.NUM_BINS + 2)
    if settings.known_as_sets:
        counts = 12 * num_examples
    return num_examples * (slots * (size + number) + size) + counts


def describe(found):
    """Returns the parts and their sum as a line of text."""
    parts = [
        f"{name} {_text(size)}"
        for name, size in sorted(found.items(), key=lambda item: -item[1])
        if size >= 2**10
    ]
    return (
        f"Memory per device: {_text(sum(found.values()))} and the "
        f"activations of a step: {', '.join(parts)}"
    )


def check_limit(found, limit):
    """Raises, before the memory is taken, if it is more than the limit.

    Args:
        found: Dict from `needed`.
        limit: Bytes, or None for no limit.

    Raises:
        ConfigError: It names the biggest part and what makes it smaller.
    """
    total = sum(found.values())
    if limit is None or total <= limit:
        return
    biggest = max(found, key=found.get)
    remedy = REMEDIES.get(biggest, "a smaller --width")
    raise ConfigError(
        f"This run takes {_text(total)} on each device, without the "
        f"activations of a step; the biggest part is the {biggest}, "
        f"{_text(found[biggest])}. Try {remedy}. Received: "
        f"--memory_limit={limit} ({_text(limit)})"
    )


def _dense(inputs, outputs):
    return 4 * (inputs + 1) * outputs


def _bytes(variables):
    # Master weights are float32 in every precision.
    return sum(
        int(np.prod(v.shape)) * np.dtype(v.dtype).itemsize for v in variables
    )


def _text(size):
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            break
        size /= 1024
    else:
        unit = "GiB"
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
