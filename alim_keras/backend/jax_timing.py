"""JAX: compiled parts of a step, and `fit`'s loop held in the hand."""

import jax
import keras
from keras.src.backend.jax.trainer import JAXEpochIterator


class Program:
    """A function, or its gradient, jitted; its state is donated.

    It works on a copy of its variables, which it hands on from call to call.

    Args:
        function: Function of tensors. It may assign to variables.
        variables: Keras variables it reads or writes.
        gradient: None for the function's own result; a list of Keras
            variables, or `"input"` for the first argument, for the gradient
            of its scalar result.
        then: Function of the gradient and the arguments that is run in the
            same program, such as an optimizer's update.
        jit_compile: Ignored: JAX compiles always.

    Attributes:
        traces: How often the function was traced.
    """

    def __init__(
        self,
        function,
        variables=(),
        gradient=None,
        then=None,
        jit_compile=True,
    ):
        del jit_compile
        self.traces = 0
        self._variables = list(variables)
        self._state = [jax.numpy.copy(v.value) for v in self._variables]

        def run(state, arguments):
            self.traces += 1
            if gradient is None:
                return self._evaluate(function, state, arguments)
            loss, state, gradients = self._differentiate(
                function, state, arguments, gradient
            )
            if then is not None:
                _, state = self._evaluate(then, state, (gradients, *arguments))
                return loss, state
            return (loss, gradients), state

        self._run = jax.jit(run, donate_argnums=0)

    def __call__(self, *arguments):
        results, self._state = self._run(self._state, arguments)
        return results

    def _evaluate(self, function, state, arguments):
        mapping = list(zip(self._variables, state))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            result = function(*arguments)
        return result, [scope.get_current_value(v) for v in self._variables]

    def _differentiate(self, function, state, arguments, gradient):
        if gradient == "input":

            def loss_of(first):
                return self._evaluate(function, state, (first, *arguments[1:]))

            wanted = arguments[0]
        else:
            ids = [id(variable) for variable in self._variables]
            places = [ids.index(id(variable)) for variable in gradient]

            def loss_of(values):
                replaced = list(state)
                for place, value in zip(places, values):
                    replaced[place] = value
                return self._evaluate(function, replaced, arguments)

            wanted = [state[place] for place in places]
        (loss, state), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            wanted
        )
        return loss, state, gradients


def epoch_iterator(model, dataset):
    """Returns what `fit` iterates over, once for each epoch."""
    return JAXEpochIterator(
        x=dataset, steps_per_execution=model.steps_per_execution
    )


class Steps:
    """`fit`'s function of a state, which it owns and donates.

    Args:
        model: A compiled `keras.Model` with its train function made.
        epochs: `timing.Epochs`; its first batch builds the metrics.
    """

    def __init__(self, model, epochs):
        self._model = model
        model._symbolic_build(data_batch=next(epochs.iterator()))
        self._groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        self._state = tuple([v.value for v in group] for group in self._groups)

    def run(self, batches):
        """Trains on the next batch; returns the logs."""
        logs, self._state = self._model.train_function(self._state, batches)
        return logs

    def sync(self):
        """Gives the model's variables a copy of what the state holds."""
        for variables, values in zip(self._groups, self._state):
            for variable, value in zip(variables, values):
                variable.assign(jax.numpy.copy(value))


def wait(results):
    """Blocks until the results, arrays in any nesting, are there."""
    jax.block_until_ready(results)


def peak_device_memory():
    """Returns the largest number of bytes in use on a GPU, or None."""
    stats = jax.local_devices()[0].memory_stats()
    return stats.get("peak_bytes_in_use") if stats else None
