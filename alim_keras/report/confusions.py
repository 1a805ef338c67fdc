"""Which classes are mistaken for which, and what becomes of each class."""

import numpy as np

from alim_keras.noise_rate.annotated import wilson

# So many confusions stand in a class's row.
_TYPICAL = 3


class Confusions:
    """Counts what was given against what was settled, block by block.

    Args:
        num_classes: C.
    """

    def __init__(self, num_classes):
        shape = (num_classes, num_classes)
        self.matrix = np.zeros(shape)
        self.wrong = np.zeros(shape)
        self.given = np.zeros(num_classes, "int64")
        self.given_wrong = np.zeros(num_classes, "int64")
        self.settled = np.zeros(num_classes, "int64")
        self.outside = np.zeros(num_classes, "int64")
        self._sizes = np.zeros(num_classes)

    def add(self, given, label, outside):
        """Takes in sets `(n, C)`, settled labels and whether outside `(n,)`."""
        num_classes = len(self.given)
        rows, members = np.nonzero(given)
        sizes = np.bincount(rows, minlength=len(given))
        mass = 1.0 / sizes[rows]
        pairs = members * num_classes + label[rows]
        wrong = outside[rows]
        for matrix, chosen in (
            (self.matrix, slice(None)),
            (self.wrong, wrong),
        ):
            counts = np.bincount(
                pairs[chosen], mass[chosen], minlength=num_classes**2
            )
            matrix += counts.reshape(matrix.shape)

        def count(classes, weights=None):
            return np.bincount(classes, weights, minlength=num_classes)

        self.given += count(members)
        self.given_wrong += count(members[wrong])
        self.settled += count(label)
        self.outside += count(label[outside])
        self._sizes += count(members, sizes[rows])

    def frame(self, class_names):
        """Returns the pairs of classes that were confused, most often first.

        Columns: `given`; `settled`, a class outside the set; `count`, the
        number of such sets, one with s classes adding 1/s to each of its
        pairs; `share`, of all that was given as this class, likewise.
        """
        import pandas

        given, settled, counts = self._ranked()
        names = np.array([str(name) for name in class_names], object)
        mass = self.matrix.sum(axis=1)[given]
        return pandas.DataFrame(
            {
                "given": names[given],
                "settled": names[settled],
                "count": counts,
                "share": counts / mass,
            }
        )

    def classes(self, class_names):
        """Returns a row per class, the noisiest first.

        Columns: `class`; `given`, the number of sets that hold it; `settled`,
        of examples that are settled as it; `outside`, how many of these lack
        it in their set, and `outside_share`, of `settled`; `given_wrong`, how
        many of the sets that hold it are settled as a class outside, and
        `given_wrong_share`, of `given`; `mean_set_size`, of the sets that
        hold it; `confusions`, the most frequent with it. A share of nothing
        is NaN.

        They are sorted by the larger of the lower ends of the two shares' 95 %
        intervals (Wilson's), so that a class is first which is noisy for
        sure, and not one that hardly occurs.
        """
        import pandas

        names = [str(name) for name in class_names]
        typical = [[] for _ in names]
        pairs = zip(*(part.tolist() for part in self._ranked()), strict=True)
        for given, settled, count in pairs:
            text = f"{names[given]} -> {names[settled]} {count:.3g}"
            for one in (given, settled):
                if len(typical[one]) < _TYPICAL:
                    typical[one].append(text)
        frame = pandas.DataFrame(
            {
                "class": np.array(names, object),
                "given": self.given,
                "settled": self.settled,
                "outside": self.outside,
                "outside_share": _share(self.outside, self.settled),
                "given_wrong": self.given_wrong,
                "given_wrong_share": _share(self.given_wrong, self.given),
                "mean_set_size": _share(self._sizes, self.given),
                "confusions": [", ".join(texts) for texts in typical],
            }
        )
        surely = np.maximum(
            _lowest(self.outside, self.settled),
            _lowest(self.given_wrong, self.given),
        )
        order = np.lexsort((-self.outside, -surely))
        return frame.iloc[order].reset_index(drop=True)

    def _ranked(self):
        """Given class, settled class and count of each confusion, sorted."""
        given, settled = np.nonzero(self.wrong)
        counts = self.wrong[given, settled]
        order = np.argsort(-counts, kind="stable")
        return given[order], settled[order], counts[order]


def _share(part, whole):
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _lowest(part, whole):
    return np.array(
        [wilson(p, w)[0] if w else 0.0 for p, w in zip(part, whole)]
    )
