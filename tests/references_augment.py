"""Slow, plain versions of the augmentation, one image at a time."""

import itertools
import math

import keras
import numpy as np
from matplotlib import colors
from PIL import Image
from PIL import ImageOps
from scipy import ndimage

LUMA = np.array([0.299, 0.587, 0.114])


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def random_images(*shape):
    """Noise, the same for the same shape."""
    return np.random.default_rng(shape).integers(0, 256, shape).astype("uint8")


def smooth_images(count, *shape):
    """Pictures of blobs: neighbouring pixels are similar, as in photographs."""
    images = random_images(count, 7, 7, shape[2]).astype("float32")
    images = keras.ops.image.resize(images, shape[:2], "bicubic")
    return np.clip(to_numpy(images), 0, 255).astype("uint8")


def crop_box(draws, size, scale):
    """torchvision's rule; returns left, top, width, height."""
    height, width = size
    ratio = 3 / 4, 4 / 3
    for attempt in range(10):
        area = scale[0] + (scale[1] - scale[0]) * draws[attempt]
        area *= height * width
        low, high = math.log(ratio[0]), math.log(ratio[1])
        aspect = math.exp(low + (high - low) * draws[10 + attempt])
        w = round(math.sqrt(area * aspect))
        h = round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left = int(draws[20] * (width - w + 1))
            top = int(draws[21] * (height - h + 1))
            return left, top, w, h
    w, h = width, height
    if width / height < ratio[0]:
        h = round(width / ratio[0])
    elif width / height > ratio[1]:
        w = round(height * ratio[1])
    return (width - w) // 2, (height - h) // 2, w, h


def affine(image, box, size, flip=False, maps=()):
    """Crop, flip and then `maps` of six numbers each, the first one first.

    Bilinear, half-pixel centres, clamped at the border of the crop.
    """
    left, top, w, h = box
    rows, columns = size
    crop = image[top : top + h, left : left + w].astype("float64")
    y, x = np.indices(size) + 0.5
    for a, b, c, d, e, f in reversed(maps):
        x, y = a * x + b * y + c, d * x + e * y + f
    inside = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    x = columns - x if flip else x
    x, y = x * w / columns - 0.5, y * h / rows - 0.5
    planes = [
        ndimage.map_coordinates(plane, [y, x], order=1, mode="nearest")
        for plane in np.moveaxis(crop, -1, 0)
    ]
    return np.where(inside[..., None], np.stack(planes, -1), 0.0)


def operation_map(name, u, size):
    """The six numbers of a geometric operation with magnitude `u`."""
    value = 2 * u - 1
    if name == "Rotate":
        # PIL's `Image.rotate`: counter-clockwise about the centre.
        angle = math.radians(30 * value)
        cos, sin = math.cos(angle), math.sin(angle)
        y, x = size[0] / 2, size[1] / 2
        return cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y
    share = 0.3 * value
    return {
        "ShearX": (1, share, 0, 0, 1, 0),
        "ShearY": (1, 0, 0, share, 1, 0),
        "TranslateX": (1, 0, share * size[1], 0, 1, 0),
        "TranslateY": (1, 0, 0, 0, 1, share * size[0]),
    }[name]


def gray(image):
    return image @ LUMA if image.shape[2] == 3 else image[..., 0]


def blend(image, name, factor):
    """PIL's enhancement of that name."""
    other = {
        "Brightness": 0.0,
        "Color": gray(image)[..., None],
        "Contrast": gray(image).mean(),
        "Sharpness": smooth(image),
    }[name]
    return np.clip(other + factor * (image - other), 0, 255)


def hue(image, turns):
    if image.shape[2] == 1:
        return image
    hsv = colors.rgb_to_hsv(image / 255)
    hsv[..., 0] = (hsv[..., 0] + turns) % 1.0
    return 255 * colors.hsv_to_rgb(hsv)


def jitter(image, draws):
    """`draws` are whether, the order and four magnitudes."""
    if draws[0] >= 0.8:
        return image
    orders = list(itertools.permutations(range(4)))
    for op in orders[int(draws[1] * 24)]:
        u, s = draws[2 + op], (0.4, 0.4, 0.4, 0.1)[op]
        low = max(0.0, 1 - s)
        factor = low + (1 + s - low) * u
        if op == 3:
            image = hue(image, (2 * u - 1) * s)
        else:
            name = ("Brightness", "Contrast", "Color")[op]
            image = blend(image, name, factor)
    return image


def smooth(image):
    kernel = np.ones((3, 3, 1))
    kernel[1, 1] = 5
    result = image.copy()
    result[1:-1, 1:-1] = ndimage.correlate(image, kernel / 13)[1:-1, 1:-1]
    return result


# Functions of PIL, with what they get for a magnitude.
TABLES = {
    "Equalize": lambda image, u: ImageOps.equalize(image),
    "Posterize": lambda image, u: ImageOps.posterize(image, int(4 + 4 * u)),
    "Solarize": lambda image, u: ImageOps.solarize(image, 256 * u),
}


def pixel_operation(image, name, u):
    if name in ("Brightness", "Color", "Contrast", "Sharpness"):
        return blend(image, name, 0.05 + 0.9 * u)
    if name == "AutoContrast":
        low, high = image.min((0, 1)), image.max((0, 1))
        flat = high - low < 1
        scale = np.where(flat, 1.0, 255 / np.where(flat, 1.0, high - low))
        return np.clip((image - np.where(flat, 0.0, low)) * scale, 0, 255)
    if name in TABLES:
        levels = np.round(np.clip(image, 0, 255)).astype("uint8")
        planes = map(Image.fromarray, np.moveaxis(levels, -1, 0))
        planes = [TABLES[name](plane, u) for plane in planes]
        return np.stack(planes, -1).astype("float64")
    return image


def cutout_box(draws, size, largest):
    """Left, top, right, bottom, all painted (as PIL draws a rectangle)."""
    height, width = size
    side = draws[2] * largest * width
    left = int(max(0.0, draws[0] * width - side / 2))
    top = int(max(0.0, draws[1] * height - side / 2))
    return left, top, int(min(width, left + side)), int(min(height, top + side))
