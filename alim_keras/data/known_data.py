"""Data sets by name: built in, in files, or of TensorFlow Datasets (TFDS)."""

import contextlib
import dataclasses
import gzip
import hashlib
import itertools
import os
import re
import sys
import urllib.error
import urllib.request
import zlib

import numpy as np

from alim_keras.data.checks import default_ids
from alim_keras.data.checks import read_npz
from alim_keras.data.images import resize_all
from alim_keras.data.training_set import TrainingSet
from alim_keras.data.training_set import stratified_subset
from alim_keras.errors import AlimError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import check_number
from alim_keras.errors import did_you_mean
from alim_keras.errors import first_five
from alim_keras.errors import one_line

FASHION_CLASSES = tuple(
    "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,"
    "Ankle boot".split(",")
)
DIGIT_CLASSES = tuple("0123456789")
_TEST_DIGITS = 360
_IDX_FILES = {
    "images": "train-images-idx3-ubyte",
    "labels": "train-labels-idx1-ubyte",
    "test_images": "t10k-images-idx3-ubyte",
    "test_labels": "t10k-labels-idx1-ubyte",
}
_NPZ_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
_BIRDS = "caltech_birds2011"
_DEFAULT_SIZE = 224
_AT_ONCE = 256
# Seconds in which a host has to answer.
_SECONDS = 8


