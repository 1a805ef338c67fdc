"""The lambda that each example should have, in closed form.

Assumption 1 of the paper: given the true label, the candidate set S does not
depend on the image x. Then Bayes's rule gives

    P(y | x, S) ~ P(y | x) P(S | y),

which is Eq. 3 with `norm="scale"` and K = 1, and lambda is the ratio
`P(S | y outside S) / P(S | y inside S)`. It depends on how sets come about
and on the size of S, and not on the image; docs/noise_rate.md derives it.
"""

import numpy as np

PROTOCOLS = ("flip", "pico", "size")


def instance_lambda(
    noise_rate, set_size, num_classes, protocol="flip", ambiguity=None
):
    """Returns lambda(x) from the noise rate and the size of the set.

    - `"flip"` (the true label is swapped for a non-candidate at rate eta) and
      `"size"` (nothing is known but that sets of one size are equally likely,
      with the noise rate of that size): `eta s / ((1 - eta) (C - s))`;
    - `"pico"` (every wrong label is drawn with probability q, the true one
      with 1 - eta): `eta q / ((1 - eta) (1 - q))`.

    Args:
        noise_rate: eta in `[0, 1)`, a number or an array like `set_size`.
        set_size: s, integers from 1 to C, any shape.
        num_classes: C.
        protocol: `"flip"`, `"pico"` or `"size"`. Defaults to `"flip"`.
        ambiguity: q in `[0, 1)`, for `"pico"` only.

    Returns:
        A float64 array shaped like `set_size`, 0 or more. Not clamped: above
        1 where a label outside the set is the likelier one. 0 for a full set,
        which cannot be wrong.

    Raises:
        ValueError: If the protocol is none of these, or `"pico"` without q.

    Example:

    >>> instance_lambda(0.2, [1, 2, 4], num_classes=4)  # 1/4 * s / (4 - s)
    [0.08333333, 0.25, 0.0]
    """
    size = np.asarray(set_size, "float64")
    noise_rate = np.asarray(noise_rate, "float64")
    if protocol not in PROTOCOLS:
        raise ValueError(
            f"Argument `protocol` must be one of {PROTOCOLS}. "
            f"Received: protocol={protocol!r}"
        )
    odds = noise_rate / np.maximum(1.0 - noise_rate, 1e-12)
    outside = num_classes - size
    if protocol == "pico":
        if ambiguity is None or not 0 <= ambiguity < 1:
            raise ValueError(
                "Argument `protocol='pico'` needs `ambiguity`, the probability "
                "in [0, 1) that a wrong label is a candidate. "
                f"Received: ambiguity={ambiguity}"
            )
        lam = odds * ambiguity / (1.0 - ambiguity) * np.ones_like(size)
    else:
        lam = odds * size / np.maximum(outside, 1.0)
    return np.where(outside > 0, lam, 0.0)
