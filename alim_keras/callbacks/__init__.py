"""Callbacks: ALIM itself, and those of a training run."""

from alim_keras.callbacks.alim import ALIM
from alim_keras.callbacks.checkpoint import RunCheckpoint
from alim_keras.callbacks.checkpoint import state_bytes
from alim_keras.callbacks.run import EpochTimer
from alim_keras.callbacks.run import Evaluation
from alim_keras.callbacks.run import MetricsLog
from alim_keras.callbacks.run import NonFiniteGuard
from alim_keras.callbacks.run import Progress
from alim_keras.callbacks.run import read_metrics
