"""Amounts of memory on the command line."""

import pytest

from alim_keras.cli import kinds


@pytest.mark.parametrize(
    "text, size",
    [
        ("8GiB", 8 * 2**30),
        ("8gib", 8 * 2**30),
        ("1.5 MiB", 3 * 2**19),
        ("500MB", 500 * 10**6),
        ("2k", 2000),
        ("64KiB", 2**16),
        ("1T", 10**12),
        ("12345", 12345),
        ("12345B", 12345),
        (12345, 12345),
    ],
)
def test_sizes_are_bytes(text, size):
    assert kinds.Size().parse(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-1GiB", "GiB", "8 XiB", "8GiBs", "nan", "inf", "1e9"]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="8GiB"):
        kinds.Size().parse(text)
