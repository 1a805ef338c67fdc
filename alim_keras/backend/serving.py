"""The classifier as a SavedModel: written, and read back, by TensorFlow."""

import os
import tempfile

import tensorflow as tf

from alim_keras.errors import CheckpointError

CLASS_NAMES = "class_names.txt"


def save_served_model(network, path, image_shape, class_names=None):
    """Writes `network` (images to probabilities) as a SavedModel.

    Its `serve` takes a batch of images of any size, `(B, H, W, C)`, uint8 or
    float32 in `[0, 255]`, and returns `(B, num_classes)` float32: no rows for
    no images, NaN for an image with a pixel that is not a finite number.
    Signatures: `serving_default` (uint8) and `serve_float` (float32). A
    network of feature vectors takes float32 `(B, d)`, and has
    `serving_default` only. `input_shape` returns the shape of one image, or
    of one vector, that the network was trained on. Class names, one per line,
    are the asset `class_names.txt`. Nothing else is inside.
    """
    of_features = len(network.inputs[0].shape) == 2
    num_classes = network.outputs[0].shape[-1]
    served = tf.Module()
    served.network_variables = [v.value for v in network.variables]

    @tf.function
    def serve(images):
        images = tf.cast(images, tf.float32)
        # Resizing and pooling cannot do with no images.
        if tf.shape(images)[0] == 0:
            return tf.zeros((0, num_classes))
        pixels = tf.reshape(images, (tf.shape(images)[0], -1))
        finite = tf.reduce_all(tf.math.is_finite(pixels), axis=1, keepdims=True)
        # ReLU and pooling turn NaN pixels into ordinary features.
        return tf.where(finite, network(images, training=False), float("nan"))

    def signature(dtype):
        shape, name = (None, None, None, image_shape[-1]), "images"
        if of_features:
            shape, name = shape[2:], "features"
        spec = tf.TensorSpec(shape, dtype, name)
        return serve.get_concrete_function(spec)

    served.serve = serve
    served.input_shape = tf.function(
        lambda: tf.constant(image_shape[2 * of_features :]), input_signature=()
    )
    signatures = {"serving_default": signature(tf.float32)}
    if not of_features:
        signatures["serve_float"] = signature(tf.float32)
        signatures["serving_default"] = signature(tf.uint8)
    if class_names is None:
        tf.saved_model.save(served, path, signatures)
        return
    with tempfile.TemporaryDirectory() as folder:
        names = os.path.join(folder, CLASS_NAMES)
        with open(names, "w", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in class_names))
        served.class_names = tf.saved_model.Asset(names)
        tf.saved_model.save(served, path, signatures)


def load_served_model(path):
    """Reads a SavedModel that `save_served_model` wrote.

    Returns a function from arrays to arrays of probabilities, and the shape of
    one input that the network was trained on. Raises CheckpointError if it is
    of another kind.
    """
    served = tf.saved_model.load(path)
    if not (hasattr(served, "serve") and hasattr(served, "input_shape")):
        raise CheckpointError(
            f"The SavedModel in {path} is not one that this version of "
            "alim_keras exports. Write it again from its run: python -m "
            "alim_keras.export RUN_FOLDER"
        )
    # The function alone would not keep its variables.
    return (
        lambda batch: served.serve(batch).numpy(),
        tuple(served.input_shape().numpy().tolist()),
    )
