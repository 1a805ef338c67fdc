"""Losses of partial label learning, each a `keras.losses.Loss`."""

from alim_keras.losses.averaged import AveragedAbsolute
from alim_keras.losses.averaged import AveragedGeneralised
from alim_keras.losses.averaged import AveragedSquared
from alim_keras.losses.averaged import SymmetricCrossentropy
from alim_keras.losses.candidate import CandidateCrossentropy
from alim_keras.losses.candidate import CandidateExponential
from alim_keras.losses.candidate import NonCandidateLogLoss
from alim_keras.losses.contrastive import LEFT_OUT
from alim_keras.losses.contrastive import QueueContrastive
from alim_keras.losses.contrastive import SupervisedContrastive
from alim_keras.losses.contrastive import positive_mask
from alim_keras.losses.leveraged import LeveragedCrossentropy
from alim_keras.losses.leveraged import LeveragedSigmoid
from alim_keras.losses.masks import contrast_mask
from alim_keras.losses.masks import instance_mask
from alim_keras.losses.masks import neighbour_mask
from alim_keras.losses.masks import own_places
from alim_keras.losses.masks import with_own_key

__all__ = [
    "LEFT_OUT",
    "AveragedAbsolute",
    "AveragedGeneralised",
    "AveragedSquared",
    "CandidateCrossentropy",
    "CandidateExponential",
    "LeveragedCrossentropy",
    "LeveragedSigmoid",
    "NonCandidateLogLoss",
    "QueueContrastive",
    "SupervisedContrastive",
    "SymmetricCrossentropy",
    "instance_mask",
    "neighbour_mask",
    "own_places",
    "positive_mask",
    "with_own_key",
]
