"""The built-in data set: scikit-learn's 1,797 handwritten digits."""

import numpy as np

from alim_keras.data.candidate_sets import numbered_ids
from alim_keras.data.sources.known import DIGIT_CLASSES
from alim_keras.data.splits import stratified_subset
from alim_keras.errors import EnvironmentLacksError

_TEST_SIZE = 360


def read():
    """Reads the digits; 360 of them, stratified and always the same, test.

    The pixels, 0 to 16 in the original, are scaled to 0 to 255. The number
    in an id is the example's row in `sklearn.datasets.load_digits()`.

    Returns:
        Dict of the fields of `ImageData`.

    Raises:
        EnvironmentLacksError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise EnvironmentLacksError(
            "The built-in data set digits comes with scikit-learn: "
            "pip install scikit-learn"
        ) from error
    bunch = load_digits()
    images = np.round(bunch.images * (255.0 / 16.0)).astype(np.uint8)
    images, labels = images[..., None], bunch.target.astype(np.int64)
    test = stratified_subset(labels, _TEST_SIZE, seed=0)
    train = np.setdiff1d(np.arange(len(labels)), test)
    return {
        "images": images[train],
        "labels": labels[train],
        "ids": numbered_ids(train, "train"),
        "class_names": DIGIT_CLASSES,
        "test_images": images[test],
        "test_labels": labels[test],
        "test_ids": numbered_ids(test, "test"),
    }
