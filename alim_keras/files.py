"""Writing files so that nothing half-written stays behind."""

import contextlib
import os
import tempfile

from alim_keras.errors import ConfigError


def check_is_no_folder(path, name="path"):
    """Raises `ConfigError` where a file is to be written and a folder is.

    Args:
        path: The file to write.
        name: What the caller calls it, such as `"--out"`.
    """
    if os.path.isdir(path):
        raise ConfigError(
            f"{name} must be the name of a file, and this is a folder. "
            f"Received: {name}={os.fspath(path)}"
        )


def write_atomically(path, content):
    """Writes text or bytes to `path`: wholly, or not at all.

    Args:
        path: File to write; its folder is made if missing.
        content: `str` (written as UTF-8) or `bytes`.
    """
    if isinstance(content, str):
        content = content.encode("utf-8")
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path):
    """Opens a file that takes the place of `path` once the block is done.

    For what is written part by part; an error in the block leaves `path` as
    it was.

    Args:
        path: File to write; its folder is made if missing.

    Yields:
        A binary file.
    """
    check_is_no_folder(path)
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=folder, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp's files are private; give the mode a plain open would.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, 0o666 & ~umask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
