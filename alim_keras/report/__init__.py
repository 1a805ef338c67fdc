"""Settled labels of a run, and the audit of candidate sets."""

__all__ = ["audit", "examine"]


def __getattr__(name):
    """Imports on first use what needs Keras: `check` does without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from alim_keras.report import examination

    return getattr(examination, name)
