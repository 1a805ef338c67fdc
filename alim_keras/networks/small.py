"""Small backbones, for images and for feature vectors, and the heads."""

import math

import keras
from keras import ops

from alim_keras import backend
from alim_keras import draws
from alim_keras.networks.cifar import norm_relu

# The side in pixels that images are brought to, and of a cell.
SIDE, _CELL = 64, 8
# Steps of brightness in a channel, and angles of edges.
_SHADES, _ANGLES = 4, 9
# Of layers that batch normalisation follows.
_BARE = {"use_bias": False, "kernel_initializer": "he_normal"}


def small_cnn(input_shape=(28, 28, 1), width=32):
    """Returns two convolutions and a dense layer, for small images.

    3x3 convolution, 2x2 max-pooling, twice; dense. Batch normalisation and
    ReLU follow each of the three. Images below 16 pixels skip the first
    pooling. The network can learn thousands of images by heart. It takes
    normalised images `(B, H, W, channels)` to features `(B, 4 * width)`.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(28, 28, 1)`.
        width: Filters of the first convolution; the second has twice, the
            dense layer four times as many. Defaults to `32`.

    Example:

    >>> alim_keras.networks.small_cnn((8, 8, 1), width=4).output_shape
    (None, 16)
    """
    inputs = x = keras.Input(input_shape)
    for layer, filters in (("conv1", width), ("conv2", 2 * width)):
        conv = keras.layers.Conv2D(
            filters, 3, padding="same", name=layer, **_BARE
        )
        x = norm_relu(conv(x), f"{layer}_bn", f"{layer}_relu")
        if layer == "conv2" or min(input_shape[:2]) >= 16:
            x = keras.layers.MaxPooling2D(name=f"{layer}_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = _dense_block(x, 4 * width, "dense")
    return keras.Model(inputs, x, name="small_cnn")


def mlp(input_shape, width=256):
    """Returns two dense layers, for feature vectors.

    Batch normalisation and ReLU follow each. The network takes normalised
    vectors `(B, 1, 1, d)` to features `(B, width)`.

    Args:
        input_shape: `(1, 1, d)` for vectors of d features, like an image of
            one pixel. Any other shape is flattened.
        width: Units of each layer. Defaults to `256`.

    Example:

    >>> backbone = alim_keras.networks.mlp((1, 1, 108), width=64)
    >>> backbone(np.zeros((2, 1, 1, 108))).shape
    (2, 64)
    """
    inputs = keras.Input(tuple(input_shape))
    x = keras.layers.Flatten(name="flatten")(inputs)
    for layer in ("dense1", "dense2"):
        x = _dense_block(x, width, layer)
    return keras.Model(inputs, x, name="mlp")


def _dense_block(x, width, name):
    x = keras.layers.Dense(width, name=name, **_BARE)(x)
    return norm_relu(x, f"{name}_bn", f"{name}_relu")


@keras.saving.register_keras_serializable(package="alim_keras")
class ImageStatistics(keras.layers.Layer):
    """Pixels `(B, 64, 64, 3)` in [0, 255] to `(B, 832)` simple features.

    The image at 8 x 8 pixels; the root of the histogram of its colours, 4 x 4
    x 4 of them; and a histogram of nine angles of edges in each of 8 x 8 cells.
    The three, centred, are of about the same length.

    Reference:
    - [Dalal and Triggs, 2005](https://doi.org/10.1109/CVPR.2005.177)
    """

    def call(self, inputs):
        pixels = ops.cast(inputs, "float32") / 255.0
        parts = (_cells(pixels) / 2.9, _colours(pixels) / 0.69)
        parts += (_edges(ops.mean(pixels, axis=-1)) / 4.9,)
        return ops.concatenate(parts, axis=1)


def _cells(maps):
    """Returns the mean of each cell, `(B, 64, 64, k)` to `(B, 64 * k)`."""
    means = ops.average_pool(maps, _CELL, _CELL)
    return ops.reshape(means, (-1, math.prod(means.shape[1:])))


def _colours(pixels):
    shades = ops.floor(ops.minimum(pixels, 0.999) * _SHADES)
    places = ops.sum(shades * [_SHADES**2, _SHADES, 1.0], axis=-1)
    each = ops.one_hot(ops.cast(places, "int32"), _SHADES**3)
    return ops.sqrt(ops.mean(each, axis=(1, 2)))


def _edges(grey):
    across = ops.pad(grey[:, :, 2:] - grey[:, :, :-2], ((0, 0), (0, 0), (1, 1)))
    down = ops.pad(grey[:, 2:] - grey[:, :-2], ((0, 0), (1, 1), (0, 0)))
    strength = ops.sqrt(across**2 + down**2)
    # An angle counts for the two nearest of nine, all round.
    angle = ops.mod(ops.arctan2(down, across), math.pi) * (_ANGLES / math.pi)
    distance = ops.abs(angle[..., None] - ops.arange(_ANGLES, dtype="float32"))
    distance = ops.minimum(distance, _ANGLES - distance)
    maps = strength[..., None] * ops.maximum(1.0 - distance, 0.0)
    cells = ops.average_pool(maps, _CELL, _CELL) * _CELL**2
    length = ops.sqrt(ops.sum(cells**2, axis=-1, keepdims=True) + 1e-3)
    return ops.reshape(cells / length, (-1, math.prod(cells.shape[1:])))


def image_statistics(size=SIDE):
    """Returns `ImageStatistics` as a network, which resizes images to 64.

    It is a `keras.Model`, `(B, size, size, 3)` pixels in `[0, 255]` to
    `(B, 832)` features.

    Example:

    >>> alim_keras.networks.image_statistics().output_shape
    (None, 832)
    """
    inputs = x = keras.Input((size, size, 3), name="pixels")
    if size != SIDE:
        x = keras.layers.Resizing(SIDE, SIDE, antialias=True)(x)
    return keras.Model(inputs, ImageStatistics()(x), name="image_statistics")


def _torch_dense(units, fan_in, **kwargs):
    # PyTorch draws U(-1, 1) / sqrt(fan_in).
    limit = fan_in**-0.5
    return keras.layers.Dense(
        units,
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.RandomUniform(-limit, limit),
        **kwargs,
    )


def classifier_head(feature_dim, num_classes):
    """Returns a linear layer `(B, feature_dim)` to float32 logits `(B, C)`."""
    head = _torch_dense(
        num_classes, feature_dim, dtype="float32", name="classifier"
    )
    head.build((None, feature_dim))
    return head


class CrossFittedHeads(keras.layers.Layer):
    """K linear layers `(B, F)` to logits; head k never learns from fold k.

    Called, it returns the mean over the heads, `(B, C)`: one linear layer. Of
    a loss that is a mean over heads, each gets K times its share as gradient,
    so that it moves as if it were trained alone.

    Of F features, C classes, N examples of the training set and K folds, at
    least 2, the weights are `kernel` `(F, K, C)`, `bias` `(K, C)`, and `fold`
    `(N,)`, that of each example, drawn by `seed` and not trained.
    """

    def __init__(self, feature_dim, num_classes, num_examples, folds, seed=0):
        super().__init__(dtype="float32", name="classifier")
        limit = feature_dim**-0.5
        uniform = keras.initializers.RandomUniform(-limit, limit)
        shape = (folds, num_classes)
        self.kernel = self.add_weight(
            (feature_dim, *shape), uniform, name="kernel"
        )
        self.bias = self.add_weight(shape, uniform, name="bias")
        self.fold = self.add_weight(
            (num_examples,), dtype=backend.INTEGER, trainable=False, name="fold"
        )
        self.fold.assign(draws.folds(num_examples, folds, seed))
        self.built = True

    def outputs(self, features):
        """Returns `"logits"`, the mean, and `"heads"`, `(B, K, C)`."""
        size, folds, classes = self.kernel.shape
        kernel, bias = (
            # Value w, gradient K: w - w is exactly 0.
            w + (folds - 1) * (w - ops.stop_gradient(w))
            for w in map(ops.convert_to_tensor, (self.kernel, self.bias))
        )
        kernel = ops.reshape(kernel, (size, folds * classes))
        heads = ops.matmul(ops.cast(features, "float32"), kernel)
        heads = ops.reshape(heads, (-1, folds, classes)) + bias
        return {"logits": ops.mean(heads, axis=1), "heads": heads}

    def call(self, features):
        return self.outputs(features)["logits"]

    def is_of(self, index):
        """Returns `(B, K)`, 1 where a head's fold holds an example of a row.

        `index` is `(B,)` or, for m examples in a row, `(B, m)`.
        """
        fold = backend.gather_rows(self.fold, index)
        is_of = ops.one_hot(fold, self.kernel.shape[1])
        return is_of if len(is_of.shape) == 2 else ops.max(is_of, axis=1)

    def out_of_fold(self, heads, index):
        """Returns logits `(B, C)` of heads that know no row; no gradient."""
        own = ops.expand_dims(self.is_of(index), 2) * heads
        return ops.stop_gradient(ops.sum(own, axis=1))

    def loss_rows(self, heads, index, targets, candidates, sample_weight):
        """Returns `classification_loss`'s arguments, a row for each head.

        Its mean over the `B K` rows is that over examples of the mean over the
        heads that may learn from them; all others get the weight 0.
        """
        count = heads.shape[1]
        weight = 1.0 - self.is_of(index)
        weight = weight * (count / ops.sum(weight, axis=1, keepdims=True))
        if sample_weight is not None:
            own = ops.cast(sample_weight, "float32")
            weight = weight * ops.reshape(own, (-1, 1))
        logits = ops.reshape(heads, (-1, heads.shape[2]))
        targets, candidates = (
            ops.repeat(rows, count, axis=0) for rows in (targets, candidates)
        )
        return logits, targets, candidates, ops.reshape(weight, (-1,))

    def merged(self):
        """Returns the mean of the heads as they now are, a dense layer."""
        size, _, classes = self.kernel.shape
        head = classifier_head(size, classes)
        kernel, bias = self.get_weights()[:2]
        head.set_weights([kernel.mean(axis=1), bias.mean(axis=0)])
        return head


def projection_head(feature_dim, embedding_dim=128):
    """Returns PiCO's head of two layers, `(B, feature_dim)` to `(B, D)`.

    The caller scales the result to unit length.
    """
    hidden = _torch_dense(feature_dim, feature_dim, activation="relu")
    out = _torch_dense(embedding_dim, feature_dim, dtype="float32")
    inputs = keras.Input((feature_dim,))
    return keras.Sequential([inputs, hidden, out], name="projection")
