"""Data sets of TensorFlow Datasets (TFDS): prepared folders, and downloads.

A prepared folder is read with `tfds.builder_from_directory`, which looks at
nothing but that folder: no network is tried.
"""

import glob
import hashlib
import importlib.util
import itertools
import os
import re
import shutil
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

_INSTALL = "pip install tensorflow-datasets importlib_resources"
_BIRDS = "caltech_birds2011"
# TFDS keeps no id of these; it stores them in the order of the hash of their
# place in the official files, so the place can be worked out.
_HASHED_PLACE = ("fashion_mnist", "kmnist", "mnist")
_DEFAULT_SIZE = 224
_AT_ONCE = 256
# Seconds in which a host has to answer.
_SECONDS = 8
_LEFT_BEHIND = re.compile(r"incomplete\..*|.*\.tmp\.[0-9a-f]{32}")


def _module():
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise EnvironmentLacksError(
            f"TensorFlow Datasets is not installed ({one_line(error)}): "
            f"{_INSTALL}"
        ) from error
    return tensorflow_datasets


def default_dir():
    """Returns the folder TFDS uses when none is given."""
    return os.environ.get("TFDS_DATA_DIR") or os.path.join(
        os.path.expanduser("~"), "tensorflow_datasets"
    )


def find(name, data_dir):
    """Returns the folder of the newest prepared version, or None.

    Args:
        name: String, a TFDS name, also "name/config" or "name:1.0.0".
        data_dir: String, the folder given to TFDS as `data_dir`, or the
            folder of the data set or version in it.
    """
    path, _, version = name.partition(":")
    folders, above = set(), data_dir
    for _ in range(3):
        for depth in ("*", "*/*"):
            place = os.path.join(glob.escape(above), path, depth)
            infos = glob.glob(os.path.join(place, "dataset_info.json"))
            folders.update(map(os.path.dirname, infos))
        above = os.path.dirname(above)
    own = os.path.join(data_dir, "")
    folders = [
        folder
        for folder in folders
        if f"{folder}/".startswith(own) and _numbers(folder)
    ]
    tops = sorted({os.path.dirname(folder) for folder in folders})
    if len(tops) > 1:
        names = [f"{path}/{os.path.basename(top)}" for top in tops]
        raise ConfigError(
            f"{data_dir} holds {len(names)} configurations of {path}; name one "
            f"of {first_five(names)}"
        )
    fitting = [f for f in folders if version in ("", os.path.basename(f))]
    return max(fitting, key=_numbers, default=None)


def _numbers(folder):
    parts = os.path.basename(folder).split(".")
    is_version = len(parts) == 3 and all(map(str.isdecimal, parts))
    return tuple(map(int, parts)) if is_version else None


