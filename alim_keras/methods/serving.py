"""The classifier inside a training model, for inference and export."""

import keras

from alim_keras import backend
from alim_keras.methods import checks


class Serving:
    """What `PartialLabelModel` offers to those who only want predictions."""

    @property
    def takes_features(self):
        """Whether the backbone is for feature vectors: images of one pixel."""
        return tuple(self.image_shape[:2]) == (1, 1)

    def prepare(self, images):
        """Resizes to the backbone's size if needed, and normalises."""
        images = keras.ops.cast(images, "float32")
        if self.takes_features:
            checks.check_features(images.shape, self.image_shape)
            images = keras.ops.reshape(images, (-1, *self.image_shape))
        elif tuple(images.shape[1:3]) != tuple(self.image_shape[:2]):
            images = self.resizing(images)
        return self.normalisation(images)

    def infer_scores(self, images):
        """`scores` in inference mode, for images as in `call`."""
        return self.scores(self.encode(self.prepare(images), training=False))

    def inference_network(self):
        """Returns the classifier alone: images to probabilities.

        It shares its weights with this model; the table, the key encoder and
        all else that only training needs is not in it. With a backbone for
        feature vectors its input is `(B, d)`.
        """
        if self.takes_features:
            inputs = keras.Input(self.image_shape[-1:], name="features")
            x = keras.layers.Reshape(self.image_shape)(inputs)
        else:
            shape = (None, None, self.image_shape[-1])
            inputs = keras.Input(shape, name="images")
            x = self.resizing(inputs)
        x = self.normalisation(x)
        x = self.classifier(self.backbone(x, training=False))
        outputs = keras.layers.Softmax(name="probabilities", dtype="float32")(x)
        return keras.Model(inputs, outputs, name="classifier")

    def export(self, filepath, class_names=None):
        """Writes the classifier as a SavedModel; see `inference_network`.

        Args:
            filepath: Folder to write.
            class_names: Names of the C classes, shipped as an asset.
        """
        checks.check_class_names(class_names, self.num_classes)
        backend.save_served_model(
            self.inference_network(), filepath, self.image_shape, class_names
        )
