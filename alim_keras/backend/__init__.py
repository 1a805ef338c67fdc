"""The only code that knows a framework; one module per Keras backend.

Both offer the same names, this package's, which tensorflow.py documents.
"""

import keras

from alim_keras.errors import EnvironmentLacksError

if keras.config.backend() == "tensorflow":
    from alim_keras.backend import tensorflow as framework
elif keras.config.backend() == "jax":
    from alim_keras.backend import jax as framework
else:
    raise EnvironmentLacksError(
        "alim_keras runs on Keras's backends tensorflow and jax. Set "
        "KERAS_BACKEND to one of them before the first import of keras. "
        f"Received: keras.config.backend()={keras.config.backend()!r}"
    )


def __getattr__(name):
    return getattr(framework, name)


def is_chief():
    """Returns whether this process is the one that writes files."""
    return framework.process()[0] == 0
