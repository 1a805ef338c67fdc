"""Files inside an official archive, or in the folder it unpacks to."""

import gzip
import hashlib
import os
import tarfile
import zlib

from alim_keras.data.messages import one_line
from alim_keras.errors import DataError

# What a damaged archive raises, depending on where the damage is.
DAMAGE = (
    tarfile.TarError,
    gzip.BadGzipFile,
    EOFError,
    zlib.error,
    OSError,
)


def check_archive(path, expected):
    """Compares an archive with its published checksum.

    Args:
        path: String.
        expected: String, "md5:..." or "sha256:...".

    Raises:
        DataError: The archive is another one, or was cut short.
    """
    kind, _, wanted = expected.partition(":")
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, kind).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    if found != wanted:
        raise DataError(
            f"{path}: is not the official archive, or was cut short; fetch "
            "it again, or convert your own version to an .npz file. "
            f"Received: {kind} {found}, {os.path.getsize(path)} bytes; "
            f"expected {kind} {wanted}"
        )


def walk(path, wanted):
    """Yields (name, contents) of the wanted files, in the stored order.

    Args:
        path: String, a tar archive, or a folder unpacked from one.
        wanted: Function of a name such as `"cifar-10-batches-py/test_batch"`
            that says whether to read the file.

    Raises:
        DataError: The archive is damaged.
    """
    if os.path.isdir(path):
        yield from _walk_folder(path, wanted)
        return
    try:
        with tarfile.open(path, "r|*") as archive:
            for entry in archive:
                name = entry.name.removeprefix("./")
                if entry.isfile() and wanted(name):
                    yield name, archive.extractfile(entry).read()
    except DAMAGE as error:
        raise DataError(
            f"{path}: the archive is damaged or was cut short "
            f"({one_line(error)}); fetch it again"
        ) from error


def _walk_folder(path, wanted):
    parent = os.path.dirname(os.path.abspath(path))
    for folder, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            full = os.path.join(folder, file)
            name = os.path.relpath(full, parent).replace(os.sep, "/")
            if wanted(name):
                with open(full, "rb") as opened:
                    yield name, opened.read()


def read(path, names):
    """Returns the contents of the named files as a dict.

    Raises:
        DataError: A file is missing; its name is in the message.
    """
    found = dict(walk(path, set(names).__contains__))
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(
            f"{path}: is another archive than its name says, "
            f"{len(missing)} of {len(names)} files are missing: "
            f"{', '.join(missing[:5])}"
        )
    return found
