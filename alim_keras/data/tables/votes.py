"""Making sets of what was said, by stated rules."""

import dataclasses

import numpy as np

from alim_keras.data.messages import first_five
from alim_keras.data.tables.labels import Votes
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError

EMPTY_SET = ("error", "all", "drop")
DUPLICATES = ("error", "union", "first")


@dataclasses.dataclass(frozen=True)
class Rules:
    """How answers become sets; see `read_labels`."""

    min_votes: int = 1
    min_confidence: float = None
    none_of_these: tuple = ()
    empty_set: str = "error"
    duplicates: str = "error"
    answered: object = None

    def __post_init__(self):
        for name, known in (
            ("empty_set", EMPTY_SET),
            ("duplicates", DUPLICATES),
        ):
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"One of {', '.join(known)} was expected. "
                    f"Received: --{name}={getattr(self, name)}"
                )
        votes = self.min_votes
        if isinstance(votes, bool) or votes != int(votes) or votes < 1:
            raise ConfigError(
                "A whole number from 1 was expected. "
                f"Received: --min_votes={votes}"
            )
        confidence = self.min_confidence
        if confidence is not None and not np.isfinite(confidence):
            raise ConfigError(
                "A finite number was expected. "
                f"Received: --min_confidence={confidence}"
            )

    def describe(self):
        """Returns the rule as text."""
        text = "every class that somebody named"
        if self.min_votes > 1:
            text = f"every class with at least {self.min_votes} votes"
        if self.min_confidence is not None:
            text += f" of confidence {self.min_confidence:g} or more"
        return text


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """Who named which class of which item, as it stands in the file.

    Args:
        ids: Strings `(num_items,)`, unique, in the order of appearance.
        records: int64 `(num_records,)`: the item of each row of the table.
        rows: int64 `(num_answers,)`: the row of the table of each answer.
        annotators: int32 `(num_answers,)`.
        classes: int32 `(num_answers,)`; no answer is `NOTHING`.
        confidences: float32 `(num_answers,)`, or None.
        annotator_names: Strings, or None where nobody is named.
        whole: Whether a row says all there is on its item (list, wide,
            multi-hot), so that two rows with one id contradict each other.
        place: Function from a row of the table to its place, as text.
    """

    ids: np.ndarray
    records: np.ndarray
    rows: np.ndarray
    annotators: np.ndarray
    classes: np.ndarray
    confidences: np.ndarray
    annotator_names: tuple
    whole: bool
    place: object

    def only(self, keep):
        """Returns the answers of a bool or index array."""
        chosen = self.confidences
        return dataclasses.replace(
            self,
            rows=self.rows[keep],
            annotators=self.annotators[keep],
            classes=self.classes[keep],
            confidences=None if chosen is None else chosen[keep],
        )

    def named(self, items):
        """Names up to five items by id and place."""
        first = {}
        wanted = [int(item) for item in items[:6]]
        for item in wanted:
            row = int(np.argmax(self.records == item))
            first[item] = f"{self.ids[item]} ({self.place(row)})"
        return first_five(list(first.values()))


def merge_duplicates(answers, policy, findings):
    """Settles what counts where an id stands in several rows.

    Rows that say the same are one. Rows that differ are refused, united or
    left out after the first.
    """
    num_records = len(answers.records)
    if not answers.whole or num_records == len(answers.ids):
        return answers
    counts = np.bincount(answers.records, minlength=len(answers.ids))
    repeated = counts > 1
    first_rows = np.full(len(answers.ids), num_records)
    np.minimum.at(first_rows, answers.records, np.arange(num_records))
    differs = _that_differ(answers, repeated, first_rows)
    if len(differs) and policy == "error":
        raise DataError(
            f"{len(differs)} ids have rows that differ: "
            f"{answers.named(differs)}; keep one of each, or say what counts "
            "with --duplicates=union or --duplicates=first"
        )
    findings.count("duplicate_rows", num_records - len(answers.ids))
    equal = int((counts[repeated] - 1).sum())
    if len(differs):
        what = "united" if policy == "union" else "only the first was kept"
        findings.note(f"{len(differs)} ids have rows that differ: {what}")
        findings.count("duplicates_differ", len(differs))
        equal -= int((counts[differs] - 1).sum())
    if equal:
        findings.note(f"{equal} rows repeat an id and say the same: left out")
    united = np.zeros(len(answers.ids), bool)
    if policy == "union":
        united[differs] = True
    items = answers.records[answers.rows]
    return answers.only((answers.rows == first_rows[items]) | united[items])


