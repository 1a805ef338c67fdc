"""The weak and the strong view of a batch of feature vectors."""

import dataclasses
import math

import keras
import numpy as np

from alim_keras.augment.views import RandomViews
from alim_keras.augment.views import number
from alim_keras.errors import DataError
from alim_keras.errors import check_number


@keras.saving.register_keras_serializable(package="alim_keras")
@dataclasses.dataclass(eq=False)
class FeatureViews(RandomViews):
    """Weak and strong random views of feature vectors, as `Views` of images.

    The weak view is the vector itself: methods for partial labels train on
    tabular data without augmentation. The strong view, for methods that
    compare two views, replaces a random share of the features by their means
    and adds normal noise to the others.

    The vectors are `(B, 1, 1, d)` or `(B, d)`, in units of their own.

    Args:
        mean: Number or d numbers, the features' means, divided by 255 as a
            model's `mean` is. Defaults to `0.0`.
        std: Positive number or d numbers, the features' standard deviations,
            likewise. Defaults to `1 / 255`: standardised features.
        seed: As of `Views`.
        dropout: Float in [0, 1], the share of features that a strong view
            replaces by their means. Defaults to `0.2`.
        noise: Non-negative float, the standard deviation of a strong view's
            noise, in units of each feature's own. Defaults to `0.1`.

    Raises:
        ConfigError: If an argument is outside its range.

    Example:

    >>> features = np.random.default_rng(0).normal(3.0, 2.0, (8, 1, 1, 5))
    >>> mean, std = features.mean(axis=0).ravel(), features.std(axis=0).ravel()
    >>> views = alim_keras.augment.FeatureViews(mean / 255, std / 255, seed=1)
    >>> views.strong(features, epoch=0, index=np.arange(8)).shape
    (8, 1, 1, 5)
    """

    mean: float | list = 0.0
    std: float | list = 1.0 / 255.0
    seed: int = number(0, low=0, high=2**32 - 1, whole=True)
    dropout: float = number(0.2, low=0, high=1)
    noise: float = number(0.1, low=0)

    def __post_init__(self):
        super().__post_init__()
        for name, low in (("mean", -math.inf), ("std", 0.0)):
            value = np.asarray(getattr(self, name), float).tolist()
            setattr(self, name, value)
            each = value if isinstance(value, list) else [value]
            check_number(name, each, low, low_open=True, count=len(each))

    def make_weak(self, features, draw):
        return features

    def make_strong(self, features, draw):
        # Never -1, where the inverse is infinite; 1 is not drawn.
        level = 2.0 * _each(features, draw, "/noise") - 1.0
        level = keras.ops.maximum(level, 2.0**-23 - 1.0)
        normal = math.sqrt(2.0) * keras.ops.erfinv(level)
        return keras.ops.where(
            _each(features, draw, "/dropout") < self.dropout,
            _scaled(self.mean),
            features + self.noise * _scaled(self.std) * normal,
        )

    def _checked(self, images):
        images = keras.ops.convert_to_tensor(images)
        shape = tuple(images.shape)
        known = {np.size(self.mean), np.size(self.std)} - {1}
        is_vector = len(shape) in (2, 4) and set(shape[1:-1]) <= {1}
        if not is_vector or not shape[-1] or known - {shape[-1]}:
            raise DataError(
                "FeatureViews: vectors are expected in the shape (batch, 1, 1, "
                "features), of as many features as `mean` and `std`, "
                f"{known or 'any'}. Received: shape={shape}"
            )
        return keras.ops.cast(images, "float32")


def _each(features, draw, part):
    """Uniform numbers, one for each feature, in the features' shape."""
    drawn = draw(features.shape[-1], part)
    return keras.ops.reshape(drawn, (-1, *features.shape[1:]))


def _scaled(values):
    """Means or deviations in the features' own units."""
    return keras.ops.convert_to_tensor(255.0 * np.asarray(values), "float32")
