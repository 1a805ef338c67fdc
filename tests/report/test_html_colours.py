import re

import numpy as np
import pytest


def colours(style):
    """Returns the two schemes of the style sheet: dicts of variables."""
    pairs = re.findall(r"(--\w+): light-dark\((#\w+), (#\w+)\)", style)
    return [{name: pair[i] for name, *pair in pairs} for i in (0, 1)]


def mixed(over, under, share):
    return [share * o + (1 - share) * u for o, u in zip(rgb(over), rgb(under))]


def rgb(colour):
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def contrast(one, other):
    """Returns the contrast of two colours as WCAG 2 defines it."""
    lights = []
    for colour in (one, other):
        parts = rgb(colour) if isinstance(colour, str) else colour
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (part / 255 for part in parts)
        ]
        lights.append(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_contrast_is_as_wcag_has_it():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_can_be_read_in_both_schemes(text, scheme):
    found = colours(text)[scheme]
    for ground in ("--page", "--card", "--soft", "--hover"):
        for front in ("--ink", "--muted", "--accent"):
            assert contrast(found[front], found[ground]) >= 4.5
    for line in ("--c1", "--c2", "--c3", "--c4", "--c5"):
        assert contrast(found[line], found["--card"]) >= 3.0
    # The deepest cells of the matrix: 70 % of these colours.
    for cell in ("--same", "--other"):
        deep = mixed(found[cell], found["--card"], 0.7)
        assert contrast(found["--ink"], deep) >= 4.5
