"""Slow, plain versions of the augmentation, one image at a time."""

import colorsys
import itertools
import math

import keras
import numpy as np

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


def crop_box(draws, size, scale, ratio):
    """torchvision's rule; returns left, top, width, height."""
    height, width = size
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
    result = np.zeros((rows, columns, image.shape[2]))
    for row, column in itertools.product(range(rows), range(columns)):
        x, y = column + 0.5, row + 0.5
        for a, b, c, d, e, f in reversed(maps):
            x, y = a * x + b * y + c, d * x + e * y + f
        if not (0 <= x < columns and 0 <= y < rows):
            continue
        if flip:
            x = columns - x
        x = min(max(x * w / columns - 0.5, 0.0), w - 1.0)
        y = min(max(y * h / rows - 0.5, 0.0), h - 1.0)
        y0, x0 = int(y), int(x)
        y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
        above = (1 - x + x0) * crop[y0, x0] + (x - x0) * crop[y0, x1]
        below = (1 - x + x0) * crop[y1, x0] + (x - x0) * crop[y1, x1]
        result[row, column] = (1 - y + y0) * above + (y - y0) * below
    return result


def rotation(degrees, size):
    """PIL's `Image.rotate`: counter-clockwise about the centre."""
    height, width = size
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    x, y = width / 2, height / 2
    return cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y


def operation_map(name, u, size):
    """The six numbers of a geometric operation with magnitude `u`."""
    value = 2 * u - 1
    if name == "Rotate":
        return rotation(30 * value, size)
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
    others = {
        "Brightness": lambda: 0.0,
        "Color": lambda: gray(image)[..., None],
        "Contrast": lambda: gray(image).mean(),
        "Sharpness": lambda: smooth(image),
    }
    other = others[name]()
    return np.clip(other + factor * (image - other), 0, 255)


def hue(image, turns):
    if image.shape[2] == 1:
        return image
    result = np.empty_like(image)
    for place in np.ndindex(image.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*(image[place] / 255))
        result[place] = 255 * np.array(
            colorsys.hsv_to_rgb((h + turns) % 1.0, s, v)
        )
    return result


def jitter(image, draws, strength):
    """`draws` are the order and four magnitudes."""
    orders = list(itertools.permutations(range(4)))
    for op in orders[int(draws[0] * 24)]:
        u, s = draws[1 + op], strength[op]
        low = max(0.0, 1 - s)
        factor = low + (1 + s - low) * u
        if op == 3:
            image = hue(image, (2 * u - 1) * s)
        else:
            name = ("Brightness", "Contrast", "Color")[op]
            image = blend(image, name, factor)
    return image


def smooth(image):
    result = image.copy()
    for row in range(1, image.shape[0] - 1):
        for column in range(1, image.shape[1] - 1):
            patch = image[row - 1 : row + 2, column - 1 : column + 2]
            total = patch.sum((0, 1)) + 4 * image[row, column]
            result[row, column] = total / 13
    return result


def equalize(levels):
    """PIL's rule for one channel of whole numbers."""
    counts = np.bincount(levels.ravel(), minlength=256)
    used = counts[counts > 0]
    step = (used.sum() - used[-1]) // 255
    if step == 0:
        return levels
    table, total = [], step // 2
    for count in counts:
        table.append(min(total // step, 255))
        total += count
    return np.array(table)[levels]


def pixel_operation(image, name, u):
    if name in ("Brightness", "Color", "Contrast", "Sharpness"):
        return blend(image, name, 0.05 + 0.9 * u)
    levels = np.round(np.clip(image, 0, 255)).astype(int)
    if name == "AutoContrast":
        low, high = image.min((0, 1)), image.max((0, 1))
        flat = high - low < 1
        scale = np.where(flat, 1.0, 255 / np.where(flat, 1.0, high - low))
        return np.clip((image - np.where(flat, 0.0, low)) * scale, 0, 255)
    if name == "Equalize":
        channels = [equalize(levels[..., c]) for c in range(image.shape[2])]
        return np.stack(channels, -1).astype("float64")
    if name == "Posterize":
        return (levels & ~((1 << (8 - int(4 + 4 * u))) - 1)).astype("float64")
    if name == "Solarize":
        inverted = np.where(levels < 256 * u, levels, 255 - levels)
        return inverted.astype("float64")
    return image


def cutout_box(draws, size, largest):
    """Left, top, right, bottom, all painted (as PIL draws a rectangle)."""
    height, width = size
    side = draws[2] * largest * width
    left = int(max(0.0, draws[0] * width - side / 2))
    top = int(max(0.0, draws[1] * height - side / 2))
    right = min(width, left + side)
    bottom = min(height, top + side)
    return left, top, int(right), int(bottom)
