"""Noisy partial label learning with Keras: ALIM on PiCO and its relatives.

Training images carry a set of candidate labels, one of which should be true,
and even that may be wrong. See `PiCO`, `callbacks.ALIM` and
`data.train_dataset`.

Importing the package imports neither Keras nor TensorFlow: a name of the
package does, when it is first used. A saved `.keras` model loads all the same:
as soon as Keras is there, it knows which module defines each class.
"""

import importlib

import wrapt

__version__ = "0.1.0"
__all__ = (
    "PartialLabelModel PiCO audit augment backend callbacks data draws layers "
    "losses methods metrics networks noise_rate ops report"
).split()
# The names that are no modules. `python -m alim_keras.audit` runs a file of
# that name, which nobody imports; the name is the function's.
_HOME = {"PartialLabelModel": "methods", "PiCO": "methods", "audit": "report"}
# The classes that a saved model may hold, by the module that registers them.
_SAVED = {
    "augment": "AutoAugmentViews FeatureViews Views",
    "layers": (
        "AddedLabels EmbeddingQueue LeveragedWeights Prototypes "
        "PseudoLabelTable Reliability SparsePseudoLabelTable"
    ),
    "losses": "CandidateCrossentropy SupervisedContrastive",
    "methods": (
        "CC CRDPLL EXP GCE IRNet LWC LWS MAE MSE PRODEN PiCO PiCOPlus RC SCE"
    ),
    "metrics": "ApproximatedAccuracy CandidateAccuracy CoveringRate",
    "networks": "BatchNormalization ImageStatistics",
}


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module


def __dir__():
    return sorted({*globals(), *__all__})


class _SavedClass:
    """Stands in Keras's registry for a class that is not imported yet."""

    def __init__(self, module, name):
        self._module, self._name = module, name

    def from_config(self, *args, **kwargs):
        module = importlib.import_module(f"{__name__}.{self._module}")
        return getattr(module, self._name).from_config(*args, **kwargs)


def _register(keras):
    """Makes the classes of saved models known to Keras by their names."""
    registry = keras.saving.get_custom_objects()
    for module, names in _SAVED.items():
        for name in names.split():
            # A class that is imported registers itself.
            registry.setdefault(f"alim_keras>{name}", _SavedClass(module, name))


# TensorFlow brings wrapt, too. It calls `_register` at once if Keras is here.
wrapt.register_post_import_hook(_register, "keras")
