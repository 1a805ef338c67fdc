"""The classifier alone, for other programs."""

import keras

from alim_keras.errors import ConfigError


def network_of(model, resizes=True):
    """Returns a `PartialLabelModel`'s `inference_network`."""
    shape = model.image_shape
    if model.takes_features:
        start = keras.Input(shape[-1:], name="features")
        x = keras.layers.Reshape(shape)(start)
    elif resizes:
        start = keras.Input((None, None, shape[-1]), name="images")
        x = model.resizing(start)
    else:
        x = start = keras.Input(shape, name="images")
    x = model.normalisation(x)
    classifier = model.classifier.merged() if model.folds else model.classifier
    x = classifier(model.backbone(x, training=False))
    x = keras.layers.Softmax(name="probabilities", dtype="float32")(x)
    return keras.Model(start, x, name="classifier")


def check_names(class_names, num_classes):
    """Raises `ConfigError` unless each class has one line of text as name."""
    if len(class_names) != num_classes:
        raise ConfigError(
            f"Argument `class_names` must name all {num_classes} classes. "
            f"Received: {len(class_names)} names"
        )
    for row, name in enumerate(class_names):
        try:
            text = str(name).encode("utf-8")
        except UnicodeEncodeError:
            text = b""
        if not text.strip() or b"\n" in text or b"\r" in text:
            raise ConfigError(
                "Each class name must be one line of text. Received: "
                f"class_names[{row}]={ascii(str(name))}"
            )
