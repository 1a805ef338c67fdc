"""Tables of twelve pictures, as the tests of check use them."""

import own

SMALL = "--width=4 --batch_size=4 --queue_size=8 --holdout=0.1".split()


def table(folder, sets, head=("id", "candidates")):
    rows = [(f"{row}.png", one) for row, one in enumerate(sets)]
    return own.write_rows(folder / "labels.csv", [head, *rows])


CLEAN = ["cat|dog", "dog", "cat"] * 4
