"""The weak and the strong view of a batch of feature vectors."""

import functools
import math

import keras
import numpy as np

from alim_keras import draws
from alim_keras.augment import arguments
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

_numbers = functools.partial(arguments.numbers, "FeatureViews")


@keras.saving.register_keras_serializable(package="alim_keras")
class FeatureViews:
    """Weak and strong random views of feature vectors, as `Views` of images.

    The weak view is the vector itself: methods for partial labels train on
    tabular data without augmentation. The strong view, for methods that
    compare two views, replaces a random share of the features by their means
    and adds normal noise to the others.

    What an example gets depends on the seed, the epoch, the example's index
    and the stream only, and there is no state; both methods work eagerly, in
    a compiled step, under XLA and in `tf.data.Dataset.map`.

    Args:
        mean: Number or d numbers, the features' means, divided by 255 as
            everywhere in the package, so that `ImageData.mean` and a model's
            `mean` fit. Defaults to `0.0`.
        std: Positive number or d numbers, the features' standard deviations,
            likewise. Defaults to `1 / 255`: features that have been
            standardised.
        seed: Non-negative integer below 2**32. Defaults to `0`.
        dropout: Float in [0, 1], the share of features that a strong view
            replaces by their means. Defaults to `0.2`.
        noise: Non-negative float, the standard deviation of a strong view's
            noise, in units of each feature's own. Defaults to `0.1`.
        weak_noise: Non-negative float, the same for the weak view. Defaults
            to `0.0`.

    Raises:
        ConfigError: If an argument is outside its range.

    Example:

    >>> features = np.random.default_rng(0).normal(3.0, 2.0, (8, 1, 1, 5))
    >>> mean, std = alim_keras.data.sources.channel_statistics(features)
    >>> views = alim_keras.augment.FeatureViews(mean, std, seed=1)
    >>> views.strong(features, epoch=0, index=np.arange(8)).shape
    (8, 1, 1, 5)
    """

    def __init__(
        self,
        mean=0.0,
        std=1.0 / 255.0,
        seed=0,
        dropout=0.2,
        noise=0.1,
        weak_noise=0.0,
    ):
        self.mean = np.asarray(mean, float).tolist()
        self.std = np.asarray(std, float).tolist()
        self.seed = _numbers("seed", seed, None, 0, 2**32 - 1, whole=True)
        self.dropout = _numbers("dropout", dropout, None, 0, 1)
        self.noise = _numbers("noise", noise, None, 0, math.inf)
        self.weak_noise = _numbers("weak_noise", weak_noise, None, 0, math.inf)
        if not (
            np.all(np.isfinite(self.mean))
            and np.all(np.isfinite(self.std))
            and np.all(np.asarray(self.std) > 0)
            and {np.ndim(self.mean), np.ndim(self.std)} <= {0, 1}
        ):
            raise ConfigError(
                "FeatureViews: `mean` and `std` are expected to be numbers, "
                "one or one for each feature, finite, and `std` positive. "
                f"Received: mean={self.mean}, std={self.std}"
            )

    def weak(self, images, epoch, index, stream="weak"):
        """The weak view of each vector.

        Args:
            images: Numbers `(B, 1, 1, d)` or `(B, d)`, in the features' own
                units. Only B may be unknown when a graph is traced.
            epoch: Integer scalar, a number or a tensor.
            index: Integer tensor `(B,)`, the examples' places in the data
                set.
            stream: String. Another name gives another, independent view.
                Defaults to `"weak"`.

        Returns:
            Float32 tensor of the same shape.

        Raises:
            DataError: If `images` has another rank or number of features.
        """
        features = self._checked(images)
        return self._noisy(features, self.weak_noise, epoch, index, stream)

    def strong(self, images, epoch, index, stream="strong"):
        """The strong view of each vector; see `weak`."""
        features = self._checked(images)
        result = self._noisy(features, self.noise, epoch, index, stream)
        if self.dropout == 0:
            return result
        draw = self._draw(features, epoch, index, f"{stream}/dropout")
        return keras.ops.where(
            draw < self.dropout, self._scaled(self.mean), result
        )

    def _noisy(self, features, noise, epoch, index, stream):
        if noise == 0:
            return features
        draw = self._draw(features, epoch, index, f"{stream}/noise")
        # Never -1, where the inverse is infinite; 1 is not drawn.
        level = keras.ops.maximum(2.0 * draw - 1.0, 2.0**-23 - 1.0)
        normal = math.sqrt(2.0) * keras.ops.erfinv(level)
        return features + noise * self._scaled(self.std) * normal

    def _draw(self, features, epoch, index, stream):
        """Uniform numbers, one for each feature, in the features' shape."""
        count = features.shape[-1]
        draw = draws.uniform(self.seed, epoch, index, count, stream)
        return keras.ops.reshape(draw, (-1, *features.shape[1:]))

    def _scaled(self, values):
        """Means or deviations in the features' own units."""
        return keras.ops.convert_to_tensor(
            255.0 * np.asarray(values), "float32"
        )

    def _checked(self, images):
        images = keras.ops.convert_to_tensor(images)
        shape = tuple(images.shape)
        if len(shape) not in (2, 4) or set(shape[1:-1]) - {1} or not shape[-1]:
            raise DataError(
                "FeatureViews: feature vectors are expected in the shape "
                f"(batch, 1, 1, features). Received: shape={shape}"
            )
        for name in ("mean", "std"):
            size = np.size(getattr(self, name))
            if size not in (1, shape[-1]):
                raise DataError(
                    f"FeatureViews: `{name}` is of {size} features, and the "
                    f"vectors have {shape[-1]}. Received: shape={shape}"
                )
        return keras.ops.cast(images, "float32")

    def get_config(self):
        """The constructor's arguments, in plain Python types."""
        return {
            "mean": self.mean,
            "std": self.std,
            "seed": self.seed,
            "dropout": self.dropout,
            "noise": self.noise,
            "weak_noise": self.weak_noise,
        }

    @classmethod
    def from_config(cls, config):
        """Builds the same views from `get_config`'s dictionary."""
        return cls(**config)
