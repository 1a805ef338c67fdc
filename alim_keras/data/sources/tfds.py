"""Reading data sets that TensorFlow Datasets (TFDS) prepared.

A prepared folder is read with `tfds.builder_from_directory`, which looks at
nothing but that folder: no network is tried.
"""

import hashlib
import itertools
import json
import os
import re
import sys

import numpy as np

from alim_keras.data.candidate_sets import numbered_ids
from alim_keras.data.messages import first_five
from alim_keras.data.messages import one_line
from alim_keras.data.sources import cub
from alim_keras.data.sources import resize
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

INSTALL = "pip install tensorflow-datasets importlib_resources"
# TFDS keeps no id of these; it stores them in the order of the hash of their
# place in the official files, so the place can be worked out.
_HASHED_PLACE = ("fashion_mnist", "kmnist", "mnist")
_DEFAULT_SIZE = 224
_AT_ONCE = 256


def module():
    """Returns the module `tensorflow_datasets`.

    Raises:
        EnvironmentLacksError: It, or a package it needs, is not installed.
    """
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise EnvironmentLacksError(
            f"TensorFlow Datasets is not installed ({one_line(error)}): "
            f"{INSTALL}"
        ) from error
    return tensorflow_datasets


def default_dir():
    """Returns the folder TFDS uses when none is given."""
    return os.environ.get("TFDS_DATA_DIR") or os.path.join(
        os.path.expanduser("~"), "tensorflow_datasets"
    )


def split_name(name):
    """Returns ("name", "config", "version") of "name/config:version"."""
    base, _, version = name.partition(":")
    base, _, config = base.partition("/")
    return base, config or None, version or None


def find_prepared(name, data_dir):
    """Returns the folder of the newest prepared version, or None.

    Args:
        name: String, a TFDS name, also "name/config" or "name:1.0.0".
        data_dir: String, the folder given to TFDS as `data_dir`, or the
            folder of the data set or version in it.

    Raises:
        ConfigError: Several configurations are prepared and none is named.
    """
    base, config, version = split_name(name)
    if _describes(data_dir, base):
        return data_dir
    top = os.path.join(data_dir, base)
    if not os.path.isdir(top) and os.path.basename(data_dir) == base:
        top = data_dir
    if config is None:
        found = _versions(top)
        if not found:
            inner = [one for one in _folders(top) if _versions(one)]
            if len(inner) > 1:
                names = [f"{base}/{os.path.basename(one)}" for one in inner]
                raise ConfigError(
                    f"{top} holds {len(inner)} configurations of {base}; "
                    f"name one of {first_five(names)}"
                )
            found = _versions(inner[0]) if inner else []
    else:
        found = _versions(os.path.join(top, config))
    if version is not None:
        found = [one for one in found if os.path.basename(one) == version]
    return max(found, key=_version_number, default=None)


def _folders(top):
    if not os.path.isdir(top):
        return []
    with os.scandir(top) as entries:
        return sorted(one.path for one in entries if one.is_dir())


def _versions(top):
    return [
        one
        for one in _folders(top)
        if re.fullmatch(r"\d+\.\d+\.\d+", os.path.basename(one))
        and os.path.isfile(os.path.join(one, "dataset_info.json"))
    ]


def _version_number(folder):
    return tuple(int(part) for part in os.path.basename(folder).split("."))


def _describes(folder, base):
    try:
        with open(os.path.join(folder, "dataset_info.json")) as file:
            return json.load(file).get("name") == base
    except (OSError, ValueError, AttributeError):
        return False


def read(folder, name, image_size=None):
    """Reads a prepared data set with single labels, ordered by id.

    Args:
        folder: String, the folder of one version.
        name: String, the TFDS name.
        image_size: Integer or None, the size images are brought to. Where
            the images differ in size it defaults to 224.

    Returns:
        Dict of the fields of `ImageData`.

    Raises:
        EnvironmentLacksError: TFDS is not installed.
        DataError: The folder is damaged, or holds no images with one label.
    """
    tfds = module()
    try:
        builder = tfds.builder_from_directory(folder)
        features, splits = dict(builder.info.features), builder.info.splits
        wanted, test_split = _check(tfds, features, splits, name, folder)
        shape = features["image"].shape
        if image_size is None and None in shape:
            image_size = _DEFAULT_SIZE
            print(
                f"{name}: the images differ in size; each is brought to "
                f"{image_size} x {image_size}",
                file=sys.stderr,
            )
        fields, names = {}, features["label"].names
        for split, prefix in (("train", ""), (test_split, "test_")):
            images, labels, texts = _collect(
                _batches(tfds, builder, split, wanted, None not in shape),
                splits[split].num_examples,
                shape,
                image_size,
                folder,
            )
            ids = _ids(name, split, prefix, texts, len(labels))
            if texts and name == "caltech_birds2011":
                names = _bird_names(texts, labels, names)
            order = np.argsort(ids, kind="stable")
            fields[f"{prefix}images"] = images[order]
            fields[f"{prefix}labels"] = labels[order]
            fields[f"{prefix}ids"] = ids[order]
    except AlimError:
        raise
    except _damage() as error:
        raise DataError(
            f"{folder}: the prepared data set cannot be read, it may be "
            f"damaged ({one_line(error)}); prepare it again"
        ) from error
    fields["class_names"] = tuple(names)
    return fields


