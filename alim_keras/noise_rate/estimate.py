"""What an estimator of the noise rate answers."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of eta, the share of sets that miss the true label.

    Args:
        value: Float in `[0, 1]`.
        low: Float, lower end of the 95 % interval.
        high: Float, upper end.
        method: String, the estimator: `"em"`, `"cv"`, `"gmm"`, `"annotated"`.
        reason: String, one sentence: what the estimate rests on, or why this
            estimator was taken.
        separated: Boolean, whether a mixture found two groups; None where
            there is no mixture.
        posterior: Float array `(n,)`: of each example that the estimate
            rests on, the probability that its set is wrong. None where the
            estimator has none.
        details: Dict of plain values: numbers that explain the estimate.
    """

    value: float
    low: float
    high: float
    method: str
    reason: str
    separated: bool | None = None
    posterior: np.ndarray | None = None
    details: dict = dataclasses.field(default_factory=dict)

    def describe(self):
        """Returns one line for people."""
        return (
            f"Noise rate {self.value:.3f} (95 % interval {self.low:.3f} to "
            f"{self.high:.3f}) by {self.method}: {self.reason}"
        )

    def as_dict(self):
        """Returns plain values for JSON, without the posterior."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "method": self.method,
            "reason": self.reason,
            "separated": self.separated,
            "details": self.details,
        }

    @classmethod
    def from_dict(cls, found):
        """Returns the estimate that `as_dict` described."""
        return cls(**found)
