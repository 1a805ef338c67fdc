"""Pictures as data URIs for the report."""

import base64
import io

import numpy as np

from alim_keras.errors import DataError

# Pictures are stored with at most this many pixels a side.
LARGEST = 256
# Images up to this size are kept as they are; the page enlarges them with
# sharp pixels.
TINY = 64


def data_uri(image, size=LARGEST):
    """Encodes one image for an `<img>` element.

    Images of at most 64 pixels a side are stored without loss, larger ones
    as WebP of quality 78, scaled down to `size` where they exceed it.

    Args:
        image: uint8 array `(H, W, channels)` or `(H, W)`; channels are 1
            (grey), 3 (RGB) or 4 (RGBA), any other number shows the first as
            grey.
        size: Integer, pixels of the longer side at most. Defaults to `256`.

    Returns:
        Tuple of the data URI, its width and its height in pixels.

    Raises:
        DataError: For another dtype or shape.

    Example:

    >>> image = np.zeros((28, 28, 1), "uint8")
    >>> uri, width, height = alim_keras.report.thumbnails.data_uri(image)
    >>> uri[:23], width, height
    ('data:image/webp;base64,', 28, 28)
    """
    from PIL import Image

    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or not image.size:
        raise DataError(
            "A picture must be uint8 of shape (H, W, channels). "
            f"Received: dtype={image.dtype}, shape={image.shape}"
        )
    if image.ndim == 3 and image.shape[2] not in (3, 4):
        image = image[:, :, 0]
    picture = Image.fromarray(image)
    tiny = is_tiny(*picture.size)
    picture.thumbnail((size, size), Image.Resampling.LANCZOS)
    if picture.mode == "L":
        picture = picture.convert("RGB")
    out = io.BytesIO()
    # A fixed method, so that the same picture gives the same bytes.
    picture.save(out, "WEBP", lossless=tiny, quality=78, method=4)
    text = base64.b64encode(out.getvalue()).decode("ascii")
    return f"data:image/webp;base64,{text}", *picture.size


def is_tiny(width, height):
    """Whether an image is so small that its pixels are shown as squares."""
    return max(width, height) <= TINY
