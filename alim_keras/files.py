"""Writing files wholly, or not at all."""

import contextlib
import hashlib
import os
import secrets
import shutil

from alim_keras.errors import ConfigError

# Files under this prefix are being written, or were when a process was killed.
PARTIAL = ".partial-"


def check_is_no_folder(path, name="path"):
    """Raises `ConfigError` where `path`, by its caller's name, is a folder."""
    if os.path.isdir(path):
        raise ConfigError(
            f"{name} must be the name of a file, and this is a folder. "
            f"Received: {name}={os.fspath(path)}"
        )


def write_atomically(path, content):
    """Writes `str`, as UTF-8, or `bytes` to `path`; see `replacing`."""
    if isinstance(content, str):
        content = content.encode("utf-8")
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path):
    """Yields a binary file that takes the place of `path` after the block.

    An error in the block leaves `path` as it was. Its folder is made if
    missing; file and folder are on the disk when this returns.
    """
    check_is_no_folder(path)
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    partial = os.path.join(folder, PARTIAL + secrets.token_hex(8))
    try:
        with open(partial, "xb") as file:
            yield file
        move_written(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def move_written(path, target):
    """Gives a written file another name in its folder, safe from a crash."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    os.replace(path, target)
    # The folder's names, too, where the system can.
    with contextlib.suppress(OSError):
        folder = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_partial(folder):
    """Removes what a killed process left half-written in a folder.

    Only where no other process writes: behind the lock of a run folder.
    """
    for entry in list(os.scandir(folder)):
        if entry.name.startswith(PARTIAL):
            is_folder = entry.is_dir(follow_symlinks=False)
            remove = shutil.rmtree if is_folder else os.unlink
            remove(entry.path)


def digest(path):
    """Returns the SHA-256 of a file's content, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_folder():
    """Returns the folder in which Keras keeps weights that it fetched."""
    home = os.path.expanduser(os.environ.get("KERAS_HOME", "~/.keras"))
    return os.path.join(home, "models")
