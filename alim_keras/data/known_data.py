"""Data sets by name: built in, in files, or of TensorFlow Datasets (TFDS)."""

import contextlib
import dataclasses
import gzip
import hashlib
import os
import pathlib
import re
import sys
import urllib.error
import urllib.request
import zipfile
import zlib

import numpy as np

from alim_keras import errors
from alim_keras.data import checks
from alim_keras.data.images import resize_all
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.training_set import stratified_subset

DIGIT_CLASSES = tuple("0123456789")
_TEST_DIGITS = 360
# The arrays of an .npz file, and the IDX files that hold the same.
_IDX_FILES = {
    "train_images": "train-images-idx3-ubyte",
    "train_labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
_BIRDS = "caltech_birds2011"
_DEFAULT_SIZE = 224
_AT_ONCE = 256
_SECONDS = 8  # In which a host has to answer.


@dataclasses.dataclass(frozen=True)
class Known:
    """One named data set."""

    tfds_name: str = None
    # The md5 of the unpacked IDX files, in the order of `_IDX_FILES`.
    idx: tuple = ()
    system_folder: str = None  # Where a distribution installs these.
    class_names: tuple = None  # Of the IDX files, which do not name them.
    mean: tuple = None  # Of each channel, as published with the methods.
    std: tuple = None
    protocol: str = "flip"  # That of the published tables.
    image_size: int = None  # That images are brought to by default.


# Of each class of CIFAR-100 in official order, which is that of the alphabet.
# Source: Krizhevsky, "Learning multiple layers of features from tiny images",
# 2009, and the data set's page.
CIFAR100_SUPERCLASSES = tuple(
    map(
        int,
        "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 "
        "15 0 11 1 10 12 14 16 9 11 5 5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 "
        "0 17 4 18 17 10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13 16 "
        "19 2 4 6 19 5 5 8 19 18 1 2 15 6 0 17 8 14 13".split(),
    )
)
_CIFAR100 = Known(
    "cifar100", mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762)
)
KNOWN = {
    "digits": Known(class_names=DIGIT_CLASSES),
    "cifar10": Known(
        "cifar10", mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)
    ),
    "cifar100": _CIFAR100,
    "cifar100h": dataclasses.replace(_CIFAR100, protocol="superclass"),
    "cub200": Known(
        tfds_name=_BIRDS,
        mean=(0.485, 0.456, 0.406),
        std=(0.229, 0.224, 0.225),
        protocol="pico",
        image_size=256,
    ),
    "fashion_mnist": Known(
        tfds_name="fashion_mnist",
        idx=(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        system_folder="/usr/share/datasets/fashion-mnist",
        class_names=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        mean=(0.2860,),
        std=(0.3530,),
    ),
    "mnist": Known(
        tfds_name="mnist",
        idx=(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        class_names=DIGIT_CLASSES,
        mean=(0.1307,),
        std=(0.3081,),
    ),
}
_ALIASES = {
    "caltechbirds2011": "cub200",
    "cub": "cub200",
    "cub2002011": "cub200",
    **{re.sub(r"[\W_]", "", name): name for name in KNOWN},
}


def plain_name(text):
    """Returns the one spelling of a name: "CIFAR-10" is "cifar10"."""
    name = str(text).lower()
    return _ALIASES.get(re.sub(r"[\W_]", "", name), name)


def is_table(dataset):
    """Returns whether `--dataset` is the absolute path of a table or folder.

    An `.npz` file with images is none, but a whole data set.
    """
    if dataset.endswith(".npz"):
        # The reader of tables says what is wrong with a damaged one.
        with contextlib.suppress(OSError, zipfile.BadZipFile):
            with zipfile.ZipFile(dataset) as archive:
                return "train_images.npy" not in archive.namelist()
    return os.path.isabs(dataset)


def load(name, data_dir=None, download=True, image_size=None):
    """Loads a data set by name or path.

    docs/data.md says where a name is looked for, and in which forms.

    Args:
        name: String: `"digits"` (built in), `"cifar10"`, `"cifar100"`,
            `"cifar100h"`, `"cub200"`, `"fashion_mnist"`, `"mnist"`, another
            image classification set of TFDS, or the path of an `.npz` file.
        data_dir: String, or None to look only where data usually are.
        download: Boolean. Whether TFDS may fetch what is nowhere here.
        image_size: Integer: bring every image to this square size, the
            shorter side scaled to it and the middle kept. Defaults to the
            images' own size, 256 for `cub200`.

    Returns:
        A `TrainingSet` without candidate sets.

    Raises:
        ConfigError: An unknown name, or an `image_size` that is none.
        DataError: The data are nowhere, damaged, or not what their name says.

    Example:

    >>> data = load("digits")
    >>> data.images.shape, data.test_images.shape
    ((1437, 8, 8, 1), (360, 8, 8, 1))
    """
    name = os.fspath(name)
    errors.check_number("image_size", image_size, 1, whole=True, optional=True)
    known = KNOWN.get(plain_name(name), Known(plain_name(name)))
    if name.endswith(".npz"):
        known, source = Known(), os.path.expanduser(name)
        arrays = _read_npz(source)
    elif known is KNOWN["digits"]:
        source, arrays = "scikit-learn", _read_digits()
    else:
        # Only images that differ in size are read at the default size.
        size = image_size or known.image_size
        source, arrays = _read_named(name, known, data_dir, download, size)
    fields = {"name": name, "source": source, "protocol": known.protocol}
    for split, prefix in (("train", ""), ("test", "test_")):
        images, ids = arrays[f"{split}_images"], arrays.get(f"{split}_ids")
        images = images[..., None] if images.ndim == 3 else images
        if images.ndim == 4:
            images = resize_all(images, image_size)
        fields[f"{prefix}images"] = images
        fields[f"{prefix}labels"] = arrays[f"{split}_labels"]
        fields[f"{prefix}ids"] = (
            checks.default_ids(len(images), split) if ids is None else ids
        )
    if not len(fields["ids"]):
        raise errors.DataError(f"{source}: train_images holds no image")
    if source.endswith(".npz") and "train_ids" not in arrays:
        fields["notes"] = (
            f"{source} has no train_ids: its images are called train_00000 and "
            "so on after their place, and sets are joined by these names",
        )
    if known.mean is not None and len(known.mean) == images.shape[-1]:
        fields["mean"], fields["std"] = known.mean, known.std
    names = arrays.get("label_names")
    if names is None:
        both = (arrays["train_labels"], arrays["test_labels"])
        names = range(int(max(labels.max(initial=0) for labels in both)) + 1)
    names = list(map(str, names))
    superclasses = arrays.get("superclasses")
    if superclasses is None and known.tfds_name == "cifar100":
        if names in (sorted(names), list(map(str, range(100)))):
            superclasses = np.array(CIFAR100_SUPERCLASSES)
    return TrainingSet(class_names=names, superclasses=superclasses, **fields)


def _read_named(name, known, data_dir, download, image_size):
    """Returns a data set's source and arrays from the first folder with it."""
    home = os.path.join(os.path.expanduser("~"), "tensorflow_datasets")
    own_dir = os.environ.get("TFDS_DATA_DIR") or home
    if data_dir is not None:
        data_dir = os.path.normpath(os.path.expanduser(os.fspath(data_dir)))
    folders = dict.fromkeys([data_dir, known.system_folder, own_dir])
    folders.pop(None, None)
    file = f"{plain_name(name)}.npz"
    for folder in folders:
        prepared = read_prepared(known.tfds_name, folder, image_size)
        if prepared is not None:
            return prepared
        if known.idx and (arrays := _read_idx(folder, known)):
            return folder, arrays
        path = os.path.join(folder, file)
        if os.path.isfile(path):
            return path, _read_npz(path)
    forms = "its four IDX files or " if known.idx else ""
    _download(
        known.tfds_name,
        data_dir or own_dir,
        download,
        f"{name} is not on this machine, looked in {', '.join(folders)}",
        f"Put {forms}{file} in --data_dir",
    )
    return read_prepared(known.tfds_name, data_dir or own_dir, image_size)


# Each reader returns arrays by the names that they have in an .npz file.


def _read_digits():
    """Reads scikit-learn's digits; 360, stratified, are always the test."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.round(bunch.images * (255.0 / 16.0)).astype(np.uint8)
    test = stratified_subset(bunch.target, _TEST_DIGITS, seed=0)
    train = np.setdiff1d(np.arange(len(images)), test)
    arrays = {"label_names": DIGIT_CLASSES}
    for split, rows in (("train", train), ("test", test)):
        arrays[f"{split}_images"] = images[rows]
        arrays[f"{split}_labels"] = bunch.target[rows]
        arrays[f"{split}_ids"] = checks.default_ids(rows, split)
    return arrays


def _read_idx(folder, known):
    """Reads the four IDX files of 28 x 28; None if they are not there."""
    arrays = {"label_names": known.class_names}
    for (name, file), expected in zip(_IDX_FILES.items(), known.idx):
        path = os.path.join(folder, file)
        path = f"{path}.gz" if os.path.isfile(f"{path}.gz") else path
        if not os.path.isfile(path):
            return None
        content = pathlib.Path(path).read_bytes()
        # What is no sound archive is told apart by its checksum.
        with contextlib.suppress(OSError, EOFError, zlib.error):
            content = gzip.decompress(content)
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if digest != expected:
            raise errors.DataError(
                f"{path}: is damaged, or not the file of this data set (MNIST "
                "and Fashion-MNIST use the same file names); fetch it again. "
                f"Received: md5 {digest} unpacked; expected {expected}"
            )
        # The bytes come after a magic number and the shape.
        is_labels = name.endswith("labels")
        values = np.frombuffer(content, np.uint8, offset=8 if is_labels else 16)
        arrays[name] = values if is_labels else values.reshape(-1, 28, 28)
    return arrays


def _read_npz(path):
    """Reads an .npz file; refuses one that lacks images or labels."""
    arrays = checks.read_npz(path)
    missing = [name for name in _IDX_FILES if name not in arrays]
    if missing:
        raise errors.DataError(
            f"{path}: the arrays {', '.join(missing)} are missing. "
            f"Received: {', '.join(sorted(arrays)) or 'no arrays'}"
        )
    return arrays


def read_prepared(name, data_dir, image_size=None):
    """Returns source and arrays, by id, of a set that TFDS prepared, or None.

    `name` may also be "name/config" or "name:1.0.0".
    """
    folder = os.path.join(data_dir, re.split("[:/]", name)[0])
    if not os.path.isdir(folder):
        return None  # Importing TFDS takes seconds.
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import read_only_builder

    try:
        # Unlike `tfds.builder` it does not try the network.
        builder = read_only_builder.builder_from_files(name, data_dir=data_dir)
        return str(builder.data_dir), _read_splits(builder, name, image_size)
    except tfds.core.DatasetNotFoundError:
        return None
    except errors.AlimError:
        raise
    except Exception as error:
        # TensorFlow's errors, and what broken files make TFDS raise.
        raise errors.DataError(
            f"{folder}: the prepared data set cannot be read, it may be "
            f"damaged ({errors.one_line(error)}); prepare it again"
        ) from error


def _read_splits(builder, name, image_size):
    import tensorflow_datasets as tfds

    features, splits = dict(builder.info.features), builder.info.splits
    image, label = features.get("image"), features.get("label")
    held_back = [split for split in ("test", "validation") if split in splits]
    is_image = isinstance(image, tfds.features.Image)
    is_label = isinstance(label, tfds.features.ClassLabel)
    if not (is_image and is_label and "train" in splits and held_back):
        raise errors.DataError(
            f"{name}: images and one class label, and a train and a test (or "
            "validation) split were expected. Received: features "
            f"{', '.join(sorted(features))}; splits {', '.join(sorted(splits))}"
        )
    has_ids = isinstance(features.get("id"), tfds.features.Text)
    ids_from = "id" if has_ids else "tfds_id"
    if name == _BIRDS:
        ids_from = "image/filename"
    at_once = _AT_ONCE
    if None in image.shape:
        # Images that differ in size are no array.
        at_once, image_size = 1, image_size or _DEFAULT_SIZE
    names, arrays = list(label.names), {}
    config = tfds.ReadConfig(try_autocache=False, add_tfds_id=True)
    for split, source in (("train", "train"), ("test", held_back[0])):
        images, labels, ids = [], [], []
        rows = builder.as_dataset(
            split=source, shuffle_files=False, read_config=config
        ).map(lambda row: [row[key] for key in ("image", "label", ids_from)])
        for batch in tfds.as_numpy(rows.batch(at_once)):
            images.append(resize_all(batch[0], image_size))
            labels.extend(batch[1])
            ids += [text.decode() for text in batch[2]]
        if name == _BIRDS:
            # The names of the classes are those of the folders.
            for path, number in zip(ids, labels, strict=True):
                names[number] = path.split("/")[-2].split(".", 1)[-1]
            ids = [os.path.basename(path).removesuffix(".jpg") for path in ids]
        order = np.argsort(ids, kind="stable")
        arrays[f"{split}_images"] = np.concatenate(images)[order]
        arrays[f"{split}_labels"] = np.array(labels)[order]
        arrays[f"{split}_ids"] = np.array(ids, str)[order]
    return {**arrays, "label_names": names}


def _download(name, data_dir, is_allowed, absent, remedy):
    """Has TFDS prepare a data set in a folder, of archives there or the net."""
    import tensorflow_datasets as tfds

    base = re.split("[:/]", name)[0]
    try:
        infos = tfds.builder_cls(base).url_infos or {}
    except tfds.core.DatasetNotFoundError as error:
        raise errors.ConfigError(
            f"Unknown data set.{errors.did_you_mean(base, KNOWN)} Names are "
            f"{', '.join(sorted(KNOWN))}, others of TensorFlow Datasets, or "
            "the path of a table (.csv, .jsonl, .parquet, .npz, ...) or of a "
            f"folder that is there. Received: dataset={name!r}"
        ) from error
    archives = sorted({info.filename for info in infos.values()} - {None})
    manual = os.path.join(data_dir, "downloads", "manual")
    paths = [os.path.join(manual, archive) for archive in archives]
    is_here = bool(paths) and all(map(os.path.isfile, paths))
    if archives:
        remedy += f", or {errors.first_five(archives)} in {manual}"
    if not is_here and not is_allowed:
        raise errors.DataError(f"{absent}; downloading is forbidden. {remedy}")
    urls = [*infos]
    try:
        if not is_here:
            print(
                f"{name}: not on this machine; downloading "
                f"{errors.first_five(urls)} to {data_dir} (--nodownload "
                "forbids it)",
                file=sys.stderr,
                flush=True,
            )
            # Where no host answers TFDS would try again for minutes.
            with contextlib.suppress(urllib.error.HTTPError, IndexError):
                urllib.request.urlopen(urls[0], timeout=_SECONDS).close()
        builder = tfds.builder(name, data_dir=data_dir)
        config = tfds.download.DownloadConfig(try_download_gcs=False)
        builder.download_and_prepare(download_config=config)
    except Exception as error:
        raise errors.DataError(
            f"{absent}; the download from {errors.first_five(urls)} failed: "
            f"{errors.one_line(error).rstrip(':')}. {remedy}"
        ) from error
