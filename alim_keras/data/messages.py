"""The warning class and the wording of messages about data."""

import difflib


class DataWarning(UserWarning):
    """Data that can be used but looks as if it were not what was meant."""


def first_five(items):
    """Returns up to five items as text, with "..." if there are more."""
    text = ", ".join(str(item) for item in items[:5])
    return text + ", ..." if len(items) > 5 else text


def first_rows(rows, ids=None):
    """Names up to five rows, by id where there are ids."""
    if ids is None:
        return "rows " + first_five([int(row) for row in rows])
    return "ids " + first_five([f"{ids[row]} (row {row})" for row in rows[:6]])


def one_line(error):
    """Returns the first line of an exception's text, or its class."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def nearest(name, known, count=3):
    """Returns ", did you mean ...?" with near matches, or an empty string."""
    lowered = {str(one).lower(): str(one) for one in known}
    found = difflib.get_close_matches(
        str(name).lower(), list(lowered), n=count, cutoff=0.6
    )
    if not found:
        return ""
    return "; did you mean " + " or ".join(lowered[one] for one in found) + "?"