def _damage():
    """Returns what a damaged folder makes TFDS and TensorFlow raise."""
    import tensorflow

    errors = (tensorflow.errors.OpError, OSError, ValueError, KeyError)
    return (*errors, AssertionError)


def _check(tfds, features, splits, name, folder):
    """Returns the features to decode and the name of the test split."""
    image, label = features.get("image"), features.get("label")
    if not (
        isinstance(image, tfds.features.Image)
        and isinstance(label, tfds.features.ClassLabel)
        and image.shape[-1] in (1, 3)
    ):
        raise DataError(
            f"{name}: images with 1 or 3 channels and one class label were "
            f"expected. Received: features {first_five(sorted(features))}"
        )
    held_back = [one for one in ("test", "validation") if one in splits]
    if "train" not in splits or not held_back:
        raise DataError(
            f"{name} in {folder}: a train and a test (or validation) split "
            f"were expected. Received: splits {first_five(sorted(splits))}"
        )
    texts = [
        name
        for name in ("id", "image/filename")
        if isinstance(features.get(name), tfds.features.Text)
    ]
    return ["image", "label", *texts], held_back[0]


def _batches(tfds, builder, split, wanted, same_size):
    """Yields examples in the order in which they are stored, in batches.

    Images of one size come stacked; others come one by one, as lists.
    """
    features = builder.info.features
    other_images = [
        name
        for name, feature in dict(features).items()
        if isinstance(feature, tfds.features.Image) and name not in wanted
    ]
    data = builder.as_dataset(
        split=split,
        shuffle_files=False,
        decoders={one: tfds.decode.SkipDecoding() for one in other_images},
        read_config=tfds.ReadConfig(
            interleave_cycle_length=1, try_autocache=False
        ),
    ).map(lambda row: {name: row[name] for name in wanted})
    if same_size:
        yield from tfds.as_numpy(data.batch(_AT_ONCE))
        return
    rows = iter(tfds.as_numpy(data))
    while batch := list(itertools.islice(rows, _AT_ONCE)):
        yield {name: [row[name] for row in batch] for name in wanted}


def _collect(batches, count, shape, image_size, folder):
    """Returns images, labels and the texts of ids or file names."""
    if image_size is not None:
        shape = (image_size, image_size, shape[-1])
    images = np.zeros((count, *shape), np.uint8)
    labels, texts, done = np.zeros(count, np.int64), [], 0
    for batch in batches:
        part = slice(done, done + len(batch["label"]))
        done = part.stop
        if done > count:
            break
        images[part] = resize.resize_all(batch["image"], image_size)
        labels[part] = batch["label"]
        named = batch.get("id", batch.get("image/filename", ()))
        texts += [text.decode() for text in named]
    if done != count:
        raise DataError(
            f"{folder}: {count} examples were expected; the files hold "
            f"another number, {done} or more; prepare it again"
        )
    return images, labels, texts


def _ids(name, split, prefix, texts, count):
    """Returns ids that are the same whatever place the data come from."""
    kind = "test" if prefix else "train"
    if name == "caltech_birds2011" and texts:
        return np.array([cub.example_id(text) for text in texts], str)
    if texts:
        numbers = [re.fullmatch(rf"{split}_(\d+)", text) for text in texts]
        if all(numbers):
            return numbered_ids([int(number[1]) for number in numbers], kind)
        if len(set(texts)) == len(texts):
            return np.array(texts, str)
    places = range(count)
    if split_name(name)[0] in _HASHED_PLACE:
        places = hashed_order(split, count)
    return numbered_ids(places, kind)


def hashed_order(split, count):
    """Returns the official places of a split, in the order TFDS stores them.

    TFDS orders examples by the md5 of the split's name followed by the
    example's key, which is its place in the official files.
    """

    def key(place):
        text = f"{split}{place}".encode()
        return hashlib.md5(text, usedforsecurity=False).digest()

    return sorted(range(count), key=key)


def _bird_names(texts, labels, names):
    """Returns class names read off the folders of the image files."""
    names = list(names)
    for text, label in zip(texts, labels, strict=True):
        names[label] = cub.class_name(text.split("/")[-2])
    return names
