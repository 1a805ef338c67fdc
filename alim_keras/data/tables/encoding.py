"""What is said of text files that are not UTF-8."""

import codecs

from alim_keras.data.messages import one_line
from alim_keras.errors import DataError

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MEND = "save it as UTF-8, in Excel as 'CSV UTF-8'"


def not_utf8(path, error):
    """Returns the `DataError` about a file that was not to be decoded.

    Args:
        path: The file.
        error: The `UnicodeDecodeError`.
    """
    start = bytes(error.object[:4096])
    if start.startswith(_MARKS) or b"\0" in start:
        return DataError(f"{path}: is UTF-16, not UTF-8 text; {_MEND}")
    return DataError(f"{path}: is not UTF-8 text ({one_line(error)}); {_MEND}")


def check_no_nul(path, text):
    """Refuses text with NUL characters, which UTF-16 without a mark has."""
    if "\0" in text:
        raise DataError(
            f"{path}: holds NUL characters, so it is UTF-16 or no text file; "
            f"{_MEND}"
        )
