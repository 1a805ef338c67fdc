"""The audit's rankings beside cleanlab's, on the same predictions.

    pip install cleanlab
    python scripts/against_cleanlab.py FOLDER RUN

FOLDER is what `scripts/cifar10n.py folder` wrote; RUN was trained on its
labels.csv. Trains three networks, which predict what they did not see, as
`python -m alim_keras.audit RUN --folds=3` does. Prints, of the
single labels of the first person and of the union of all, the precision and
recall of the most suspect 5 % and the average precision; then how the two
tools' masks and their consensus labels compare.
"""

import argparse
import csv
import pathlib

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.multiannotator import get_label_quality_multiannotator
from cleanlab.rank import get_label_quality_scores
from sklearn.metrics import average_precision_score

from alim_keras.app import build
from alim_keras.app import noise
from alim_keras.audit import COMMAND
from alim_keras.data import CandidateSets
from alim_keras.data.tables import read_labels
from alim_keras.report import examine

BUDGET = 0.05


def line(task, name, score, wrong):
    first = np.argsort(-score, kind="stable")[: round(BUDGET * len(score))]
    hits = wrong[first].sum()
    print(
        f"| {task} | {name} | {hits / len(first):.3f} | "
        f"{hits / wrong.sum():.3f} | "
        f"{average_precision_score(wrong, score):.3f} |"
    )


def mask(name, found, wrong):
    print(
        f"{name} flags {found.sum():,}, {wrong[found].mean():.3f} rightly, "
        f"{found[wrong].mean():.3f} of all"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("run", type=pathlib.Path)
    given = parser.parse_args()
    with build.open_run(COMMAND.parse([str(given.run)]), lock=False) as opened:
        config, training = opened.config, opened.training
        ids = training.ids
        probabilities = noise.fold_probabilities(config, training, folds=3)
    candidates, votes, _ = read_labels(given.folder / "labels.csv")
    names = candidates.class_names
    sets = candidates.select(ids).dense()
    wide = votes.pivot_table(
        index="item",
        columns="annotator",
        values="label",
        aggfunc=lambda labels: names.index(labels.iloc[0]),
    ).reindex(ids)
    with open(given.folder / "truth.csv", encoding="utf-8") as file:
        found = {row["id"]: row["label"] for row in csv.DictReader(file)}
    truth = np.array([names.index(found[one]) for one in ids])
    right = (probabilities.argmax(axis=1) == truth).mean()
    print(f"{len(ids)} examples; the predictions are right for {right:.3f}")

    def audit(sets, votes=None):
        return examine(
            probabilities.astype("float32"),
            CandidateSets.from_dense(sets, ids, names),
            kind="folds",
            votes=votes,
        )

    single = wide["person1"].to_numpy("int64")
    wrong = single != truth
    ours = audit(np.eye(len(names), dtype=bool)[single])
    task = f"one person ({wrong.mean():.1%} wrong)"
    line(task, "suspicion", ours.labels["suspicion"].to_numpy(), wrong)
    for method in ("self_confidence", "normalized_margin"):
        quality = get_label_quality_scores(single, probabilities, method=method)
        line(task, f"cleanlab {method}", 1 - quality, wrong)
    mask("outside", ours.labels["outside"].to_numpy(bool), wrong)
    mask("find_label_issues", find_label_issues(single, probabilities), wrong)
    print(f"suspect: {ours.summary['suspect']:.0f} of {wrong.sum()}")

    wrong = ~sets[np.arange(len(ids)), truth]
    task = f"union ({wrong.mean():.1%} wrong)"
    ours = audit(sets, votes)
    line(task, "suspicion, votes", ours.labels["suspicion"].to_numpy(), wrong)
    alone = audit(sets).labels["suspicion"].to_numpy()
    line(task, "suspicion, sets only", alone, wrong)
    crowd = get_label_quality_multiannotator(
        wide.reset_index(drop=True), probabilities, verbose=False
    )["label_quality"]
    quality = crowd["consensus_quality_score"].to_numpy()
    line(task, "1 - CROWDLAB's quality", 1 - quality, wrong)
    inside = np.where(sets, probabilities, 0).sum(axis=1)
    line(task, "the set's loss", -np.log(inside), wrong)
    print(f"suspect: {ours.summary['suspect']:.0f} of {wrong.sum()}")
    code = {name: number for number, name in enumerate(names)}
    settled = ours.labels["label"].map(code).to_numpy()
    doubt = 1 - ours.labels["probability"].to_numpy()
    consensus = crowd["consensus_label"].to_numpy()
    for name, found, score in (
        ("settled label", settled, doubt),
        ("CROWDLAB's consensus", consensus, 1 - quality),
    ):
        wrong = found != truth
        print(
            f"{name} right: {1 - wrong.mean():.4f}; its errors by its own "
            f"quality, AP {average_precision_score(wrong, score):.3f}"
        )


if __name__ == "__main__":
    main()
