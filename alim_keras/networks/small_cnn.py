"""A backbone that trains in minutes on a CPU."""

import keras


def small_cnn(input_shape=(28, 28, 1), width=32, name="small_cnn"):
    """Returns a three-stage convolutional backbone for small images.

    Each stage is 3x3 convolution, batch normalisation, ReLU; between stages
    2x2 max-pooling, the first of which is left out below 16 pixels. `width`,
    2 `width`, 4 `width` filters, then global average pooling.

    Args:
        input_shape: `(H, W, channels)`. Defaults to `(28, 28, 1)`.
        width: Filters of the first stage. Defaults to `32`.
        name: String.

    Returns:
        A `keras.Model`, `(B, H, W, channels)` normalised images to
        `(B, 4 * width)` features.
    """
    inputs = keras.Input(input_shape)
    x = inputs
    for stage in range(3):
        if stage == 2 or (stage == 1 and min(input_shape[:2]) >= 16):
            x = keras.layers.MaxPooling2D(name=f"pool{stage}")(x)
        x = keras.layers.Conv2D(
            width * 2**stage,
            3,
            padding="same",
            use_bias=False,
            kernel_initializer="he_normal",
            name=f"conv{stage + 1}",
        )(x)
        x = keras.layers.BatchNormalization(
            momentum=0.9, epsilon=1e-5, name=f"bn{stage + 1}"
        )(x)
        x = keras.layers.ReLU(name=f"relu{stage + 1}")(x)
    x = keras.layers.GlobalAveragePooling2D(name="global_pool")(x)
    return keras.Model(inputs, x, name=name)
