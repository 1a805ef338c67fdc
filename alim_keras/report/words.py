"""How the report writes numbers."""

import math
import numbers
import unicodedata

UNKNOWN = "-"


def known(value):
    """Whether a value says something: not None, NaN or an infinite number."""
    if value is None:
        return False
    return not isinstance(value, numbers.Real) or math.isfinite(value)


def count(value):
    """Writes a whole number with thousands separators; "-" if not known.

    >>> count(50000), count(None)
    ('50,000', '-')
    """
    return f"{int(round(float(value))):,}" if known(value) else UNKNOWN


def number(value, digits=3):
    """Writes a number with that many significant digits; "-" if not known.

    >>> number(0.034567), number(1234.5), number(float("nan"))
    ('0.0346', '1,234', '-')
    """
    if not known(value):
        return UNKNOWN
    value = float(value)
    if value == 0.0:
        return "0"
    whole = math.floor(math.log10(abs(value))) + 1
    if whole < -3 or whole > 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - whole)}f}"


def percent(share):
    """Writes a share as a percentage; "-" if not known.

    A share that is not quite 0 or 1 is never written as if it were. The space
    before the sign does not break.

    >>> percent(0.1234), percent(0.0), percent(0.00001), percent(0.99999)
    ('12.3 %', '0 %', '<0.1 %', '>99.9 %')
    """
    if not known(share):
        return UNKNOWN
    share = float(share)
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
    if 0.0 < share < 0.0005:
        return "<0.1\N{NO-BREAK SPACE}%"
    if 0.9995 <= share < 1.0:
        return ">99.9\N{NO-BREAK SPACE}%"
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def plural(value, one, many=None):
    """Writes a count with its noun.

    >>> plural(1, "set"), plural(2000, "set")
    ('1 set', '2,000 sets')
    """
    noun = one if int(value) == 1 else many or f"{one}s"
    return f"{count(value)} {noun}"


def isolated(name):
    """Keeps a name of right-to-left script from turning its surroundings.

    >>> isolated("cat")
    'cat'
    """
    name = str(name)
    if any(unicodedata.bidirectional(one) in ("R", "AL") for one in name):
        isolate, end = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
        return f"{isolate}{name}{end}"
    return name


def listed(names, most=None):
    """Writes names with commas; beyond `most` of them how many are left.

    >>> listed(["cat", "dog", "owl"], 2)
    'cat, dog + 1 more'
    """
    names = [isolated(name) for name in names]
    if most is None or len(names) <= most:
        return ", ".join(names) or UNKNOWN
    return f"{', '.join(names[:most])} + {len(names) - most} more"
