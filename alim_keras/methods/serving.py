"""The classifier inside a training model, for inference and export."""

import keras

from alim_keras import backend
from alim_keras.methods import checks


class Serving:
    """What `PartialLabelModel` offers to those who only want predictions."""

    def infer_scores(self, images):
        """`scores` in inference mode, for images as in `call`."""
        return self.scores(self.encode(self.prepare(images), training=False))

    def inference_network(self):
        """Returns the classifier alone: images to probabilities.

        It shares its weights with this model; the table, the key encoder and
        all else that only training needs is not in it.
        """
        channels = self.image_shape[-1]
        inputs = keras.Input((None, None, channels), name="images")
        x = self.normalisation(self.resizing(inputs))
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
