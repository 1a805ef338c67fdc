"""Data sets of TensorFlow Datasets (TFDS): prepared folders, and downloads."""

import hashlib
import itertools
import os
import re
import sys
import urllib.error
import urllib.request

import numpy as np

from alim_keras.data.checks import default_ids
from alim_keras.data.decoding import resize_all
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError
from alim_keras.errors import first_five
from alim_keras.errors import nearest
from alim_keras.errors import one_line

_BIRDS = "caltech_birds2011"
# TFDS keeps no id of these, and stores them in the order of a hash of their
# place in the official files.
_HASHED_PLACE = ("fashion_mnist", "kmnist", "mnist")
_DEFAULT_SIZE = 224
_AT_ONCE = 256
# Seconds in which a host has to answer.
_SECONDS = 8


def default_dir():
    """Returns the folder TFDS uses when none is given."""
    return os.environ.get("TFDS_DATA_DIR") or os.path.join(
        os.path.expanduser("~"), "tensorflow_datasets"
    )


def read(name, data_dir, image_size=None):
    """Reads a prepared data set with single labels, ordered by id.

    Args:
        name: String, a TFDS name, also "name/config" or "name:1.0.0".
        data_dir: String, the folder given to TFDS as `data_dir`.
        image_size: Integer or None, the size images are brought to. Where
            the images differ in size it defaults to 224.

    Returns:
        Dict of the fields of `TrainingSet` with `source`, the folder of the
        version; or None, where it is not there or TFDS is not installed.

    Raises:
        DataError: The folder is damaged, or holds no images with one label.
    """
    folder = os.path.join(data_dir, re.split("[:/]", name)[0])
    if not os.path.isdir(folder):
        return None  # Importing TFDS takes seconds.
    try:
        import tensorflow_datasets as tfds
        from tensorflow_datasets.core import read_only_builder
    except ImportError:
        return None
    try:
        # Unlike `tfds.builder` it does not try the network.
        builder = read_only_builder.builder_from_files(name, data_dir=data_dir)
        fields = _read(tfds, builder, name, image_size)
        return {**fields, "source": str(builder.data_dir)}
    except tfds.core.DatasetNotFoundError:
        return None
    except AlimError:
        raise
    except Exception as error:
        # TensorFlow's errors, and what broken files make TFDS raise.
        raise DataError(
            f"{folder}: the prepared data set cannot be read, it may be "
            f"damaged ({one_line(error)}); prepare it again"
        ) from error


def _read(tfds, builder, name, image_size):
    features, splits = dict(builder.info.features), builder.info.splits
    image, label = features.get("image"), features.get("label")
    held_back = [split for split in ("test", "validation") if split in splits]
    is_image = isinstance(image, tfds.features.Image)
    is_label = isinstance(label, tfds.features.ClassLabel)
    if not (is_image and is_label and "train" in splits and held_back):
        raise DataError(
            f"{name}: images and one class label, and a train and a test (or "
            "validation) split were expected. Received: features "
            f"{first_five(sorted(features))}; splits "
            f"{first_five(sorted(splits))}"
        )
    is_mixed = None in image.shape
    if image_size is None and is_mixed:
        image_size = _DEFAULT_SIZE
        print(
            f"{name}: the images differ in size; each is brought to "
            f"{image_size} x {image_size}",
            file=sys.stderr,
        )
    text = [one for one in ("id", "image/filename") if one in features][:1]
    fields, names = {}, list(label.names)
    for split, prefix in (("train", ""), (held_back[0], "test_")):
        images, labels, texts = [], [], []
        for batch in _batches(tfds, builder, split, text, is_mixed):
            images.append(resize_all(batch["image"], image_size))
            labels.extend(batch["label"])
            texts += [one.decode() for one in batch[text[0]]] if text else []
        images, labels = np.concatenate(images), np.array(labels, np.int64)
        if len(labels) != splits[split].num_examples:
            raise DataError(
                f"{splits[split].num_examples} examples were expected, "
                f"and there are {len(labels)}"
            )
        ids = _ids(name, split, prefix, texts, len(labels))
        if texts and name == _BIRDS:
            # The names of the classes are those of the folders.
            for one, number in zip(texts, labels, strict=True):
                names[number] = one.split("/")[-2].split(".", 1)[-1]
        order = np.argsort(ids, kind="stable")
        fields[f"{prefix}images"] = images[order]
        fields[f"{prefix}labels"] = labels[order]
        fields[f"{prefix}ids"] = ids[order]
    return {**fields, "class_names": tuple(names)}


