"""`load`: finds a data set by its name, on this machine first."""

import os

from alim_keras.data.sources import arrays
from alim_keras.data.sources import cifar
from alim_keras.data.sources import cub
from alim_keras.data.sources import digits
from alim_keras.data.sources import idx
from alim_keras.data.sources import members
from alim_keras.data.sources import resize
from alim_keras.data.sources import tfds
from alim_keras.data.sources import tfds_download
from alim_keras.data.sources.image_data import ImageData
from alim_keras.data.sources.known import ALIASES
from alim_keras.data.sources.known import KNOWN
from alim_keras.data.sources.known import Known
from alim_keras.data.superclasses import superclasses_of
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError


def is_own(dataset):
    """Returns whether `--dataset` is a table or a folder of one's own.

    It is if it is an absolute path, except for an `.npz` file with images,
    which is a whole data set.
    """
    if not os.path.isabs(dataset):
        return False
    return not dataset.endswith(".npz") or not arrays.is_whole(dataset)


def load(name, data_dir=None, download=True, image_size=None):
    """Loads a data set by name or path.

    A name is looked for, in this order: in `data_dir` as a folder TFDS
    prepared, as an official archive (also in its `downloads` and
    `downloads/manual`) or what it unpacks to, as IDX files, as `<name>.npz`;
    then where the Linux distribution installs it; then in TFDS's own
    folder. None of that touches the network. Last, unless forbidden, TFDS
    downloads it.

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
        An `ImageData`.

    Raises:
        ConfigError: An unknown name, or an `image_size` that is none.
        DataError: The data are nowhere, damaged, or not what their name says.
        EnvironmentLacksError: A package is missing.

    Example:

    >>> data = load("digits")
    >>> data.images.shape, data.test_images.shape
    ((1437, 8, 8, 1), (360, 8, 8, 1))
    """
    name = os.fspath(name)
    image_size = resize.check_size(image_size)
    if data_dir is not None:
        data_dir = os.path.normpath(os.path.expanduser(os.fspath(data_dir)))
        if os.path.exists(data_dir) and not os.path.isdir(data_dir):
            raise DataError(
                f"`data_dir` must be a folder. Received: data_dir={data_dir!r}"
            )
    if name.endswith(".npz"):
        fields = arrays.read(os.path.expanduser(name))
        return _finish(name, Known(), fields, name, image_size)
    canonical = ALIASES.get(name.lower(), name.lower())
    if canonical == "digits":
        fields = digits.read()
        builtin = KNOWN["digits"]
        return _finish(name, builtin, fields, "scikit-learn", image_size)
    known = KNOWN.get(canonical) or Known(tfds_name=name, file_name=name)
    # Only files of images that differ in size are read at the default size.
    size = image_size or known.image_size

    looked = {}
    local = _read_local(known, canonical, data_dir, size, looked)
    if local is not None:
        return _finish(name, known, *local, image_size)

    tfds_download.check_name(known.tfds_name)
    absent = f"{name} is not on this machine, looked in {', '.join(looked)}"
    remedy = _remedy(known)
    if not download:
        raise DataError(f"{absent}; downloading is forbidden. {remedy}")
    try:
        tfds.module()
    except EnvironmentLacksError as error:
        raise EnvironmentLacksError(f"{absent}. {error}. {remedy}") from error
    folder = tfds_download.download(
        known.tfds_name, data_dir or tfds.default_dir(), absent, remedy
    )
    fields = tfds.read(folder, known.tfds_name, size)
    return _finish(name, known, fields, folder, image_size)


def _read_local(known, canonical, data_dir, size, looked):
    """Returns (fields, place) of the first place that has it, or None."""
    lacking = None
    for kind, place in _roots(known, canonical, data_dir):
        is_folder = kind in ("tfds", "idx")
        looked[place if is_folder else os.path.dirname(place)] = True
        if kind == "tfds":
            found = tfds.find_prepared(known.tfds_name, place)
            if found is None:
                continue
            try:
                tfds.module()
            except EnvironmentLacksError as error:
                # Another form of the data may be there too.
                lacking = lacking or (found, error)
                continue
            return tfds.read(found, known.tfds_name, size), found
        if kind == "archive" and os.path.isfile(place):
            members.check_archive(
                place, known.archives[os.path.basename(place)]
            )
            return _read_archive(known, place, size), place
        if kind == "folder" and os.path.isdir(place):
            return _read_archive(known, place, size), place
        if kind == "idx" and idx.find(place):
            return idx.read(place, known.idx, known.class_names), place
        if kind == "npz" and os.path.isfile(place):
            return arrays.read(place), place
    if lacking is not None:
        raise EnvironmentLacksError(
            f"{lacking[0]} holds {canonical}, but {lacking[1]}"
        ) from lacking[1]
    return None


def _roots(known, canonical, data_dir):
    """Lists (kind, file or folder) to look at, in order."""
    roots = []
    if data_dir is not None:
        below = [
            data_dir,
            os.path.join(data_dir, "downloads"),
            os.path.join(data_dir, "downloads", "manual"),
        ]
        roots.append(("tfds", data_dir))
        for folder in below:
            for kind, names in (
                ("archive", known.archives),
                ("folder", known.folders),
            ):
                roots += [(kind, os.path.join(folder, one)) for one in names]
        if known.idx:
            own = os.path.join(data_dir, canonical)
            roots += [("idx", folder) for folder in [own, *below]]
        for stem in dict.fromkeys((canonical, known.file_name)):
            roots.append(("npz", os.path.join(data_dir, f"{stem}.npz")))
    if known.system_folder:
        roots.append(("idx", known.system_folder))
    roots.append(("tfds", tfds.default_dir()))
    return roots


def _read_archive(known, path, size):
    if known.tfds_name == "caltech_birds2011":
        return cub.read(path, size)
    return cifar.read(path, known.tfds_name)


def _remedy(known):
    """Says which files would do, and where they go."""
    files = [*known.archives, f"{known.file_name}.npz"]
    if known.idx:
        files.insert(0, "its four IDX files")
    return f"Put {' or '.join(files)} in --data_dir"


def _finish(name, known, fields, source, image_size):
    """Makes the `ImageData`: constants, superclasses and size."""
    for part in ("images", "test_images"):
        fields[part] = resize.resize_all(fields[part], image_size)
    channels = fields["images"].shape[-1]
    if known.mean is not None and len(known.mean) == channels:
        fields["mean"], fields["std"] = known.mean, known.std
    if known.with_superclasses:
        fields.setdefault(
            "superclasses", superclasses_of(fields["class_names"])
        )
    elif "superclasses" not in fields:
        try:
            fields["superclasses"] = superclasses_of(fields["class_names"])
        except ConfigError:
            fields["superclasses"] = None
    return ImageData(
        name=name, protocol=known.protocol, source=str(source), **fields
    )
