"""Callbacks: ALIM itself, and those of a training run."""

from alim_keras.callbacks.alim import ALIM
from alim_keras.callbacks.epoch_timer import EpochTimer
from alim_keras.callbacks.evaluation import Evaluation
from alim_keras.callbacks.metrics_log import MetricsLog
from alim_keras.callbacks.non_finite_guard import NonFiniteGuard
from alim_keras.callbacks.progress import Progress
from alim_keras.callbacks.run_checkpoint import RunCheckpoint
from alim_keras.callbacks.selection import Selection

__all__ = [
    "ALIM",
    "EpochTimer",
    "Evaluation",
    "MetricsLog",
    "NonFiniteGuard",
    "Progress",
    "RunCheckpoint",
    "Selection",
]
