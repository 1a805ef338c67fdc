"""Small backbones, for images and for feature vectors, and the heads."""

import keras

from alim_keras.errors import ConfigError
from alim_keras.networks.cifar import conv
from alim_keras.networks.cifar import norm_relu


def small_cnn(input_shape=(28, 28, 1), width=32, name="small_cnn"):
    """Returns two convolutions and a dense layer, for small images.

    3x3 convolution, 2x2 max-pooling, 3x3 convolution, 2x2 max-pooling, dense;
    batch normalisation and ReLU after each of the three. Images below 16
    pixels skip the first pooling. The dense layer sees all positions, so the
    network can learn thousands of images by heart, wrong labels included.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(28, 28, 1)`.
        width: Filters of the first convolution; the second has twice, the
            dense layer four times as many. Defaults to `32`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, 4 * width)` features.

    Example:

    >>> alim_keras.networks.small_cnn((8, 8, 1), width=4).output_shape
    (None, 16)
    """
    options = {"use_bias": False, "kernel_initializer": "he_normal"}
    inputs = keras.Input(input_shape)
    x = inputs
    for layer, filters in (("conv1", width), ("conv2", 2 * width)):
        x = keras.layers.Conv2D(
            filters, 3, padding="same", name=layer, **options
        )(x)
        x = norm_relu(x, f"{layer}_bn", f"{layer}_relu")
        if layer == "conv2" or min(input_shape[:2]) >= 16:
            x = keras.layers.MaxPooling2D(name=f"{layer}_pool")(x)
    x = keras.layers.Flatten(name="flatten")(x)
    x = keras.layers.Dense(4 * width, name="dense", **options)(x)
    x = norm_relu(x, "dense_bn", "dense_relu")
    return keras.Model(inputs, x, name=name)


def mlp(input_shape, width=256, name="mlp"):
    """Returns two dense layers, for feature vectors.

    Batch normalisation and ReLU follow each. Feature vectors have the shape
    of images of one pixel, whose channels are the features.

    Args:
        input_shape: `(1, 1, d)` for vectors of d features. Any other shape is
            flattened.
        width: Units of each layer. Defaults to `256`.
        name: String.

    Returns:
        A `keras.Model`, `(B, 1, 1, d)` normalised vectors to `(B, width)`
        features.

    Example:

    >>> backbone = alim_keras.networks.mlp((1, 1, 108), width=64)
    >>> backbone(np.zeros((2, 1, 1, 108))).shape
    (2, 64)
    """
    inputs = keras.Input(tuple(input_shape))
    x = keras.layers.Flatten(name="flatten")(inputs)
    for layer in ("dense1", "dense2"):
        x = keras.layers.Dense(
            width, use_bias=False, kernel_initializer="he_normal", name=layer
        )(x)
        x = norm_relu(x, f"{layer}_bn", f"{layer}_relu")
    return keras.Model(inputs, x, name=name)


@keras.saving.register_keras_serializable(package="alim_keras")
class ChannelDropout(keras.layers.SpatialDropout2D):
    """`keras.layers.SpatialDropout2D` whose random state is saved.

    Keras leaves the state of a `SeedGenerator` out of files of weights. Here
    it is stored as a weight is, so that a run that was interrupted goes on
    bit for bit.

    Example:

    >>> layer = alim_keras.networks.ChannelDropout(0.25)
    >>> layer(np.ones((2, 4, 4, 8)), training=True).shape
    (2, 4, 4, 8)
    """

    def save_own_variables(self, store):
        if self.rate > 0:
            store["0"] = keras.ops.convert_to_numpy(self.seed_generator.state)

    def load_own_variables(self, store):
        if self.rate > 0:
            self.seed_generator.state.assign(store["0"])


def convnet9(input_shape=(32, 32, 3), width=128, dropout=0.25, name="convnet9"):
    """Returns nine convolutions and global average pooling, of Co-teaching.

    Three 3x3 convolutions with `width` filters, 2x2 max-pooling, dropout of
    whole channels; three with `2 * width`, the same; then, without padding,
    one each with `4 * width`, `2 * width` and `width` filters. Batch
    normalisation and leaky ReLU (slope 0.01) follow each.

    Unlike in the code of the papers' baselines, dropout acts in training only
    and the convolutions have no bias. They start as those of
    `cifar_resnet18`.

    Args:
        input_shape: `(H, W, channels)`, H and W at least 28 pixels. Defaults
            to `(32, 32, 3)`.
        width: Filters of the first convolution. Defaults to `128`.
        dropout: Share of channels that is dropped. Defaults to `0.25`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, width)` features; 4,431,232 parameters at the default size.

    Raises:
        ConfigError: If the images are too small for its unpadded part.

    Example:

    >>> alim_keras.networks.convnet9((28, 28, 1), width=8).output_shape
    (None, 8)

    Reference:
    - [Han et al., 2018](https://arxiv.org/abs/1804.06872), Co-teaching
    """
    if min(input_shape[:2]) < 28:
        raise ConfigError(
            f"{name} needs images of at least 28x28 pixels; resize them, or "
            "take another network such as small_cnn. Received: "
            f"input_shape={tuple(input_shape)}"
        )

    def layer(x, number, filters, padded=True):
        x = conv(x, filters, 3, 1, f"conv{number}", padded=padded)
        return norm_relu(x, f"conv{number}_bn", f"conv{number}_relu", 0.01)

    inputs = keras.Input(input_shape)
    x = inputs
    for block in (1, 2):
        for number in range(3 * block - 2, 3 * block + 1):
            x = layer(x, number, block * width)
        x = keras.layers.MaxPooling2D(name=f"pool{block}")(x)
        x = ChannelDropout(dropout, name=f"dropout{block}")(x)
    for number, factor in ((7, 4), (8, 2), (9, 1)):
        x = layer(x, number, factor * width, padded=False)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    return keras.Model(inputs, x, name=name)


def _torch_dense(units, fan_in, **kwargs):
    # PyTorch draws U(-1, 1) / sqrt(fan_in).
    limit = fan_in**-0.5
    return keras.layers.Dense(
        units,
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.RandomUniform(-limit, limit),
        **kwargs,
    )


def classifier_head(feature_dim, num_classes, name="classifier"):
    """Returns a linear layer `(B, feature_dim)` to float32 logits `(B, C)`."""
    head = _torch_dense(num_classes, feature_dim, dtype="float32", name=name)
    head.build((None, feature_dim))
    return head


def projection_head(feature_dim, embedding_dim=128, name="projection"):
    """Returns PiCO's two-layer head, `(B, feature_dim)` to `(B, D)`.

    Linear, ReLU, linear, without normalisation layers; the caller scales the
    result to unit length.
    """
    hidden = _torch_dense(feature_dim, feature_dim, activation="relu")
    out = _torch_dense(embedding_dim, feature_dim, dtype="float32")
    return keras.Sequential(
        [keras.Input((feature_dim,)), hidden, out], name=name
    )