def _batches(tfds, builder, split, text, is_mixed):
    """Yields batches in the order in which they are stored."""
    wanted = ["image", "label", *text]
    config = tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False)
    data = builder.as_dataset(
        split=split, shuffle_files=False, read_config=config
    ).map(lambda row: {name: row[name] for name in wanted})
    if not is_mixed:
        yield from tfds.as_numpy(data.batch(_AT_ONCE))
        return
    rows = iter(tfds.as_numpy(data))
    while batch := list(itertools.islice(rows, _AT_ONCE)):
        yield {name: [row[name] for row in batch] for name in wanted}


def _ids(name, split, prefix, texts, count):
    """Returns ids that are the same in whatever form the data come."""
    kind = "test" if prefix else "train"
    if name == _BIRDS and texts:
        stems = [text.rsplit("/", 1)[-1].rsplit(".", 1)[0] for text in texts]
        return np.array(stems, str)
    if texts:
        numbers = [re.fullmatch(rf"{split}_(\d+)", text) for text in texts]
        if all(numbers):
            return default_ids([int(number[1]) for number in numbers], kind)
        if len(set(texts)) == len(texts):
            return np.array(texts, str)
    is_hashed = re.split("[:/]", name)[0] in _HASHED_PLACE
    return default_ids(
        _hashed_order(split, count) if is_hashed else count, kind
    )


def _hashed_order(split, count):
    """Returns the official places of a split, in the order TFDS stores them."""

    def key(place):
        # Of the split's name and the example's key, its place.
        text = f"{split}{place}".encode()
        return hashlib.md5(text, usedforsecurity=False).digest()

    return sorted(range(count), key=key)


def download(name, data_dir, is_allowed, *, names, absent, remedy):
    """Has TFDS download and prepare a data set.

    Size, host and place are announced on stderr. Checksums and certificates
    are always verified. Official archives in `downloads/manual` are used in
    place of a download.

    Args:
        name: String, a TFDS name.
        data_dir: String, the folder in which TFDS is to keep it.
        is_allowed: Whether the network may be used.
        names: Names that this package knows besides.
        absent: String, where it was looked for, for messages.
        remedy: String, a way to mend it, for messages.
    """
    base = re.split("[:/]", name)[0]
    hint = "" if base in names else nearest(base, names)
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise EnvironmentLacksError(
            f"{absent}{hint or '.'} TensorFlow Datasets is not installed: pip "
            f"install tensorflow-datasets importlib_resources. {remedy}"
        ) from error
    try:
        infos = tfds.builder_cls(base).url_infos or {}
    except tfds.core.DatasetNotFoundError as error:
        raise ConfigError(
            f"Unknown data set{hint or '.'} Names are "
            f"{', '.join(sorted(names))}, others of TensorFlow Datasets, or "
            "the path of a table (.csv, .jsonl, .parquet, .npz, ...) or of a "
            f"folder that is there. Received: dataset={name!r}"
        ) from error
    archives = sorted({info.filename for info in infos.values()} - {None})
    manual = os.path.join(data_dir, "downloads", "manual")
    paths = [os.path.join(manual, archive) for archive in archives]
    is_here = bool(paths) and all(map(os.path.isfile, paths))
    if archives:
        remedy += f", or {first_five(archives)} in {manual}"
    if not is_here and not is_allowed:
        raise DataError(f"{absent}; downloading is forbidden. {remedy}")
    if not is_here:
        size = sum(int(info.size or 0) for info in infos.values()) / 2**20
        print(
            f"{name}: not on this machine; downloading {size:.1f} MiB from "
            f"{first_five([*infos])} to {data_dir} (--nodownload forbids it)",
            file=sys.stderr,
            flush=True,
        )
    try:
        if not is_here:
            _check_network([*infos])
        config = tfds.download.DownloadConfig(
            manual_dir=manual if is_here else None, try_download_gcs=False
        )
        builder = tfds.builder(name, data_dir=data_dir)
        builder.download_and_prepare(download_config=config)
    except Exception as error:
        kind, cause = type(error).__name__, one_line(error)
        if kind == "NonMatchingChecksumError":
            cause = (
                "the file is not the one with the published checksum; the "
                "host may have sent an error page, so try again later"
            )
        elif isinstance(error, OSError) and error.errno is None:
            cause = f"no network, or the host refuses it ({cause[:200]})"
        raise DataError(
            f"{absent}; the download from {first_five([*infos])} failed: "
            f"{cause}. {remedy}"
        ) from error


def _check_network(urls):
    """Raises if the first host cannot be reached: TFDS retries for minutes."""
    for url in [url for url in urls if url.startswith("http")][:1]:
        request = urllib.request.Request(url, method="HEAD")
        try:
            urllib.request.urlopen(request, timeout=_SECONDS).close()
        except urllib.error.HTTPError:
            pass  # It answers, if only to another kind of request.
