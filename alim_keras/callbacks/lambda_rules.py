"""How ALIM sets lambda at the end of an epoch, one class per rule.

A rule writes `lam` and its factors into the table's weights, so that a
checkpoint holds them and a compiled step sees them.
"""

import numpy as np

from alim_keras.instance_lambda import instance_lambda
from alim_keras.noise_rate.gmm import noise_posterior


def make_rule(lam, per_class=False, protocol="flip", ambiguity=None):
    """Returns the rule for the arguments of `callbacks.ALIM`.

    Raises:
        ValueError: If the arguments do not go together.
    """
    if per_class and lam != "adaptive":
        raise ValueError(
            "Argument `per_class=True` is for `lam='adaptive'`. "
            f"Received: lam={lam!r}"
        )
    if lam == "instance":
        return Instance(protocol, ambiguity)
    if lam == "adaptive":
        return AdaptivePerClass() if per_class else Adaptive()
    return Fixed(lam)


def reset(table, known=None):
    """Sets lambda to 0 and its factors to 1; to 0 for `known` examples."""
    table.lam.assign(0.0)
    table.lam_by_size.assign(np.ones(table.lam_by_size.shape))
    table.lam_by_class.assign(np.ones(table.lam_by_class.shape))
    if table.quantile == "exact":
        table.noise_posterior.assign(np.ones(table.noise_posterior.shape))
    keep(table, known)


def keep(table, known):
    """Sets the factor of lambda of some examples to 0.

    Args:
        table: A table with `quantile="exact"`.
        known: Bool `(N,)`, or None.
    """
    if known is not None:
        posterior = np.array(table.noise_posterior.numpy())
        table.noise_posterior.assign(np.where(known, 0.0, posterior))


class Fixed:
    """The same lambda after the warm-up."""

    def __init__(self, lam):
        self.lam = lam

    def apply(self, table, noise_rate):
        """Sets lambda for the next epoch."""
        del noise_rate
        table.lam.assign(self.lam)

    def value(self, table):
        """Returns the lambda to log."""
        return float(table.lam.numpy())


class Adaptive(Fixed):
    """Eq. 6: the quantile of the candidate ratios at the noise rate."""

    def __init__(self):
        super().__init__("adaptive")

    def apply(self, table, noise_rate):
        """Sets lambda for the next epoch."""
        table.lam.assign(table.adaptive_lambda(noise_rate))


class AdaptivePerClass(Adaptive):
    """Eq. 6 for each class that a label could leave its set for."""

    def apply(self, table, noise_rate):
        """Sets lambda for the next epoch."""
        table.lam.assign(1.0)
        table.lam_by_class.assign(table.adaptive_lambda_by_class(noise_rate))

    def value(self, table):
        """Returns the mean over the classes."""
        return float(table.lam.numpy() * np.mean(table.lam_by_class.numpy()))


class Instance:
    """The closed form for each set size, times the noise posterior.

    The posterior is a mixture's, of the epoch's candidate ratios; 1 where
    they do not fall into two groups, or are not kept for each example.
    """

    def __init__(self, protocol, ambiguity):
        self.protocol, self.ambiguity = protocol, ambiguity
        # Says at once what is wrong.
        instance_lambda(0.0, [1], 2, protocol, ambiguity)

    def apply(self, table, noise_rate):
        """Sets lambda for the next epoch."""
        sizes = np.arange(table.num_classes + 1)
        by_size = instance_lambda(
            min(noise_rate, 1.0),
            np.maximum(sizes, 1),
            table.num_classes,
            self.protocol,
            self.ambiguity,
        )
        table.lam.assign(1.0)
        table.lam_by_size.assign(np.clip(by_size, 0.0, 1.0))
        if table.quantile == "exact":
            ratios = table.candidate_ratio.numpy()
            posterior = noise_posterior(ratios)
            if posterior is None:
                posterior = np.ones(len(ratios))
            table.noise_posterior.assign(posterior)

    def value(self, table):
        """Returns the mean over the examples of the epoch that ends."""
        return table.mean_lambda()
