"""Which estimator to take, from what is at hand."""

# Sets that are not full, from which em's interval is narrow enough: mostly 0.05
# or less to either side.
ENOUGH = 1000


def choose(num_held_out, num_labels=0):
    """Chooses an estimator.

    Args:
        num_held_out: How many examples are held out whose set is not full.
        num_labels: How many true labels are given. Defaults to `0`.

    Returns:
        A pair: `"annotated"`, `"em"` or `"cv"`, and why, a sentence.

    Example:

    >>> choose(5000)[0], choose(200)[0]
    ('em', 'cv')
    """
    if num_labels:
        return "annotated", (
            f"{num_labels} true labels are given, and they need no assumption "
            "about sets or network."
        )
    if num_held_out >= ENOUGH:
        return "em", (
            f"{num_held_out} held-out sets are enough for a narrow interval, "
            "and cost nothing more."
        )
    return "cv", (
        f"{num_held_out} held-out sets are too few for a narrow interval "
        f"(below {ENOUGH}), so all training sets take part."
    )
