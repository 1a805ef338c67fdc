"""Pretrained backbones in a run: features computed once, and what is served.

They are kept in `features/` beside the run folders, and trained on as vectors.
"""

import dataclasses
import hashlib
import os
import time

import keras
import numpy as np

from alim_keras import backend
from alim_keras import errors
from alim_keras import files
from alim_keras import networks
from alim_keras.app import defaults
from alim_keras.app.process import show_progress
from alim_keras.data import DiskImages
from alim_keras.data import checks

_FEW = 2000  # So many images or fewer are worth their crops, too.
_CROP = 0.8
# Places of crops, in units of the margin.
_CROPS = ((0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5))
_BATCH = 32
_KEEP = 60  # Seconds after which features are kept, for a killed run.


def backbone_of(config, training):
    """Returns the pretrained `networks.Backbone` of a run, or None."""
    chosen, backbone = config.method, training.backbone
    if backbone is None and training.kind == "images" and chosen.network:
        size = config.data.image_size
        backbone = networks.find(chosen.network, chosen.weights, size)
    # Of image statistics nothing is trained.
    is_idle = backbone is None or chosen.network == defaults.STATISTICS
    fits = (None, "all" if backbone is None else "none")
    if is_idle and chosen.train_backbone not in fits:
        raise errors.ConfigError(
            "--train_backbone is about a pretrained network of images; leave "
            "it out, or give --network=FILE.keras or hub:NAME, or --weights. "
            f"Received: --network={chosen.network}"
        )
    if backbone is not None and chosen.width is not None:
        raise errors.ConfigError(
            f"{backbone.name} has a fixed width: leave --width out"
        )
    return backbone


def at_own_size(config, training):
    """Returns the data with files decoded at the size of their backbone."""
    backbone = backbone_of(config, training)
    if backbone is None:
        return training
    training = defaults.with_form(training, backbone.size, 3)
    mean, std = np.broadcast_to([training.mean, training.std], (2, 3)).tolist()
    return dataclasses.replace(training, mean=mean, std=std)


def frozen(config, training, folder):
    """Returns the data as features, if the run's backbone is frozen.

    They are the mean over an image, its mirror image and, of few images, some
    crops; of a test image those of itself.
    """
    backbone = backbone_of(config, training)
    if backbone is None or config.method.train_backbone not in (None, "none"):
        return training
    place = os.path.join(os.path.dirname(folder.path), "features")
    num_views = 2 if len(training) > _FEW else 2 + 2 * len(_CROPS)
    features = _features(backbone, training.images, num_views, place)
    tests = features[:0]
    if len(training.test_images):
        tests = _features(backbone, training.test_images, 1, place)
    mean = features.mean(axis=0, dtype=np.float64)
    # One deviation for all: the vectors keep their directions.
    std = np.sqrt(np.square(features - mean).mean()) or 1.0
    return dataclasses.replace(
        training,
        kind="features",
        images=features[:, None, None],
        test_images=tests[:, None, None],
        mean=tuple((mean / 255.0).tolist()),
        std=(float(std) / 255.0,) * len(mean),
        pictures=training.images,
        backbone=backbone,
    )


def _features(backbone, images, num_views, place):
    """Returns float32 `(N, d)`; computes what is not in the folder `place`."""
    name = f"{backbone.name}-{backbone.digest[:12]}-{backbone.size}px"
    path = os.path.join(place, f"{name}-{num_views}views.npz")
    known, wanted = _kept(path), _digests(images)
    # Of equal images the first.
    _, first = np.unique(wanted, return_index=True)
    rows = np.array([n for n in np.sort(first) if wanted[n] not in known], int)
    began = kept_at = time.monotonic()
    is_chief = backend.is_chief()
    for start in range(0, len(rows), _BATCH):
        part = rows[start : start + _BATCH]
        vectors = _mean_over_views(backbone, images, part, num_views)
        known |= zip((wanted[row] for row in part), vectors)
        done, now = start + len(part), time.monotonic()
        show_progress(done, len(rows))
        if is_chief and (now - kept_at > _KEEP or done == len(rows)):
            kept_at, text = now, f"{done:,} of {len(rows):,}"
            print(f"Features: {text} in {now - began:.0f} s", flush=True)
            with files.replacing(path) as file:
                features = np.stack(list(known.values()))
                np.savez(file, digests=list(known), features=features)
    if is_chief:
        views = f"mean of {num_views} views" if num_views > 1 else "test"
        print(
            f"Features by {backbone.name} ({backbone.size} px, {views}): "
            f"{len(rows):,} computed in {time.monotonic() - began:.0f} s, "
            f"{len(wanted) - len(rows):,} read from {path}",
            flush=True,
        )
    return np.stack([known[key] for key in wanted]).astype("float32")


def _kept(path):
    """Returns a dict from digest to features, of a file that can be read."""
    try:
        content = checks.read_npz(path)
        return dict(zip(content["digests"].tolist(), content["features"]))
    except (errors.DataError, KeyError):
        return {}


def _digests(images):
    """Returns a list of strings, equal for equal images."""
    if isinstance(images, DiskImages):
        return images.digests()
    form = f"{images.shape[1:]} {images.dtype}".encode()
    return [
        hashlib.blake2b(form + pixels.tobytes()).hexdigest()
        for pixels in images
    ]


def _mean_over_views(backbone, images, rows, num_views):
    """Returns the mean features of rows, float16 `(n, d)`."""
    size, total = backbone.size, 0.0
    large = round(size / _CROP)

    def pixels_at(side):
        pixels = images[rows]
        if isinstance(images, DiskImages):
            pixels = pixels.with_form(side, 3).read()
        else:
            pixels = keras.layers.Resizing(side, side)(pixels.astype("float32"))
        pixels = np.asarray(pixels, "float32")
        # The last batch too is full: each size is compiled anew.
        empty = ((0, _BATCH - len(rows)), (0, 0), (0, 0), (0, 0))
        return np.pad(np.broadcast_to(pixels, (*pixels.shape[:3], 3)), empty)

    views = [pixels_at(size)]
    if num_views > 2:
        pixels, margin = pixels_at(large), large - size
        for share in _CROPS:
            top, left = (int(margin * x) for x in share)
            views.append(pixels[:, top : top + size, left : left + size])
    for view in views:
        # Of one alone, the view is the image itself.
        for mirrored in (view, view[:, :, ::-1])[:num_views]:
            outputs = backbone.network.predict_on_batch(mirrored)
            total = total + np.asarray(outputs, "float32")[: len(rows)]
    mean = total / num_views
    if not np.isfinite(mean).all():
        raise errors.DataError(
            f"{backbone.path or backbone.name} gives features that are NaN or "
            "infinite; use another --network"
        )
    is_small = np.abs(mean).max() < np.finfo(np.float16).max
    return mean.astype(np.float16 if is_small else np.float32)


def served(model, training):
    """Returns the classifier, with a frozen backbone, and its input."""
    network, backbone = model.inference_network(), training.backbone
    if backbone is None:
        return network, model.image_shape
    shape = training.pictures.shape[1:]
    start = keras.Input((None, None, shape[-1]), name="images")
    x = keras.layers.Resizing(backbone.size, backbone.size)(start)
    if shape[-1] == 1:
        x = keras.layers.Concatenate()([x, x, x])
    x = network(backbone.network(x))
    return keras.Model(start, x, name="images_to_probabilities"), shape
