"""TensorFlow: compiled parts of a step, and `fit`'s loop held in the hand."""

import functools

import tensorflow as tf
from keras.src.backend.tensorflow.trainer import TFEpochIterator


class Program:
    """A function, or its gradient, as a `tf.function`.

    Args:
        function: Function of tensors. It may assign to variables.
        variables: Keras variables it reads or writes. Unused here; JAX needs
            to be told.
        gradient: None for the function's own result; a list of Keras
            variables, or `"input"` for the first argument, for the gradient
            of its scalar result.
        then: Function of the gradient and the arguments that is run in the
            same program, such as an optimizer's update.
        jit_compile: Whether XLA compiles it. Defaults to `False`.

    Attributes:
        traces: How often the function was traced.
    """

    def __init__(
        self,
        function,
        variables=(),
        gradient=None,
        then=None,
        jit_compile=False,
    ):
        del variables
        self.traces = 0

        def run(*arguments):
            self.traces += 1
            if gradient is None:
                return function(*arguments)
            with tf.GradientTape() as tape:
                if gradient == "input":
                    wanted = arguments[0]
                    tape.watch(wanted)
                else:
                    wanted = [variable.value for variable in gradient]
                loss = function(*arguments)
            gradients = tape.gradient(loss, wanted)
            if then is not None:
                then(gradients, *arguments)
                return loss
            return loss, gradients

        # A partial has an identity of its own: TensorFlow would take many
        # functions of the same code for one that is traced again and again.
        self._run = tf.function(
            functools.partial(run), jit_compile=jit_compile, autograph=False
        )

    def __call__(self, *arguments):
        return self._run(*arguments)


def epoch_iterator(model, dataset):
    """Returns what `fit` iterates over, once for each epoch."""
    return TFEpochIterator(
        x=dataset,
        distribute_strategy=model.distribute_strategy,
        steps_per_execution=model.steps_per_execution,
    )


class Steps:
    """`fit`'s function; the model's variables are its state.

    Args:
        model: A compiled `keras.Model` with its train function made.
        epochs: Unused here; JAX builds the metrics from its first batch.
    """

    def __init__(self, model, epochs):
        del epochs
        self._model = model

    def run(self, batches):
        """Trains on the next batch; returns the logs."""
        return self._model.train_function(batches)

    def sync(self):
        """Nothing: the model's variables are those of the steps."""


def wait(results):
    """Blocks until the results, tensors in any nesting, are there."""
    for tensor in tf.nest.flatten(results):
        # One number is enough: a device works in the order it was asked.
        tf.reshape(tensor, [-1])[:1].numpy()
        break


def peak_device_memory():
    """Returns the largest number of bytes in use on a GPU, or None."""
    if not tf.config.list_physical_devices("GPU"):
        return None
    return tf.config.experimental.get_memory_info("GPU:0")["peak"]
