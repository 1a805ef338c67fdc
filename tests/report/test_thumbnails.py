import base64
import io

import numpy as np
import pytest
from PIL import Image

from alim_keras.report import thumbnails


def decoded(uri):
    head, _, data = uri.partition(",")
    assert head == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype("uint8")


@pytest.mark.parametrize("shape", [(32, 32, 3), (28, 20, 3), (64, 1, 3)])
def test_tiny_images_keep_every_pixel(shape):
    image = noise(*shape)
    uri, width, height = thumbnails.data_uri(image)
    assert (height, width) == shape[:2]
    np.testing.assert_array_equal(decoded(uri), image)
    assert thumbnails.is_tiny(width, height)


@pytest.mark.parametrize("shape", [(28, 28), (28, 28, 1), (28, 28, 2)])
def test_grey_images(shape):
    image = noise(*shape)
    found = decoded(thumbnails.data_uri(image)[0])
    first = image if image.ndim == 2 else image[:, :, 0]
    np.testing.assert_array_equal(found, np.stack([first] * 3, axis=2))


def test_transparent_images_stay_so():
    image = noise(8, 8, 4)
    image[..., 3] = 255
    image[0, 0] = 0
    found = decoded(thumbnails.data_uri(image)[0])
    np.testing.assert_array_equal(found, image)


def test_large_images_are_scaled_down():
    image = np.zeros((600, 300, 3), "uint8")
    image[:300] = (200, 30, 60)
    uri, width, height = thumbnails.data_uri(image)
    assert (width, height) == (128, 256)
    found = decoded(uri)
    assert found.shape == (256, 128, 3)
    # The upper half is red and the lower black, up to WebP's loss.
    assert np.abs(found[64, 64].astype(int) - (200, 30, 60)).max() < 12
    assert found[192, 64].max() < 12
    assert not thumbnails.is_tiny(300, 600)
    assert len(uri) < 3000
    assert thumbnails.data_uri(image, 96)[1:] == (48, 96)


def test_images_between_are_not_enlarged():
    assert thumbnails.data_uri(noise(128, 100, 3))[1:] == (100, 128)


def test_the_same_image_gives_the_same_text():
    image = noise(100, 100, 3)
    assert thumbnails.data_uri(image) == thumbnails.data_uri(image.copy())


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((8, 8, 3), "float32"),
        np.zeros((8,), "uint8"),
        np.zeros((0, 8, 3), "uint8"),
        np.zeros((1, 8, 8, 3), "uint8"),
    ],
)
def test_what_is_no_image_is_refused(image):
    with pytest.raises(ValueError, match="must be uint8 .*Received: dtype="):
        thumbnails.data_uri(image)
