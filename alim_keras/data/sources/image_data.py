"""`ImageData`: a training and a test set of images or feature vectors."""

import dataclasses

import numpy as np

from alim_keras.data.checks import validate_labels
from alim_keras.data.image_checks import validate_features
from alim_keras.data.image_checks import validate_images
from alim_keras.data.long_tail import long_tailed_subset
from alim_keras.data.messages import first_five
from alim_keras.data.seeding import generator
from alim_keras.data.splits import stratified_subset
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

# Images are summed in parts of about this many numbers.
_BLOCK = 1 << 24
# So many images on disk stand for all of them.
_SAMPLE = 2000
# A true label that is not known.
UNKNOWN = -1


@dataclasses.dataclass(frozen=True, eq=False)
class ImageData:
    """A data set: what is trained on, and what is tested on.

    Args:
        name: String, what it was asked for by.
        images: uint8 `(num_train, height, width, channels)`, in [0, 255]; or
            `DiskImages`, which are decoded as they are needed.
        labels: int64 `(num_train,)`, the true classes, -1 where they are not
            known; None if none is. Training does not use them; simulated
            candidate sets and reports do.
        ids: Strings `(num_train,)`, unique, such as `"train_00017"`.
        class_names: Tuple of strings `(num_classes,)`.
        test_images: uint8 `(num_test, height, width, channels)`. There may be
            none.
        test_labels: int64 `(num_test,)`.
        test_ids: Strings `(num_test,)`.
        mean: Tuple of floats, one per channel, in units of [0, 1].
        std: Tuple of floats, one per channel, in units of [0, 1].
        superclasses: int64 `(num_classes,)`, or None if there are none.
        protocol: String, the protocol the published tables use for it.
        source: String, where it was read from.
        kind: `"images"`, or `"features"`: `images` and `test_images` are then
            feature vectors, float32 `(n, 1, 1, d)`, so that a channel is a
            feature.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    class_names: tuple
    test_images: np.ndarray
    test_labels: np.ndarray
    test_ids: np.ndarray
    mean: tuple = None
    std: tuple = None
    superclasses: np.ndarray = None
    protocol: str = "flip"
    source: str = ""
    kind: str = "images"

    def __post_init__(self):
        names = tuple(str(name) for name in self.class_names)
        object.__setattr__(self, "class_names", names)
        for split, prefix in (("train", ""), ("test", "test_")):
            self._check_split(split, prefix, len(names))
        if self.images.shape[1:] != self.test_images.shape[1:]:
            raise DataError(
                f"{self.source}: training and test images differ in shape. "
                f"Received: {self.images.shape[1:]} and "
                f"{self.test_images.shape[1:]}"
            )
        if self.mean is None or self.std is None:
            features = self.kind == "features"
            measure = feature_statistics if features else channel_statistics
            mean, std = measure(self.images)
            object.__setattr__(self, "mean", mean)
            object.__setattr__(self, "std", std)

    def _check_split(self, split, prefix, num_classes):
        where = f"{self.source} ({split})"
        ids = np.asarray(getattr(self, f"{prefix}ids"), str)
        images = getattr(self, f"{prefix}images")
        labels = getattr(self, f"{prefix}labels")
        num_labels = len(ids) if labels is None else len(labels)
        if not len(images) == num_labels == len(ids):
            raise DataError(
                f"{where}: images, labels and ids must be equally many. "
                f"Received: {len(images)} images, {num_labels} labels, "
                f"{len(ids)} ids"
            )
        values, counts = np.unique(ids, return_counts=True)
        if np.any(counts > 1):
            raise DataError(
                f"{where}: {np.sum(counts > 1)} ids occur more than once: "
                f"{first_five(values[counts > 1])}"
            )
        try:
            # Images on disk were looked at by whoever listed them.
            if len(images) and not hasattr(images, "read"):
                of_features = self.kind == "features"
                check = validate_features if of_features else validate_images
                images = check(images, ids)
            check = validate_labels if prefix else _with_unknown
            labels = check(labels, num_classes, ids)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        object.__setattr__(self, f"{prefix}ids", ids)
        object.__setattr__(self, f"{prefix}images", images)
        object.__setattr__(self, f"{prefix}labels", labels)

    @property
    def num_classes(self):
        """Integer C."""
        return len(self.class_names)

    @property
    def all_labels_known(self):
        """Whether every training example has a true label."""
        return self.labels is not None and UNKNOWN not in self.labels

    def subset(self, size, seed=0):
        """Returns the data with a part of the training set.

        The part is stratified if all true labels are known, and random if
        not. `mean` and `std` stay those of the whole set; the test set stays.

        Args:
            size: Integer, how many training examples to keep.
            seed: Integer >= 0.
        """
        if self.all_labels_known:
            return self.select(stratified_subset(self.labels, size, seed))
        count = len(self.ids)
        if size > count:
            raise ConfigError(
                f"`size` must be from 1 to the {count} examples there are. "
                f"Received: size={size}"
            )
        chosen = generator(seed, "subset").permutation(count)[:size]
        return self.select(np.sort(chosen))

    def long_tailed(self, ratio, seed=0):
        """Returns the data with training classes of falling size.

        As `subset`; see `alim_keras.data.long_tailed_subset`.

        Args:
            ratio: Float >= 1, the first class's size over the last one's.
            seed: Integer >= 0.
        """
        if not self.all_labels_known:
            raise ConfigError(
                "A long tail is cut by true labels, and not all of "
                f"{self.name}'s are known. Received: imbalance={ratio}"
            )
        return self.select(
            long_tailed_subset(self.labels, self.num_classes, ratio, seed)
        )

    def select(self, keep):
        """Returns the data with the training examples at these places."""
        return dataclasses.replace(
            self,
            images=self.images[keep],
            labels=None if self.labels is None else self.labels[keep],
            ids=self.ids[keep],
        )


def _with_unknown(labels, num_classes, ids):
    """Returns labels as int64, or None where not one of them is known."""
    if labels is None:
        return None
    labels = np.asarray(labels)
    known = np.flatnonzero(labels != UNKNOWN)
    if not len(known) and len(labels):
        return None
    if len(known) == len(labels):
        return validate_labels(labels, num_classes, ids)
    checked = np.full(labels.shape, UNKNOWN, np.int64)
    checked[known] = validate_labels(labels[known], num_classes, ids[known])
    return checked


def channel_statistics(images):
    """Returns mean and standard deviation per channel, in units of [0, 1].

    Args:
        images: uint8 or float `(n, height, width, channels)`, in [0, 255].

    Returns:
        Two tuples of floats. A constant channel has a deviation of 1, so
        that dividing by it is safe.

    Example:

    >>> channel_statistics(np.array([[[[0], [255]]]], np.uint8))
    ((0.5,), (0.5,))
    """
    if hasattr(images, "read"):
        images = images.read(sample_places(len(images)))
    step = max(1, _BLOCK // max(1, int(np.prod(images.shape[1:]))))
    sums = np.zeros((2, images.shape[-1]))
    for start in range(0, len(images), step):
        sums += _sums(images[start : start + step])
    mean, square = sums / np.prod(images.shape[:3])
    std = np.sqrt(np.maximum(square - np.square(mean), 0.0))
    std = np.where(std > 1e-6, std, 1.0)
    return tuple(mean.tolist()), tuple(std.tolist())


def sample_places(count):
    """Returns which of `count` images stand for all, evenly spread, int64."""
    places = np.linspace(0, max(count - 1, 0), min(count, _SAMPLE))
    return places.astype(np.int64)


def feature_statistics(features):
    """Returns mean and standard deviation per feature, in units of 255.

    The unit is that of images, which models divide by 255.

    Args:
        features: float32 `(n, 1, 1, d)`.

    Returns:
        Two tuples of floats. A constant feature has a deviation of 1 in its
        own units.
    """
    values = features.reshape(len(features), -1).astype(np.float64)
    mean, std = values.mean(axis=0), values.std(axis=0)
    std = np.where(std > 1e-6 * np.maximum(np.abs(mean), 1e-30), std, 1.0)
    return tuple((mean / 255.0).tolist()), tuple((std / 255.0).tolist())


def _sums(images):
    """Returns the sums of pixels and of squared pixels, `(2, channels)`."""
    planes = np.moveaxis(images, -1, 0).reshape(images.shape[-1], -1)
    if images.dtype == np.uint8:
        # Counting the 256 values is quicker than summing floats, and exact.
        counts = np.stack([np.bincount(one, minlength=256) for one in planes])
        levels = np.arange(256) / 255.0
        return np.stack([counts @ levels, counts @ np.square(levels)])
    planes = planes.astype(np.float64) / 255.0
    return np.stack([planes.sum(1), np.square(planes).sum(1)])
