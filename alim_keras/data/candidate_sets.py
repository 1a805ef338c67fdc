"""`CandidateSets`: which classes each example may have, joined by id."""

import dataclasses
import functools
import hashlib

import numpy as np

from alim_keras.data import candidate_file
from alim_keras.data.checks import check_text
from alim_keras.data.messages import first_five
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


def default_ids(num_examples, split="train"):
    """Returns "train_00000", "train_00001" and so on as a string array.

    Numbers have at least five digits and one length, so that the order of
    the ids is the order of the numbers.
    """
    return numbered_ids(range(num_examples), split)


def numbered_ids(places, split):
    """Returns the ids of some official places, as a string array."""
    digits = max(5, len(str(max(places, default=0))))
    return np.array([f"{split}_{place:0{digits}d}" for place in places], str)


@dataclasses.dataclass(frozen=True, eq=False)
class CandidateSets:
    """The candidate set of every example of a training set.

    Args:
        ids: Strings `(num_examples,)`, unique.
        sets: Bool `(num_examples, num_classes)`; no row is empty.
        class_names: Strings `(num_classes,)`. Defaults to the numbers.
        provenance: Dict of plain values: how the sets came about. It is kept
            in the file and shown, and is no part of the hash.
        source: String, the file the sets were read from, for messages.

    Raises:
        DataError: Shapes that do not fit, ids not unique or no UTF-8 text,
            an empty set.

    Example:

    >>> found = CandidateSets(["a", "b"], [[True, False], [True, True]])
    >>> found.align(["b", "a"]).tolist()
    [[True, True], [True, False]]
    """

    ids: np.ndarray
    sets: np.ndarray
    class_names: tuple = None
    provenance: dict = dataclasses.field(default_factory=dict)
    source: str = "the candidate sets"

    def __post_init__(self):
        ids = np.asarray(self.ids, str)
        sets = np.array(self.sets, bool, ndmin=2)
        names = self.class_names
        if names is None:
            names = [str(index) for index in range(sets.shape[1])]
        names = tuple(str(name) for name in names)
        if ids.shape != (len(sets),):
            raise DataError(
                f"{self.source}: one id for each set was expected. "
                f"Received: {ids.size} ids, {len(sets)} sets"
            )
        if len(names) != sets.shape[1] or len(set(names)) != len(names):
            raise DataError(
                f"{self.source}: one name for each of the {sets.shape[1]} "
                f"classes was expected, all different. Received: "
                f"{len(names)} names, {len(set(names))} different"
            )
        if not len(sets):
            raise DataError(f"{self.source}: there are no candidate sets")
        check_text(self.source, "ids", ids)
        check_text(self.source, "class names", np.array(names, str))
        values, counts = np.unique(ids, return_counts=True)
        if np.any(counts > 1):
            raise DataError(
                f"{self.source}: {np.sum(counts > 1)} ids occur more than "
                f"once: {first_five(values[counts > 1])}; every example needs "
                "one set"
            )
        empty = np.flatnonzero(~sets.any(1))
        if len(empty):
            raise DataError(
                f"{self.source}: {len(empty)} candidate sets are empty, ids "
                f"{first_five(ids[empty])}; give each at least one class"
            )
        for array in (ids, sets):
            array.setflags(write=False)
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "class_names", names)
        object.__setattr__(self, "provenance", dict(self.provenance))

    def __len__(self):
        return len(self.sets)

    @property
    def num_classes(self):
        """Integer C."""
        return self.sets.shape[1]

    @functools.cached_property
    def content_hash(self):
        """SHA-256 of ids, class names and sets, 64 hexadecimal digits.

        The rows enter in the order of their ids, so the order in which they
        are stored does not matter; the order of the classes does. The
        provenance does not enter.
        """
        digest = hashlib.sha256()

        def absorb(data):
            digest.update(len(data).to_bytes(8, "little") + data)

        absorb(b"alim_keras candidate sets 1")
        absorb(str(self.sets.shape).encode())
        for name in self.class_names:
            absorb(name.encode())
        encoded = [str(one).encode() for one in self.ids]
        order = sorted(range(len(encoded)), key=encoded.__getitem__)
        for row in order:
            absorb(encoded[row])
        absorb(np.packbits(self.sets[order], axis=1).tobytes())
        return digest.hexdigest()

    def align(self, ids, where="the images"):
        """Returns the sets in the order of `ids`, joined by id.

        Args:
            ids: Strings `(n,)`, unique; sets of other ids are left out.
            where: String, the file or object the ids come from.

        Returns:
            Bool `(n, num_classes)`.

        Raises:
            DataError: Some ids have no set, or one occurs twice.
        """
        return self.sets[self._rows_of(ids, where)]

    def select(self, ids, where="the images"):
        """Returns the `CandidateSets` of some ids, in their order."""
        if np.array_equal(self.ids, ids):
            return self
        rows = self._rows_of(ids, where)
        provenance = dict(self.provenance)
        if len(rows) < len(self):
            # These two were counted over all examples.
            for name in ("realised_noise", "left_clean"):
                provenance.pop(name, None)
            provenance["selected_from"] = len(self)
        return dataclasses.replace(
            self,
            ids=self.ids[rows],
            sets=self.sets[rows],
            provenance=provenance,
        )

    def _rows_of(self, ids, where):
        ids = np.asarray(ids, str).reshape(-1)
        if np.array_equal(self.ids, ids):
            # Looking up a million takes seconds.
            return np.arange(len(ids))
        order = np.argsort(self.ids, kind="stable")
        place = np.searchsorted(self.ids, ids, sorter=order)
        rows = order[np.minimum(place, len(order) - 1)]
        missing = self.ids[rows] != ids
        if missing.any():
            raise DataError(
                f"{missing.sum()} of the {len(ids)} examples in {where} have "
                f"no candidate set among the {len(self)} in {self.source}: "
                f"{first_five(ids[missing])}; make the ids of both the same"
            )
        if len(np.unique(ids)) != len(ids):
            raise DataError(
                f"{where}: {len(ids) - len(np.unique(ids))} of {len(ids)} ids "
                "repeat another; every example needs an id of its own"
            )
        return rows

    def statistics(self, labels=None):
        """Returns counts and shares that show what the sets give away.

        Args:
            labels: Optional integers `(num_examples,)`, the true classes in
                the order of `ids`, -1 where not known; for reporting only.

        Returns:
            Dict: num_examples, num_classes, size_min, size_mean, size_max,
            share_single, share_full, asked_ambiguity, asked_noise,
            realised_noise and left_clean (how many could not be made noisy);
            None where it is not known.
        """
        sizes = self.sets.sum(1)
        known = self.provenance.get
        noise = known("realised_noise")
        if labels is not None:
            labels = np.asarray(labels)
            if labels.shape != (len(self),):
                raise DataError(
                    "`labels` must have one entry for each set. Received: "
                    f"shape={labels.shape}, {len(self)} sets"
                )
            rows = np.flatnonzero(labels >= 0)
            if len(rows):
                noise = 1.0 - float(self.sets[rows, labels[rows]].mean())
        return {
            "num_examples": len(self),
            "num_classes": self.num_classes,
            "size_min": int(sizes.min()),
            "size_mean": float(sizes.mean()),
            "size_max": int(sizes.max()),
            "share_single": float(np.mean(sizes == 1)),
            "share_full": float(np.mean(sizes == self.num_classes)),
            "asked_ambiguity": known("ambiguity"),
            "asked_noise": known("noise_level"),
            "realised_noise": noise,
            "left_clean": known("left_clean"),
        }

    def describe(self, labels=None):
        """Returns the statistics, the settings and the hash as text."""
        found = self.statistics(labels)
        known = self.provenance.get

        def show(value, form="{:.4f}"):
            return "not known" if value is None else form.format(value)

        def share(name):
            return show(found[name], "{:.2%}")

        simulated = known("protocol") is not None
        made = [known(name) for name in ("protocol", "stream", "seed")]
        smallest, largest = show(found["size_min"], "{}"), found["size_max"]
        lines = {
            "candidate sets": f"{len(self)} examples, {self.num_classes} "
            f"classes, from {self.source}",
            "made by": "protocol {}, stream {}, seed {}".format(*made),
            "set size": f"min {smallest}, mean "
            f"{show(found['size_mean'], '{:.3f}')}, max "
            f"{show(largest, '{}')}",
            "one class only": f"{share('share_single')} (right or wrong, the "
            "label is given away)",
            "all classes": f"{share('share_full')} (they say nothing)",
            "ambiguity q": f"asked {show(found['asked_ambiguity'])}",
            "noise eta": f"asked {show(found['asked_noise'])}, realised "
            f"{show(found['realised_noise'])}",
            "left clean": f"{show(found['left_clean'], '{}')} (all classes "
            "in the set, so no class could be swapped in)",
            "content hash": self.content_hash,
        }
        if not simulated:
            for name in ("made by", "ambiguity q", "left clean"):
                lines.pop(name)
            lines["noise eta"] = f"realised {show(found['realised_noise'])}"
        return "\n".join(f"{name:<16}{value}" for name, value in lines.items())

    def save(self, path):
        """Writes the sets to an .npz file; see `candidate_file.write`."""
        if not str(path).endswith(".npz"):
            raise ConfigError(
                "The file of candidate sets must end in .npz. "
                f"Received: path={str(path)!r}"
            )
        candidate_file.write(
            path,
            ids=self.ids,
            sets=self.sets,
            class_names=np.array(self.class_names, str),
            provenance=self.provenance,
            content_hash=self.content_hash,
        )

    @classmethod
    def load(cls, path):
        """Reads an .npz file written by `save`, or one made by hand.

        A file made by hand needs `ids` (strings) and `sets` (multi-hot,
        `(num_examples, num_classes)`), and may have `class_names`.

        Raises:
            DataError: The file is missing, empty, damaged or has other
                contents than its stored hash says.
        """
        found, stored_hash = candidate_file.read(path)
        loaded = cls(source=str(path), **found)
        if stored_hash not in (None, loaded.content_hash):
            raise DataError(
                f"{path}: the contents do not fit the stored hash, the file "
                f"was changed or damaged; write it again. Received: stored "
                f"{stored_hash[:12]}, computed {loaded.content_hash[:12]}"
            )
        return loaded