@dataclasses.dataclass(frozen=True)
class Known:
    """One named data set."""

    tfds_name: str = None
    # The md5 of the unpacked IDX files, in the order of `_IDX_FILES`.
    idx: tuple = ()
    # Where a Linux distribution installs the IDX files.
    system_folder: str = None
    # Where the files do not name them.
    class_names: tuple = None
    # Of each channel, as published with the methods.
    mean: tuple = None
    std: tuple = None
    # The candidate protocol of the published tables.
    protocol: str = "flip"
    # The size that images are brought to by default.
    image_size: int = None


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
    tfds_name="cifar100",
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
)
KNOWN = {
    "digits": Known(class_names=DIGIT_CLASSES),
    "cifar10": Known(
        tfds_name="cifar10",
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
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
        class_names=FASHION_CLASSES,
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
    if not os.path.isabs(dataset):
        return False
    if not dataset.endswith(".npz"):
        return True
    try:
        with np.load(dataset, allow_pickle=False) as archive:
            return "train_images" not in archive.files
    except Exception:
        # Not even an archive: the reader of tables says what is wrong.
        return True


def load(name, data_dir=None, download=True, image_size=None):
    """Loads a data set by name or path.

    A name is looked for in `data_dir`, where the Linux distribution installs
    it, and in TFDS's own folder: prepared by TFDS, as IDX files, or as
    `<name>.npz`. None of that touches the network. Last, unless forbidden,
    TFDS downloads it; official archives that lie in `downloads/manual` below
    its folder are taken from there, without network.

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
    check_number("image_size", image_size, 1, whole=True, optional=True)
    if data_dir is not None:
        data_dir = os.path.normpath(os.path.expanduser(os.fspath(data_dir)))
    if name.endswith(".npz"):
        known, fields = Known(), _read_npz(os.path.expanduser(name))
    elif plain_name(name) == "digits":
        known, fields = KNOWN["digits"], _read_digits()
    else:
        plain = plain_name(name)
        known = KNOWN.get(plain, Known(tfds_name=plain))
        # Only images that differ in size are read at the default size.
        size = image_size or known.image_size
        fields = _read_named(name, plain, known, data_dir, download, size)
    for part in ("images", "test_images"):
        if fields[part].ndim == 4:
            fields[part] = resize_all(fields[part], image_size)
    channels = fields["images"].shape[-1]
    if known.mean is not None and len(known.mean) == channels:
        fields["mean"], fields["std"] = known.mean, known.std
    if known.tfds_name == "cifar100" and "superclasses" not in fields:
        names = list(fields["class_names"])
        if names in (sorted(names), list(map(str, range(100)))):
            fields["superclasses"] = np.array(CIFAR100_SUPERCLASSES)
    return TrainingSet(name=name, protocol=known.protocol, **fields)


def _read_named(name, plain, known, data_dir, download, image_size):
    """Returns the fields of a data set from the first folder that has it."""
    home = os.path.join(os.path.expanduser("~"), "tensorflow_datasets")
    own_dir = os.environ.get("TFDS_DATA_DIR") or home
    folders = dict.fromkeys([data_dir, known.system_folder, own_dir])
    folders.pop(None, None)
    for folder in folders:
        fields = read_prepared(known.tfds_name, folder, image_size)
        if fields is None and known.idx:
            fields = _read_idx(folder, known)
        path = os.path.join(folder, f"{plain}.npz")
        if fields is None and os.path.isfile(path):
            fields = _read_npz(path)
        if fields is not None:
            return fields
    forms = "its four IDX files or " if known.idx else ""
    _download(
        known.tfds_name,
        data_dir or own_dir,
        download,
        f"{name} is not on this machine, looked in {', '.join(folders)}",
        f"Put {forms}{plain}.npz in --data_dir",
    )
    return read_prepared(known.tfds_name, data_dir or own_dir, image_size)


def _read_digits():
    """Reads scikit-learn's digits; 360, stratified, are always the test."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.round(bunch.images * (255.0 / 16.0)).astype(np.uint8)
    images, labels = images[..., None], bunch.target.astype(np.int64)
    fields = {"class_names": DIGIT_CLASSES, "source": "scikit-learn"}
    test = stratified_subset(labels, _TEST_DIGITS, seed=0)
    train = np.setdiff1d(np.arange(len(labels)), test)
    for split, prefix, rows in (("train", "", train), ("test", "test_", test)):
        fields[f"{prefix}images"] = images[rows]
        fields[f"{prefix}labels"] = labels[rows]
        fields[f"{prefix}ids"] = default_ids(rows, split)
    return fields


def _read_idx(folder, known):
    """Reads the four IDX files of 28 x 28; None if they are not there."""
    fields = {"class_names": known.class_names, "source": folder}
    for (field, file), expected in zip(_IDX_FILES.items(), known.idx):
        path = os.path.join(folder, file)
        path = f"{path}.gz" if os.path.isfile(f"{path}.gz") else path
        if not os.path.isfile(path):
            return None
        opener = gzip.open if path.endswith(".gz") else open
        try:
            with opener(path, "rb") as opened:
                content = opened.read()
        except (OSError, EOFError, zlib.error):
            content = b""  # Damaged, which the checksum says.
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if digest != expected:
            raise DataError(
                f"{path}: is damaged, or not the file of this data set (MNIST "
                "and Fashion-MNIST use the same file names); fetch it again. "
                f"Received: md5 {digest} unpacked; expected {expected}"
            )
        # The bytes come after a magic number and the shape.
        if field.endswith("labels"):
            values = np.frombuffer(content, np.uint8, offset=8)
            fields[field] = values.astype(np.int64)
        else:
            pixels = np.frombuffer(content, np.uint8, offset=16)
            fields[field] = pixels.reshape(-1, 28, 28, 1).copy()
    fields["ids"] = default_ids(len(fields["labels"]))
    fields["test_ids"] = default_ids(len(fields["test_labels"]), "test")
    return fields


def _read_npz(path):
    """Returns the fields of a `TrainingSet` in an `.npz` file.

    Without ids an example is named "train_00000" after its place in this
    file, and `notes` says so.
    """
    arrays = read_npz(path)
    missing = [name for name in _NPZ_ARRAYS if name not in arrays]
    if missing:
        raise DataError(
            f"{path}: the arrays {', '.join(missing)} are missing. "
            f"Received: {', '.join(sorted(arrays)) or 'no arrays'}"
        )
    labels, test_labels = arrays["train_labels"], arrays["test_labels"]
    if not len(labels):
        raise DataError(f"{path}: train_images holds no image")
    if "label_names" in arrays:
        names = tuple(map(str, arrays["label_names"].tolist()))
    else:
        highest = max(part.max(initial=0) for part in (labels, test_labels))
        names = tuple(map(str, range(int(highest) + 1)))
    fields = {"class_names": names, "source": path}
    for split, prefix in (("train", ""), ("test", "test_")):
        images, ids = arrays[f"{split}_images"], arrays.get(f"{split}_ids")
        is_grey = images.ndim == 3
        fields[f"{prefix}images"] = images[..., None] if is_grey else images
        fields[f"{prefix}labels"] = arrays[f"{split}_labels"]
        fields[f"{prefix}ids"] = (
            default_ids(len(images), split) if ids is None else ids
        )
    if "train_ids" not in arrays:
        fields["notes"] = (
            f"{path} has no train_ids: its images are called train_00000 and "
            "so on after their place, and sets are joined by these names",
        )
    if "superclasses" in arrays:
        fields["superclasses"] = arrays["superclasses"].astype(np.int64)
    return fields


def read_prepared(name, data_dir, image_size=None):
    """Returns the fields of a set that TFDS prepared, ordered by id, or None.

    `name` may also be "name/config" or "name:1.0.0". Where the images differ
    in size, `image_size` defaults to 224.
    """
    folder = os.path.join(data_dir, re.split("[:/]", name)[0])
    if not os.path.isdir(folder):
        return None  # Importing TFDS takes seconds.
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import read_only_builder

    try:
        # Unlike `tfds.builder` it does not try the network.
        builder = read_only_builder.builder_from_files(name, data_dir=data_dir)
        fields = _read_splits(tfds, builder, name, image_size)
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


def _read_splits(tfds, builder, name, image_size):
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


def _download(name, data_dir, is_allowed, absent, remedy):
    """Has TFDS download and prepare a data set in a folder.

    Checksums and certificates are always verified. TFDS takes official
    archives in `downloads/manual` in place of a download.
    """
    import tensorflow_datasets as tfds

    base = re.split("[:/]", name)[0]
    try:
        infos = tfds.builder_cls(base).url_infos or {}
    except tfds.core.DatasetNotFoundError as error:
        raise ConfigError(
            f"Unknown data set.{did_you_mean(base, KNOWN)} Names are "
            f"{', '.join(sorted(KNOWN))}, others of TensorFlow Datasets, or "
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
