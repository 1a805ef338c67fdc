"""What a benchmark needs of a framework; see the modules it chooses from.

`Program` compiles one part of a step as the framework's users would, `wait`
blocks until results are there, `peak_device_memory` reads an accelerator's
counter. `Epochs` reads batches as `fit` does, `FitLoop` trains on them by
`fit`'s own function.
"""

import importlib

import keras

_framework = importlib.import_module(
    f"alim_keras.backend.{keras.config.backend()}_timing"
)
Program = _framework.Program
peak_device_memory = _framework.peak_device_memory
wait = _framework.wait

__all__ = ["Epochs", "FitLoop", "Program", "peak_device_memory", "wait"]


class Epochs:
    """The batches of one epoch after another, as `fit` reads them.

    Args:
        model: A compiled `keras.Model`.
        dataset: What `fit` would be given.
    """

    def __init__(self, model, dataset):
        self._epochs = _framework.epoch_iterator(model, dataset)
        self._steps = iter(self._epochs)

    def iterator(self):
        """Returns the iterator from which the next step is to read."""
        try:
            return next(self._steps)[2]
        except StopIteration:
            self._steps = iter(self._epochs)
            return next(self._steps)[2]


class FitLoop:
    """Steps of `model.fit`, one by one: its iterator and its function.

    Args:
        model: A compiled `keras.Model`.
        dataset: What `fit` would be given.

    Attributes:
        traces: How often the training step was traced.
    """

    def __init__(self, model, dataset):
        self.traces = 0
        train_step = model.train_step

        def counted(*arguments):
            self.traces += 1
            return train_step(*arguments)

        model.train_step = counted
        model.make_train_function(force=True)
        model.train_step = train_step
        self._epochs = Epochs(model, dataset)
        self._steps = _framework.Steps(model, self._epochs)

    def step(self):
        """Takes the next batch and trains on it; returns the logs."""
        return self._steps.run(self._epochs.iterator())

    def sync(self):
        """Leaves the model's variables as the last step did."""
        self._steps.sync()
