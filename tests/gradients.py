"""Gradients of functions of arrays, on whichever backend runs."""

import keras


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
