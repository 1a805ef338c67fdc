"""What ALIM steers a pseudo-label table by: lambda, and what it is read off."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import ops
from alim_keras import quantile as quantiles

# Fewer ratios than this say nothing about a class of their own.
_FEWEST = 10


class Steering(keras.layers.Layer):
    """Lambda and its factors, and the candidate ratios of the current epoch.

    `PseudoLabelTable` is a `Steering` with rows; it sets `num_examples`,
    `num_classes` and `quantile`, and calls `add_steering`.

    Weights (none trainable):
        candidate_ratio: `(N,)` float32, Eq. 6's value of each example in the
            current epoch; `nan` where it was not seen yet. With
            `quantile="histogram"` instead `ratio_counts`, integers.
        rival: `(N,)`, the likeliest class outside the set, in the same epoch;
            a whole number in float32. Not with `quantile="histogram"`, no
            more than the next.
        noise_posterior: `(N,)`, a factor of lambda for each example.
        lam: Scalar lambda of Eq. 3.
        lam_by_size: `(C + 1,)`, a factor of lambda for each size of the set.
        lam_by_class: `(C,)`, a factor of lambda for each class that it weighs.
        lam_used: Pair: mean of the lambdas of this epoch's examples so far,
            and how many there were.
        noise_rate: Scalar eta in force, where one was told or estimated.
    """

    def _weight(self, name, shape=(), dtype="float32", initializer="zeros"):
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=initializer,
            trainable=False,
            dtype=dtype,
        )

    def add_steering(self):
        """Makes the weights."""
        count, num_classes = self.num_examples, self.num_classes
        if self.quantile == "exact":
            nan = keras.initializers.Constant(float("nan"))
            self.candidate_ratio = self._weight(
                "candidate_ratio", (count,), initializer=nan
            )
            self.rival = self._weight("rival", (count,))
            self.noise_posterior = self._weight(
                "noise_posterior", (count,), initializer="ones"
            )
        else:
            shape = (quantiles.NUM_BINS + 2,)
            self.ratio_counts = self._weight(
                "ratio_counts", shape, backend.INTEGER
            )
        self.lam = self._weight("lam")
        self.lam_by_size = self._weight(
            "lam_by_size", (num_classes + 1,), initializer="ones"
        )
        self.lam_by_class = self._weight(
            "lam_by_class", (num_classes,), initializer="ones"
        )
        self.lam_used = self._weight("lam_used", (2,))
        self.noise_rate = self._weight("noise_rate")

    def lam_of(self, index, candidates):
        """Returns lambda of each example and class, `(B, C)`.

        The scalar `lam` times the factors for the size of the set, for the
        example and for the class; all factors are 1 unless ALIM sets them.

        Args:
            index: Integer tensor `(B,)`.
            candidates: Multi-hot tensor `(B, C)`.
        """
        size = keras.ops.cast(keras.ops.sum(candidates, axis=-1), "int32")
        by_size = keras.ops.convert_to_tensor(self.lam_by_size)
        factor = keras.ops.take(by_size, size)
        if self.quantile == "exact":
            posterior = backend.gather_rows(self.noise_posterior, index)
            factor = factor * posterior
        factor = keras.ops.expand_dims(self.lam * factor, 1)
        by_class = keras.ops.convert_to_tensor(self.lam_by_class)
        return factor * keras.ops.expand_dims(by_class, 0)

    def record(self, index, ratio, rival, lam):
        """Notes what a step saw of the global batch, tensors `(B,)` each."""
        if self.quantile == "exact":
            backend.scatter_rows(self.candidate_ratio, index, ratio)
            backend.scatter_rows(self.rival, index, rival)
        else:
            counts = quantiles.ratio_counts(ratio)
            counts = keras.ops.cast(counts, backend.INTEGER)
            self.ratio_counts.assign(self.ratio_counts + counts)
        used = keras.ops.convert_to_tensor(self.lam_used)
        mean, count = keras.ops.unstack(used, num=2)
        added = keras.ops.sum(keras.ops.ones_like(lam))
        count = count + added
        mean = mean + (keras.ops.sum(lam) - added * mean) / count
        self.lam_used.assign(keras.ops.stack([mean, count]))

    def forget_ratios(self):
        """Marks all candidate ratios as not seen; called as an epoch begins."""
        self.lam_used.assign([0.0, 0.0])
        if self.quantile == "exact":
            nothing = keras.ops.full((self.num_examples,), float("nan"))
            self.candidate_ratio.assign(nothing)
        else:
            shape = self.ratio_counts.shape
            self.ratio_counts.assign(keras.ops.zeros(shape, backend.INTEGER))

    def assign_ratios(self, ratios, rivals=None):
        """Sets the candidate ratios of all N examples, `nan` for not seen.

        Args:
            ratios: Array `(N,)`.
            rivals: Array `(N,)`, see the weight `rival`. Needed by
                `adaptive_lambda_by_class` only.
        """
        if self.quantile == "exact":
            self.candidate_ratio.assign(ratios)
            if rivals is not None:
                self.rival.assign(rivals)
        else:
            counts = quantiles.ratio_counts(ratios)
            self.ratio_counts.assign(keras.ops.cast(counts, backend.INTEGER))

    def adaptive_lambda(self, noise_rate):
        """Eq. 6 over the candidate ratios seen in this epoch, a float."""
        if self.quantile == "exact":
            ratios = self.candidate_ratio.numpy()
            return float(ops.adaptive_lambda(ratios, noise_rate))
        counts = self.ratio_counts.numpy()
        return float(quantiles.adaptive_lambda(counts, noise_rate))

    def adaptive_lambda_by_class(self, noise_rate):
        """Eq. 6 within the examples that share a rival, `(C,)` float32.

        So about a share `noise_rate` of the examples that would go to a class
        may go there, however rare the class is. A class that is the rival of
        fewer than ten examples gets the lambda of all.

        Raises:
            ValueError: If `quantile` is not `"exact"`.
        """
        if self.quantile != "exact":
            raise ValueError(
                "A lambda for each class needs the ratio of each example: "
                "make the table with quantile='exact'. Received: "
                f"quantile={self.quantile!r}"
            )
        ratios, rivals = self.candidate_ratio.numpy(), self.rival.numpy()
        found = np.full((self.num_classes,), self.adaptive_lambda(noise_rate))
        usable = np.isfinite(ratios)
        for c in range(self.num_classes):
            mine = ratios[usable & (rivals == c)]
            if len(mine) >= _FEWEST:
                found[c] = ops.adaptive_lambda(mine, noise_rate)
        return found.astype("float32")

    def mean_lambda(self):
        """Returns the mean lambda of the examples of this epoch, a float."""
        return float(self.lam_used.numpy()[0])
