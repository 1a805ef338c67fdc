"""Checks of what views are given."""

import math

import keras

from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


def checked_images(owner, images):
    """The images as a tensor, if they have a shape that views can use.

    Args:
        owner: String, the class of the views, for the message.
        images: Tensor `(B, h, w, C)`; only B may be unknown.

    Raises:
        DataError: If the shape is another.
    """
    images = keras.ops.convert_to_tensor(images)
    shape = tuple(images.shape)
    if len(shape) != 4 or shape[3] not in (1, 3) or None in shape[1:]:
        raise DataError(
            f"{owner}: `images` is expected to have the shape (batch, height, "
            "width, channels) with known height and width and 1 or 3 "
            f"channels, channels last. Received: images.shape={shape}"
        )
    return images


def numbers(
    owner,
    name,
    value,
    count,
    low,
    high,
    whole=False,
    optional=False,
    above=False,
):
    """Checks one number (`count` None) or a tuple of `count` of them.

    Args:
        owner: String, the class of the views, for the message.
        name: String, the argument's name, for the message.
        value: What the user gave.
        count: Integer or `None`.
        low: Number, the smallest allowed value.
        high: Number, the largest allowed value.
        whole: Boolean. Integers only.
        optional: Boolean. `None` is allowed.
        above: Boolean. `low` itself is not allowed.

    Returns:
        An int or float, or a tuple of them, or `None`.

    Raises:
        ConfigError: If the value does not fit.
    """
    if value is None and optional:
        return None
    kind = int if whole else float
    expected = ("a whole number" if whole else "a number") + (
        f" above {low}" if above else f" from {low}"
    )
    if high < math.inf:
        expected += f" up to {high}"
    if count:
        expected = f"{count} values, each {expected}"
    try:
        given = list(value) if count else [value]
        result = tuple(kind(item) for item in given)
        sound = len(given) == (count or 1) and all(
            number == item
            and low <= number <= high
            and not (above and number == low)
            for number, item in zip(result, given)
        )
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise ConfigError(
            f"{owner}: `{name}` is expected to be {expected}"
            f"{', or None' if optional else ''}. Received: {name}={value!r}"
        )
    return result if count else result[0]
