"""Writing files so that nothing half-written stays behind."""

import contextlib
import os
import tempfile


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
