"""Compiled functions and gradients, on whichever backend runs."""

import keras

from alim_keras import backend


def updating(function, variables, jit_compile=False):
    """Returns `function` compiled, though it assigns some of `variables`.

    TensorFlow keeps what a graph assigns; JAX's functions are pure, so that
    the new values are returned there and assigned afterwards, as its training
    step does.
    """
    variables = list(variables)

    def pure(*arguments):
        result = function(*arguments)
        values = [keras.ops.convert_to_tensor(v) for v in variables]
        return result, values

    compiled = backend.compiled(pure, variables, jit_compile=jit_compile)

    def run(*arguments):
        result, values = compiled(*arguments)
        for variable, value in zip(variables, values):
            variable.assign(value)
        return result

    return run


def gradient(function, x):
    """Returns d function(x) / dx, an array; the function returns a scalar."""
    x = keras.ops.convert_to_tensor(x)
    if keras.config.backend() == "jax":
        import jax

        return keras.ops.convert_to_numpy(jax.grad(function)(x))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x).numpy()
