"""Which method the settings choose, and with what arguments."""

from alim_keras.errors import ConfigError
from alim_keras.methods import arguments_of
from alim_keras.methods import find_method
from alim_keras.methods import parse_options

# Flags that are arguments of the methods that have them.
METHOD_FLAGS = (
    "mixup_weight",
    "mixup_alpha",
    "logit_adjustment",
    "embedding_dim",
    "queue_size",
    "key_momentum",
    "prototype_momentum",
    "temperature",
    "prototype_temperature",
    "contrastive_weight",
)


def method(settings):
    """Returns the class of the method."""
    return find_method(settings.method)


def method_options(settings):
    """Returns the method's arguments that the settings give.

    Flags that the method has no argument for are left out, those without a
    value leave the method's own in force, and `--method_options` wins.
    """
    chosen = method(settings)
    known = arguments_of(chosen)
    found = {
        name: getattr(settings, name)
        for name in METHOD_FLAGS
        if name in known and getattr(settings, name) is not None
    }
    found["pseudo_label_start"] = settings.prototype_start
    momentum = settings.pseudo_label_momentum_start
    if momentum is not None:
        end = settings.pseudo_label_momentum_end
        found["pseudo_label_momentum"] = (
            momentum,
            momentum if end is None else end,
        )
    if settings.scores != "method":
        if "scores_from" in known:
            found["scores_from"] = settings.scores
        elif settings.scores != "classifier":
            raise ConfigError(
                f"--method={settings.method} has no prototypes. Received: "
                f"--scores={settings.scores}"
            )
    return {**found, **parse_options(settings.method_options, chosen)}


def keeps_pseudo_labels(settings):
    """Returns whether the method has a table for ALIM to work on."""
    chosen = method(settings)
    options = method_options(settings)
    return chosen.keeps_pseudo_labels or (
        options.get("targets") == "pseudo_labels"
    )


def mixup_weight(settings):
    """Returns the weight of mixup: the one that is asked, or the method's."""
    options = method_options(settings)
    default = arguments_of(method(settings))["mixup_weight"]
    return float(options.get("mixup_weight", default))


def network(settings, kind="images"):
    """Returns `--network`, or the one that this kind of data asks for."""
    default = "mlp" if kind == "features" else "small_cnn"
    return settings.network or default
