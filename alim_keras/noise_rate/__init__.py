"""Estimating eta, the share of candidate sets that miss the true label.

Nobody outside a benchmark knows it. The estimators are functions of arrays:

- `em`: from predictions for examples that were not trained on, nothing else;
- `cautious`: `em` with an interval for mistakes that resemble the image;
- `from_votes`: from the answers of several annotators;
- `annotated`: from some true labels that somebody looked up.

docs/noise_rate.md has the mathematics, and how far off each was.
"""

from alim_keras.noise_rate.em import GUESS
from alim_keras.noise_rate.em import Estimate
from alim_keras.noise_rate.em import em
from alim_keras.noise_rate.estimators import ENOUGH_LABELS
from alim_keras.noise_rate.estimators import HeldOut
from alim_keras.noise_rate.estimators import annotated
from alim_keras.noise_rate.estimators import cautious
from alim_keras.noise_rate.estimators import from_votes
from alim_keras.noise_rate.estimators import inference
from alim_keras.noise_rate.estimators import out_of_fold
from alim_keras.noise_rate.estimators import wilson