def _that_differ(answers, repeated, first_rows):
    """Returns the items with a row that says something else than the first.

    Args:
        answers: `Answers`.
        repeated: Bool `(num_items,)`, those with several rows.
        first_rows: int64 `(num_items,)`, the first row of each.

    Returns:
        int64, ascending.
    """
    leads = first_rows[answers.records]
    said = [answers.rows, answers.annotators, answers.classes]
    here = repeated[answers.records[answers.rows]]
    said = np.stack([values[here].astype(np.int64) for values in said])
    said = said[:, np.lexsort(said[::-1])]
    new = np.ones(said.shape[1], bool)
    new[1:] = (said[:, 1:] != said[:, :-1]).any(0)
    rows, *said = said[:, new]
    lengths = np.bincount(rows, minlength=len(leads))
    starts = np.cumsum(lengths) - lengths
    is_other = lengths != lengths[leads]
    # Rows of one length are compared with their lead, answer by answer.
    one = np.flatnonzero(~is_other[rows])
    other = one - starts[rows[one]] + starts[leads[rows[one]]]
    for values in said:
        is_other[rows[one[values[one] != values[other]]]] = True
    return np.unique(answers.records[is_other])


def count_once(answers, findings):
    """Drops what one annotator said twice of one item."""
    items = answers.records[answers.rows]
    confidence = answers.confidences
    last = np.zeros(len(items)) if confidence is None else -confidence
    order = np.lexsort((last, answers.classes, answers.annotators, items))
    same = np.ones(len(order), bool)
    for values in (items, answers.annotators, answers.classes):
        values = values[order]
        same[1:] &= values[1:] == values[:-1]
    if len(same):
        same[0] = False
    repeated = int(same.sum())
    if repeated:
        examples = np.unique(items[order[same]])
        what = "votes" if answers.annotator_names is not None else "classes"
        findings.note(
            f"{repeated} {what} are repeated within an item and count once, "
            f"{len(examples)} items, the first {answers.ids[examples[0]]}"
        )
        findings.count("repeated_votes", repeated)
    return answers.only(order[~same])


def to_sets(answers, class_names, rules, findings, answered=None):
    """Returns the sets, the votes behind them and which items are kept.

    Args:
        answers: `Answers`.
        class_names: Strings.
        rules: `Rules`.
        findings: `Findings`.
        answered: bool `(num_items,)`: whose true class is to be their set.
            Without a class of their own they are open to any until then.

    Returns:
        Bool `(num_kept, num_classes)`, `Votes` or None, and int64
        `(num_kept,)` into the ids.

    Raises:
        DataError: An item is left without a class and the rules say error.
    """
    num_items, num_classes = len(answers.ids), len(class_names)
    if answers.confidences is not None and rules.min_confidence is not None:
        keep = answers.confidences >= rules.min_confidence
        if not keep.all():
            findings.note(
                f"{np.sum(~keep)} votes are weaker than "
                f"{rules.min_confidence:g}: dropped"
            )
            findings.count("weak_votes", np.sum(~keep))
        answers = answers.only(keep)
    items = answers.records[answers.rows]
    sets = np.zeros((num_items, num_classes), bool)
    if rules.min_votes == 1:
        sets[items, answers.classes] = True
    else:
        pairs, count = np.unique(
            items * num_classes + answers.classes, return_counts=True
        )
        pairs = pairs[count >= rules.min_votes]
        sets[pairs // num_classes, pairs % num_classes] = True
        findings.note(
            f"{np.sum(count < rules.min_votes)} classes of items have fewer "
            f"than {rules.min_votes} votes and are in no set"
        )
    kept = np.arange(num_items)
    empty = np.flatnonzero(~sets.any(1))
    if answered is not None:
        open_ones = empty[answered[empty]]
        empty = empty[~answered[empty]]
        sets[open_ones] = True
        if len(open_ones):
            findings.note(
                f"{len(open_ones)} sets are empty, ids "
                f"{answers.named(open_ones)}: their true labels are known"
            )
            findings.count("empty_sets_answered", len(open_ones))
    if len(empty):
        if rules.empty_set == "error":
            why = f" at --min_votes={rules.min_votes}"
            raise DataError(
                f"{len(empty)} candidate sets are empty"
                f"{why if rules.min_votes > 1 else ''}, ids "
                f"{answers.named(empty)}; name a class for each, or say what "
                "they mean with --empty_set=all (any class) or "
                "--empty_set=drop (leave them out)"
            )
        findings.count("empty_sets", len(empty))
        shown = f"{len(empty)} sets are empty, ids {answers.named(empty)}"
        if rules.empty_set == "all":
            sets[empty] = True
            findings.note(f"{shown}: given all classes")
        else:
            kept = np.delete(kept, empty)
            sets = sets[kept]
            findings.note(f"{shown}: left out")
    unused = np.flatnonzero(~sets.any(0))
    if len(unused):
        findings.note(
            f"{len(unused)} classes are in no set: "
            f"{first_five([class_names[one] for one in unused])}"
        )
        findings.count("unused_classes", len(unused))
    if answers.annotator_names is None:
        return sets, None, kept
    votes = Votes(
        items.astype(np.int64),
        answers.annotators.astype(np.int32),
        answers.classes.astype(np.int32),
        answers.confidences,
        tuple(answers.annotator_names),
    )
    if len(kept) < num_items:
        votes = votes.select(kept)
    return sets, votes, kept
