"""A mixture of two normal distributions: sets that are right, and wrong."""

import dataclasses

import numpy as np
from scipy.special import log_softmax

from alim_keras.noise_rate.checks import check_pairs
from alim_keras.noise_rate.em import em
from alim_keras.noise_rate.estimate import Estimate

# Ashman's D above which two normal distributions count as two groups.
APART = 2.0
# Where a set disagrees with the network as much as it agrees.
_NEUTRAL = {"ratio": 0.0, "loss": float(np.log(0.5))}
# What two components must gain over one, in BIC ("very strong evidence").
GAIN = 10.0
_RESAMPLES = 100
# Fewest values that a mixture is fitted to, and most.
_FEWEST = 20
_MOST = 100_000


def gmm(logits, candidates, feature="ratio", seed=0):
    """Estimates eta as the weight of the lower of two normal components.

    The feature is the logarithm of Eq. 6's value, `log max(S P) / max((1 - S)
    P)`, or minus the loss, `log sum_S P`. Where the network has learnt enough,
    wrong sets form a group of their own at its low end.

    The two components count as separated if the BIC of two is better than
    that of one by at least 10; if Ashman's D, `|m1 - m2| / sqrt((s1^2 +
    s2^2) / 2)`, is above 2; and if the sets of the lower group disagree with
    the network, those of the upper agree (means of the log ratio below and
    above 0, of the log mass below and above log 1/2). Otherwise the weights
    mean nothing (a mixture cuts any skewed distribution in two), and `em` on
    the same predictions answers instead: it needs no separation, since it
    weighs each set by how sure the network is of it.

    Args:
        logits: Float array `(n, C)`, see `em`.
        candidates: Multi-hot array `(n, C)`.
        feature: `"ratio"` or `"loss"`. Defaults to `"ratio"`.
        seed: Of the bootstrap and of the mixture's start. Defaults to `0`.

    Returns:
        An `Estimate`; `separated` says whether the mixture was used. The
        interval is the bootstrap's, over 100 samples. `details` holds
        `ashman_d`, `bic_gain`, `means` and `deviations`, lower group first.

    Raises:
        ValueError: If `feature` is neither.
        DataError: As `em`.

    References:
    - [Li et al., 2020](https://arxiv.org/abs/2002.07394) (mixture of losses)
    - [Ashman et al., 1994](https://doi.org/10.1086/117248) (D)
    """
    if feature not in ("ratio", "loss"):
        raise ValueError(
            "Argument `feature` must be 'ratio' or 'loss'. "
            f"Received: feature={feature!r}"
        )
    logits, candidates = check_pairs(logits, candidates)
    usable = ~candidates.all(axis=1)
    values = _feature(logits[usable], candidates[usable], feature)
    mixture, found = None, {}
    why = "there are too few different sets for a mixture"
    if len(values) >= _FEWEST and np.ptp(values) > 1e-9:
        mixture, found = _two_groups(values, seed)
        why = _not_apart(found, _NEUTRAL[feature])
    if why:
        fallback = em(logits, candidates)
        return dataclasses.replace(
            fallback,
            separated=False,
            reason=f"{why}, so em answers instead of the mixture.",
            details=fallback.details | found,
        )
    share = float(usable.mean())
    lower = int(np.argmin(mixture.means_[:, 0]))
    posterior = np.zeros(len(logits))
    posterior[usable] = mixture.predict_proba(values[:, None])[:, lower]
    low, high = _bootstrap(values, mixture, lower, seed)
    return Estimate(
        value=share * float(mixture.weights_[lower]),
        low=share * low,
        high=share * high,
        method="gmm",
        reason=f"the {feature} of {len(values)} sets falls into two groups, "
        f"{found['ashman_d']:.1f} deviations apart (Ashman's D).",
        separated=True,
        posterior=posterior,
        details=found,
    )


def noise_posterior(ratios, seed=0):
    """Returns the probability that each set is wrong, from Eq. 6's values.

    Args:
        ratios: Array `(n,)`, as `ops.candidate_ratio` returns them; `nan` for
            an example that was not seen, `inf` for a full set.
        seed: Of the mixture's start. Defaults to `0`.

    Returns:
        A float64 array `(n,)`, or None where the ratios do not fall into two
        groups (see `gmm`). 0 for a full set, 1 where nothing is known.

    Example:

    >>> ratios = np.exp(np.r_[np.linspace(-6, -4, 50), np.linspace(4, 6, 50)])
    >>> np.round(noise_posterior(ratios)[[0, 99]])
    [1.0, 0.0]
    """
    ratios = np.asarray(ratios, "float64")
    usable = np.isfinite(ratios) & (ratios > 0)
    values = np.log(ratios[usable])
    if len(values) < _FEWEST or np.ptp(values) < 1e-9:
        return None
    sample = values
    if len(values) > _MOST:
        sample = np.random.default_rng([seed, 0x905]).choice(values, _MOST)
    mixture, found = _two_groups(sample, seed)
    if _not_apart(found, _NEUTRAL["ratio"]):
        return None
    lower = int(np.argmin(mixture.means_[:, 0]))
    posterior = np.where(np.isposinf(ratios), 0.0, 1.0)
    posterior[usable] = mixture.predict_proba(values[:, None])[:, lower]
    return posterior


def _feature(logits, candidates, feature):
    log_p = log_softmax(logits, axis=1)
    if feature == "loss":
        inside = np.where(candidates, log_p, -np.inf)
        return np.logaddexp.reduce(inside, axis=1)
    inside = np.where(candidates, log_p, -np.inf).max(axis=1)
    return inside - np.where(candidates, -np.inf, log_p).max(axis=1)


def _mixture(values, components, seed, **options):
    # Only here: it takes a second to import.
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(
        components, random_state=seed, reg_covar=1e-4, **options
    ).fit(values[:, None])


def _two_groups(values, seed):
    mixture = _mixture(values, 2, seed)
    order = np.argsort(mixture.means_[:, 0])
    means = mixture.means_[order, 0]
    deviations = np.sqrt(mixture.covariances_[order, 0, 0])
    one = _mixture(values, 1, seed).bic(values[:, None])
    spread = np.sqrt((deviations**2).sum() / 2)
    return mixture, {
        "ashman_d": float((means[1] - means[0]) / spread),
        "bic_gain": float(one - mixture.bic(values[:, None])),
        "means": [float(m) for m in means],
        "deviations": [float(d) for d in deviations],
    }


def _not_apart(found, neutral):
    """Says why the groups of a mixture are none; "" if they are two."""
    if found["bic_gain"] < GAIN:
        return "one normal distribution fits as well as two"
    if found["ashman_d"] < APART:
        return (
            f"the two groups overlap (Ashman's D {found['ashman_d']:.1f}, "
            f"below {APART:g})"
        )
    low, high = found["means"]
    if not low < neutral < high:
        return "the two groups are no right and wrong sets, only surer ones"
    return ""


def _bootstrap(values, mixture, lower, seed):
    """The 95 % interval of the lower component's weight."""
    stream = np.random.default_rng([seed, 0x6A77])
    start = {
        "weights_init": mixture.weights_,
        "means_init": mixture.means_,
        "precisions_init": 1 / mixture.covariances_,
    }
    weights = []
    for _ in range(_RESAMPLES):
        sample = stream.choice(values, len(values))
        weights.append(_mixture(sample, 2, seed, **start).weights_[lower])
    low, high = np.quantile(weights, [0.025, 0.975])
    return float(low), float(high)