def read(folder, name, image_size=None):
    """Reads a prepared data set with single labels, ordered by id.

    Args:
        folder: String, the folder of one version.
        name: String, the TFDS name.
        image_size: Integer or None, the size images are brought to. Where
            the images differ in size it defaults to 224.

    Returns:
        Dict of the fields of `TrainingSet`.

    Raises:
        EnvironmentLacksError: TFDS is not installed.
        DataError: The folder is damaged, or holds no images with one label.
    """
    try:
        tfds = _module()
    except EnvironmentLacksError as error:
        raise EnvironmentLacksError(
            f"{folder} holds it, but {error}"
        ) from error
    try:
        builder = tfds.builder_from_directory(folder)
        return _read(tfds, builder, name, image_size)
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
    is_image = isinstance(image, tfds.features.Image)
    if not (is_image and isinstance(label, tfds.features.ClassLabel)):
        raise DataError(
            f"{name}: images and one class label were expected. Received: "
            f"features {first_five(sorted(features))}"
        )
    held_back = [split for split in ("test", "validation") if split in splits]
    if "train" not in splits or not held_back:
        raise DataError(
            f"{name}: a train and a test (or validation) split were expected. "
            f"Received: splits {first_five(sorted(splits))}"
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
        batches = _batches(tfds, builder, split, text, is_mixed)
        images, labels, texts = [], [], []
        for batch in batches:
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
    is_hashed = name.partition("/")[0] in _HASHED_PLACE
    return default_ids(hashed_order(split, count) if is_hashed else count, kind)


def hashed_order(split, count):
    """Returns the official places of a split, in the order TFDS stores them.

    TFDS orders examples by the md5 of the split's name followed by the
    example's key, which is its place in the official files.
    """

    def key(place):
        text = f"{split}{place}".encode()
        return hashlib.md5(text, usedforsecurity=False).digest()

    return sorted(range(count), key=key)


def download(name, data_dir, is_allowed, *, names, absent, remedy):
    """Has TFDS download and prepare a data set; returns its folder.

    Size, host and place are announced on stderr, and what a failed download
    leaves behind is removed. Checksums and certificates are always verified.
    Official archives in `downloads/manual` are used in place of a download.

    Args:
        name: String, a TFDS name.
        data_dir: String, the folder in which TFDS is to keep it.
        is_allowed: Whether the network may be used.
        names: Names that this package knows besides.
        absent: String, where it was looked for, for messages.
        remedy: String, a way to mend it, for messages.
    """
    base = re.split("[:/]", name)[0]
    try:
        tfds = _module()
        known = {*names, *tfds.list_builders(with_community_datasets=False)}
    except EnvironmentLacksError as error:
        known = names
        if base in names or not nearest(base, names):
            text = f"{absent}. {error}. {remedy}"
            raise EnvironmentLacksError(text) from error
    if base not in known:
        raise ConfigError(
            f"Unknown data set{nearest(base, known) or '.'} Names are "
            f"{', '.join(sorted(names))}, others of TensorFlow Datasets, or "
            "the path of a table (.csv, .jsonl, .parquet, .npz, ...) or of a "
            f"folder that is there. Received: dataset={name!r}"
        )
    infos = tfds.builder_cls(base).url_infos or {}
    archives = sorted({info.filename for info in infos.values()} - {None})
    manual = os.path.join(data_dir, "downloads", "manual")
    is_here = bool(archives) and all(
        os.path.isfile(os.path.join(manual, archive)) for archive in archives
    )
    if archives:
        remedy += f", or {first_five(archives)} in {manual}"
    if not is_allowed and not is_here:
        raise DataError(f"{absent}; downloading is forbidden. {remedy}")
    if base == _BIRDS and not importlib.util.find_spec("cv2"):
        raise EnvironmentLacksError(
            f"{absent}; TensorFlow Datasets needs OpenCV to prepare it: "
            "pip install opencv-python-headless"
        )
    if not is_here:
        size = sum(int(info.size or 0) for info in infos.values()) / 2**20
        print(
            f"{name}: not on this machine; downloading {size:.1f} MiB from "
            f"{first_five([*infos])} to {data_dir} (--nodownload forbids it)",
            file=sys.stderr,
            flush=True,
        )
    before = _leftovers(data_dir, base)
    try:
        if not is_here:
            _reach([url for url in infos if url.startswith("http")])
        builder = tfds.builder(name, data_dir=data_dir)
        config = tfds.download.DownloadConfig(
            manual_dir=manual if is_here else None, try_download_gcs=False
        )
        builder.download_and_prepare(download_config=config)
    except BaseException as error:
        for path in _leftovers(data_dir, base) - before:
            shutil.rmtree(path, ignore_errors=True)
        if not isinstance(error, Exception):
            raise
        raise DataError(
            f"{absent}; the download from {first_five([*infos])} failed: "
            f"{_cause(error)}. Nothing half-finished was kept. {remedy}"
        ) from error
    return str(builder.data_dir)


def _reach(urls):
    """Raises if the first host cannot be reached: TFDS retries for minutes."""
    for url in urls[:1]:
        request = urllib.request.Request(url, method="HEAD")
        try:
            urllib.request.urlopen(request, timeout=_SECONDS).close()
        except urllib.error.HTTPError:
            pass  # It answers, if only to another kind of request.


def _cause(error):
    """Returns one line of cause and remedy, by the kind of failure."""
    kind, text = type(error).__name__, one_line(error)
    if kind == "NonMatchingChecksumError":
        return (
            "the file is not the one with the published checksum; the host "
            "may have answered with an error page, so try again later"
        )
    if "certificate" in str(error).lower() or "SSL" in kind:
        return (
            f"the certificate of the host was refused ({text}); check the "
            "clock and the CA certificates (REQUESTS_CA_BUNDLE)"
        )
    if any(word in kind for word in ("URLError", "Connect", "Time", "Proxy")):
        return f"there is no network to download it ({text[:200]})"
    return f"{kind}: {text}"


def _leftovers(data_dir, base):
    """Returns the unfinished folders of downloads and of this data set."""
    paths = set()
    for top in ("downloads", base):
        for folder, folders, _ in os.walk(os.path.join(data_dir, top)):
            inner = [one for one in folders if _LEFT_BEHIND.fullmatch(one)]
            paths.update(os.path.join(folder, one) for one in inner)
    return paths
