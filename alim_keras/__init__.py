"""Noisy partial label learning with Keras: ALIM on PiCO and its relatives.

Training images carry a set of candidate labels, one of which should be true,
and even that may be wrong. See `PiCO`, `callbacks.ALIM` and
`data.train_dataset`.
"""

import importlib
import sys

__version__ = "0.1.0"

_HOME = {
    "PartialLabelModel": "methods",
    "PiCO": "methods",
    # The command alim_keras.audit is callable, and then stands in its place.
    "audit": "report",
}

__all__ = [
    "PartialLabelModel",
    "PiCO",
    "audit",
    "augment",
    "callbacks",
    "data",
    "draws",
    "layers",
    "losses",
    "methods",
    "metrics",
    "networks",
    "noise_rate",
    "ops",
    "report",
]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module


# `python -m alim_keras.train` imports this package before the command can set
# the environment that TensorFlow reads only once; sys.argv[0] is "-m" just
# then. Everywhere else all names are here at once, and all classes registered
# with Keras, so that a saved model loads.
_COMMAND = ("alim_keras.", "-malim_keras.")
if sys.argv[:1] != ["-m"] or not any(
    word.startswith(_COMMAND) for word in sys.orig_argv
):
    for _name in __all__:
        globals()[_name] = __getattr__(_name)
