"""What a reader of tables returns: `Labels`, and the `Votes` behind them."""

import dataclasses
import io
import os

import numpy as np

from alim_keras import files
from alim_keras.data import candidate_file
from alim_keras.data.candidate_sets import CandidateSets
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class Votes:
    """Who said what of which example, one entry for each vote.

    Args:
        rows: int64 `(num_votes,)`, the example, as a row of the ids.
        annotators: int32 `(num_votes,)` into `annotator_names`.
        classes: int32 `(num_votes,)` into the class names.
        confidences: float32 `(num_votes,)`, or None.
        annotator_names: Strings.
    """

    rows: np.ndarray
    annotators: np.ndarray
    classes: np.ndarray
    confidences: np.ndarray = None
    annotator_names: tuple = ()

    def __len__(self):
        return len(self.rows)

    def select(self, rows):
        """Returns the votes on some examples, renumbered in their order.

        Args:
            rows: Integers, each once, or bool over all examples.
        """
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        size = 1 + int(max(rows.max(initial=-1), self.rows.max(initial=-1)))
        place = np.full(size, -1, np.int64)
        place[rows] = np.arange(len(rows))
        keep = np.flatnonzero(place[self.rows] >= 0)
        keep = keep[np.argsort(place[self.rows[keep]], kind="stable")]
        chosen = self.confidences
        return dataclasses.replace(
            self,
            rows=place[self.rows[keep]],
            annotators=self.annotators[keep],
            classes=self.classes[keep],
            confidences=None if chosen is None else chosen[keep],
        )

    def save(self, path):
        """Writes an .npz file without pickles, whole or not at all."""
        if not str(path).endswith(".npz"):
            raise ConfigError(
                "The file of votes must end in .npz. "
                f"Received: path={str(path)!r}"
            )
        arrays = {
            "rows": self.rows,
            "annotators": self.annotators,
            "classes": self.classes,
            "annotator_names": np.array(self.annotator_names, str),
        }
        if self.confidences is not None:
            arrays["confidences"] = self.confidences
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        files.write_atomically(path, content.getvalue())

    @classmethod
    def load(cls, path):
        """Reads a file that `save` wrote."""
        found = candidate_file.open_npz(os.fspath(path))
        try:
            return cls(
                found["rows"].astype(np.int64),
                found["annotators"].astype(np.int32),
                found["classes"].astype(np.int32),
                found.get("confidences"),
                tuple(found["annotator_names"].tolist()),
            )
        except KeyError as error:
            raise DataError(
                f"{path}: holds no votes, the array {error} is missing. "
                f"Received: {sorted(found)}"
            ) from error


@dataclasses.dataclass(frozen=True, eq=False)
class Labels:
    """What a file says that each example may be.

    Args:
        ids: Strings `(num_examples,)`, in the order of the file.
        candidates: `CandidateSets` with the same ids.
        votes: `Votes`, or None where nobody is named.
        images: A sequence of paths (strings, relative to the table's folder
            or absolute) or of encoded images (bytes); an array `(num_examples,
            height, width, channels)` of decoded ones; None if the ids name the
            files.
        features: float32 `(num_examples, num_features)`, or None.
        labels: int64 `(num_examples,)`, the true classes, -1 where one is not
            known; or None.
        notes: Lines of text: what was found, dropped and merged.
        counts: Dict of integers: rows, items, votes, annotators, and how many
            were left out for which reason.
        left_out: Strings, the ids of items that an empty set left out.
    """

    ids: np.ndarray
    candidates: CandidateSets
    votes: Votes = None
    images: object = None
    features: np.ndarray = None
    labels: np.ndarray = None
    notes: tuple = ()
    counts: dict = dataclasses.field(default_factory=dict)
    left_out: tuple = ()

    def __len__(self):
        return len(self.ids)
