"""The floor: an ordinary training step of the same network."""

import keras
import numpy as np

from alim_keras.backend import timing
from alim_keras.networks import classifier_head
from alim_keras.networks import make_backbone
from alim_keras.runs import choice


class PlainStep:
    """Backbone, linear classifier, cross-entropy, SGD: one program.

    The images are on the device and normalised already.

    Args:
        settings: The benchmark's settings.
        image_shape: `(H, W, channels)`.
        num_classes: C.

    Attributes:
        backbone: The `keras.Model`.
        classifier: The head.
        step: `Program` of a whole training step.
        forward: `Program` of its forward pass, in training mode.
        arguments: Images `(B, H, W, channels)` and one-hot labels `(B, C)`.
    """

    def __init__(self, settings, image_shape, num_classes):
        self.backbone, _ = make_backbone(
            choice.network(settings), image_shape, settings.width
        )
        self.classifier = classifier_head(
            self.backbone.output_shape[-1], num_classes
        )
        weights = (
            self.backbone.trainable_variables
            + self.classifier.trainable_variables
        )
        variables = self.backbone.variables + self.classifier.variables
        optimizer = _optimizer(settings)
        optimizer.build(weights)

        def logits(images):
            features = self.backbone(images, training=True)
            return self.classifier(features)

        def loss(images, labels):
            losses = keras.losses.categorical_crossentropy(
                labels, logits(images), from_logits=True
            )
            return optimizer.scale_loss(keras.ops.mean(losses))

        def update(gradients, *_):
            # Coupled decay, as the model's, in its cheapest form.
            decay = optimizer.scale_loss(settings.weight_decay)
            optimizer.apply(
                [g + decay * w for g, w in zip(gradients, weights)], weights
            )

        self.step = timing.Program(
            loss,
            variables + optimizer.variables,
            gradient=weights,
            then=update,
            jit_compile=settings.jit_compile,
        )
        self.forward = timing.Program(
            logits, variables, jit_compile=settings.jit_compile
        )
        stream = np.random.default_rng(settings.seed)
        shape = (settings.batch_size, *image_shape)
        labels = stream.integers(0, num_classes, settings.batch_size)
        self.arguments = (
            keras.ops.convert_to_tensor(
                stream.standard_normal(shape).astype("float32")
            ),
            keras.ops.one_hot(labels, num_classes, dtype="float32"),
        )


def _optimizer(settings):
    optimizer = keras.optimizers.SGD(
        settings.learning_rate, momentum=settings.momentum
    )
    if keras.config.dtype_policy().compute_dtype == "float16":
        # What `compile` does by itself.
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer


class MatrixProduct:
    """A large matrix product: the speed that a device can reach.

    Args:
        dtype: String.
        size: Rows of the square matrices.

    Attributes:
        program: `Program` of the product.
        arguments: The two matrices.
        flops: Operations of a call.
    """

    def __init__(self, dtype, size):
        stream = np.random.default_rng(0)
        matrix = stream.standard_normal((size, size), "float32")
        matrix = keras.ops.cast(keras.ops.convert_to_tensor(matrix), dtype)
        self.program = timing.Program(keras.ops.matmul)
        self.arguments = (matrix, matrix)
        self.flops = 2 * size**3
