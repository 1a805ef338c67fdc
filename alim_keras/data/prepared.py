"""Data sets of TensorFlow Datasets (TFDS): prepared folders, and downloads."""

import contextlib
import itertools
import os
import re
import sys
import urllib.error
import urllib.request

import numpy as np

from alim_keras.data.images import resize_all
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import first_five
from alim_keras.errors import nearest
from alim_keras.errors import one_line

_BIRDS = "caltech_birds2011"
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
        version; or None, where it is not there.

    Raises:
        DataError: The folder is damaged, or holds no images with one label.
    """
    folder = os.path.join(data_dir, re.split("[:/]", name)[0])
    if not os.path.isdir(folder):
        return None  # Importing TFDS takes seconds.
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import read_only_builder

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
    names, fields = list(label.names), {}
    is_mixed = None in image.shape
    if is_mixed and image_size is None:
        image_size = _DEFAULT_SIZE
    has_ids = isinstance(features.get("id"), tfds.features.Text)
    ids_from = "id" if has_ids else "tfds_id"
    if name == _BIRDS:
        ids_from = "image/filename"
    for split, prefix in (("train", ""), (held_back[0], "test_")):
        images, labels, ids = [], [], []
        for batch in _batches(tfds, builder, split, ids_from, is_mixed):
            images.append(resize_all(batch["image"], image_size))
            labels.extend(batch["label"])
            ids += [text.decode() for text in batch[ids_from]]
        if name == _BIRDS:
            # The names of the classes are those of the folders.
            for path, number in zip(ids, labels, strict=True):
                names[number] = path.split("/")[-2].split(".", 1)[-1]
            ids = [os.path.basename(path).removesuffix(".jpg") for path in ids]
        order = np.argsort(ids, kind="stable")
        fields[f"{prefix}images"] = np.concatenate(images)[order]
        fields[f"{prefix}labels"] = np.array(labels, np.int64)[order]
        fields[f"{prefix}ids"] = np.array(ids, str)[order]
    return {**fields, "class_names": tuple(names)}


def _batches(tfds, builder, split, ids_from, is_mixed):
    """Yields batches; of images that differ in size, lists."""
    wanted = ("image", "label", ids_from)
    config = tfds.ReadConfig(try_autocache=False, add_tfds_id=True)
    data = builder.as_dataset(
        split=split, shuffle_files=False, read_config=config
    ).map(lambda row: {name: row[name] for name in wanted})
    if not is_mixed:
        yield from tfds.as_numpy(data.batch(_AT_ONCE))
        return
    rows = iter(tfds.as_numpy(data))
    while batch := list(itertools.islice(rows, _AT_ONCE)):
        yield {name: [row[name] for row in batch] for name in wanted}


def download(name, data_dir, is_allowed, *, names, absent, remedy):
    """Has TFDS download and prepare a data set.

    Checksums and certificates are always verified. TFDS takes official
    archives in `downloads/manual` in place of a download.

    Args:
        name: String, a TFDS name.
        data_dir: String, the folder in which TFDS is to keep it.
        is_allowed: Whether the network may be used.
        names: Names that this package knows besides.
        absent: String, where it was looked for, for messages.
        remedy: String, a way to mend it, for messages.
    """
    import tensorflow_datasets as tfds

    base = re.split("[:/]", name)[0]
    try:
        infos = tfds.builder_cls(base).url_infos or {}
    except tfds.core.DatasetNotFoundError as error:
        raise ConfigError(
            f"Unknown data set{nearest(base, names) or '.'} Names are "
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
    urls = [*infos]
    try:
        if not is_here:
            print(
                f"{name}: not on this machine; downloading {first_five(urls)} "
                f"to {data_dir} (--nodownload forbids it)",
                file=sys.stderr,
                flush=True,
            )
            _check_network(urls)
        builder = tfds.builder(name, data_dir=data_dir)
        config = tfds.download.DownloadConfig(try_download_gcs=False)
        builder.download_and_prepare(download_config=config)
    except Exception as error:
        raise DataError(
            f"{absent}; the download from {first_five(urls)} failed: "
            f"{one_line(error).rstrip(':')}. {remedy}"
        ) from error


def _check_network(urls):
    """Raises if the first host cannot be reached: TFDS retries for minutes."""
    for url in urls[:1]:
        request = urllib.request.Request(url, method="HEAD")
        # It answers, if only to another kind of request.
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=_SECONDS).close()
