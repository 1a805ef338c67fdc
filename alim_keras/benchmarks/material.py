"""What a benchmark trains on: a data set, or random images of any shape."""

import re

import numpy as np

from alim_keras.data.sources import ImageData
from alim_keras.data.sparse_candidates import SparseCandidates
from alim_keras.errors import ConfigError
from alim_keras.runs import loading


def training_data(settings):
    """Returns `loading.TrainingData`: of `--dataset`, or synthetic.

    Raises:
        ConfigError: If `--input_shape` does not fit.
    """
    if settings.input_shape is None:
        return loading.training_data(settings)
    shape = image_shape(settings.input_shape)
    count = settings.num_examples
    if count < settings.batch_size:
        raise ConfigError(
            f"{count} images do not fill one batch. Received: "
            f"--num_examples={count} --batch_size={settings.batch_size}"
        )
    stream = np.random.default_rng(settings.seed)
    ids = np.char.add("train_", np.arange(count).astype(str))
    images = stream.integers(0, 256, (count, *shape), "uint8")
    labels = stream.integers(0, settings.num_classes, count)
    data = ImageData(
        name="synthetic",
        images=images,
        labels=labels,
        ids=ids,
        class_names=range(settings.num_classes),
        test_images=images[:1],
        test_labels=labels[:1],
        test_ids=["test_0"],
        source="--input_shape",
    )
    candidates, _ = loading.candidate_sets(settings, data)
    sets = candidates.align(data.ids, where=data.name)
    if settings.table == "sparse":
        sets = SparseCandidates.from_multi_hot(sets)
    everything = np.arange(count)
    return loading.TrainingData(
        data, candidates, sets, everything, everything[:0]
    )


def image_shape(text):
    """Returns `(H, W, channels)` from text such as `"32x32x3"`."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[13]", text):
        raise ConfigError(
            "--input_shape must be height x width x channels, 1 or 3 "
            f"channels, such as 32x32x3. Received: --input_shape={text}"
        )
    return tuple(int(number) for number in text.split("x"))
