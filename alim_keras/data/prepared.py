"""Data sets of TensorFlow Datasets (TFDS): prepared folders, and downloads.

A prepared folder is read with `tfds.builder_from_directory`, which looks at
nothing but that folder: no network is tried.
"""

import hashlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import sys
import urllib.error
import urllib.request

import numpy as np

from alim_keras.data import decoding
from alim_keras.data.checks import numbered_ids
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
_SECONDS = 8
_LEFT_BEHIND = re.compile(r"incomplete\..*|.*\.tmp\.[0-9a-f]{32}")


def _module():
    """Returns the module `tensorflow_datasets`."""
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


def _split_name(name):
    """Returns ("name", "config", "version") of "name/config:version"."""
    base, _, version = name.partition(":")
    base, _, config = base.partition("/")
    return base, config or None, version or None


def find(name, data_dir):
    """Returns the folder of the newest prepared version, or None.

    Args:
        name: String, a TFDS name, also "name/config" or "name:1.0.0".
        data_dir: String, the folder given to TFDS as `data_dir`, or the
            folder of the data set or version in it.

    Raises:
        ConfigError: Several configurations are prepared and none is named.
    """
    base, config, version = _split_name(name)
    try:
        with open(os.path.join(data_dir, "dataset_info.json")) as file:
            if json.load(file).get("name") == base:
                return data_dir
    except (OSError, ValueError, AttributeError):
        pass
    top = os.path.join(data_dir, base)
    if not os.path.isdir(top) and os.path.basename(data_dir) == base:
        top = data_dir
    folders = _versions(os.path.join(top, config) if config else top)
    if not folders and config is None:
        inner = [path for path in _folders(top) if _versions(path)]
        if len(inner) > 1:
            names = [f"{base}/{os.path.basename(path)}" for path in inner]
            raise ConfigError(
                f"{top} holds {len(inner)} configurations of {base}; "
                f"name one of {first_five(names)}"
            )
        folders = _versions(inner[0]) if inner else []
    if version is not None:
        folders = [p for p in folders if os.path.basename(p) == version]
    return max(folders, key=_version_number, default=None)


def _folders(top):
    if not os.path.isdir(top):
        return []
    with os.scandir(top) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir())


def _versions(top):
    return [
        path
        for path in _folders(top)
        if re.fullmatch(r"\d+\.\d+\.\d+", os.path.basename(path))
        and os.path.isfile(os.path.join(path, "dataset_info.json"))
    ]


def _version_number(folder):
    return tuple(int(part) for part in os.path.basename(folder).split("."))


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
            f"{folder} holds {name}, but {error}"
        ) from error
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
        fields, names = {}, list(features["label"].names)
        for split, prefix in (("train", ""), (test_split, "test_")):
            images, labels, texts = _collect(
                _stored(tfds, builder, split, wanted, None not in shape),
                splits[split].num_examples,
                shape,
                image_size,
                folder,
            )
            ids = _ids(name, split, prefix, texts, len(labels))
            if texts and name == _BIRDS:
                # The names of the classes are those of the folders.
                for text, label in zip(texts, labels, strict=True):
                    names[label] = text.split("/")[-2].split(".", 1)[-1]
            order = np.argsort(ids, kind="stable")
            fields[f"{prefix}images"] = images[order]
            fields[f"{prefix}labels"] = labels[order]
            fields[f"{prefix}ids"] = ids[order]
    except AlimError:
        raise
    except Exception as error:
        # TensorFlow's errors, and what broken files make TFDS raise.
        raise DataError(
            f"{folder}: the prepared data set cannot be read, it may be "
            f"damaged ({one_line(error)}); prepare it again"
        ) from error
    fields["class_names"] = tuple(names)
    return fields


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
    held_back = [split for split in ("test", "validation") if split in splits]
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


def _stored(tfds, builder, split, wanted, same_size):
    """Yields examples in the order in which they are stored, in batches.

    Images of one size come stacked; others come one by one, as lists.
    """
    others = [
        name
        for name, feature in dict(builder.info.features).items()
        if isinstance(feature, tfds.features.Image) and name not in wanted
    ]
    data = builder.as_dataset(
        split=split,
        shuffle_files=False,
        decoders={name: tfds.decode.SkipDecoding() for name in others},
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
        images[part] = decoding.resize_all(batch["image"], image_size)
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
    """Returns ids that are the same in whatever form the data come."""
    kind = "test" if prefix else "train"
    if name == _BIRDS and texts:
        stems = [text.rsplit("/", 1)[-1].rsplit(".", 1)[0] for text in texts]
        return np.array(stems, str)
    if texts:
        numbers = [re.fullmatch(rf"{split}_(\d+)", text) for text in texts]
        if all(numbers):
            return numbered_ids([int(number[1]) for number in numbers], kind)
        if len(set(texts)) == len(texts):
            return np.array(texts, str)
    is_hashed = _split_name(name)[0] in _HASHED_PLACE
    places = hashed_order(split, count) if is_hashed else range(count)
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
        absent: String, that it is not here and where it was looked for.
        remedy: String, a way to mend it, for the message.

    Raises:
        ConfigError: TFDS has no such data set.
        DataError: It is nowhere here and forbidden to download, there is no
            network, or the download failed.
        EnvironmentLacksError: A package that TFDS needs for it is missing.
    """
    base = _split_name(name)[0]
    try:
        tfds = _module()
        known = {*names, *tfds.list_builders(with_community_datasets=False)}
    except EnvironmentLacksError as error:
        known = names
        if not nearest(base, names):
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
            f"{first_five([*infos]) or 'its own address'} to {data_dir} "
            "(--nodownload forbids it)",
            file=sys.stderr,
            flush=True,
        )
    urls = [url for url in infos if url.startswith("http")]
    before = _leftovers(data_dir, base)
    try:
        if urls and not is_here:
            _reach(urls[0])
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


def _reach(url):
    """Raises if a host cannot be reached: TFDS would retry for minutes."""
    request = urllib.request.Request(url, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=_SECONDS).close()
    except urllib.error.HTTPError:
        pass  # It answers, if only to another kind of request.


def _cause(error):
    """Returns one line of cause and remedy, by the kind of failure."""
    kind = type(error).__name__
    text = one_line(error)
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
            for inner in list(folders):
                if _LEFT_BEHIND.fullmatch(inner):
                    paths.add(os.path.join(folder, inner))
                    folders.remove(inner)
    return paths
