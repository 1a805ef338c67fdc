"""What an audit is worth, measured where the truth is known.

    python scripts/audit_value.py AUDIT TRUTH.csv [--plain=RANKS.csv]
        [--corrected=OUT.csv --budget=500 [--random]]

AUDIT is a folder with labels.csv and review.csv. Prints, for the items ranked
by suspicion, which share of the first 1, 2, 5 and 10 % truly lie outside their
set (precision), and which share of all such items these are (recall); the same
for --plain, a file of `alim_keras.predict --top_k=C`, ranked by the share of
probability outside the set, which is the order of a plain classifier's loss.
With --corrected it writes the sets as a list table, the first --budget items of
review.csv (or as many at random) with their true label as the whole set: what
a person would have made of them.
"""

import argparse
import csv
import json
import pathlib

import numpy as np

BUDGETS = (0.01, 0.02, 0.05, 0.1)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def report(name, score, wrong):
    order = np.argsort(-score, kind="stable")
    cells = []
    for budget in BUDGETS:
        chosen = wrong[order[: round(budget * len(order))]]
        cells.append(f"{chosen.mean():.3f} / {chosen.sum() / wrong.sum():.3f}")
    print(f"| {name} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("audit", type=pathlib.Path)
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("--plain", type=pathlib.Path)
    parser.add_argument("--corrected", type=pathlib.Path)
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--random", action="store_true")
    given = parser.parse_args()
    truth = {row["id"]: row["label"] for row in read(given.truth)}
    rows = read(given.audit / "labels.csv")
    ids = [row["id"] for row in rows]
    sets = [json.loads(row["candidates"]) for row in rows]
    wrong = np.array([truth[i] not in s for i, s in zip(ids, sets)])
    called = np.array([row["outside"] == "1" for row in rows])
    hits = (called & wrong).sum()
    print(
        f"{len(ids)} items, {wrong.sum()} truly outside; called outside "
        f"{called.sum()}, of these {hits} truly ({hits / called.sum():.3f}), "
        f"which is {hits / wrong.sum():.3f} of all"
    )
    right = np.mean([row["label"] == truth[row["id"]] for row in rows])
    print(f"settled labels right: {right:.4f}")
    report("suspicion", np.array([float(r["suspicion"]) for r in rows]), wrong)
    if given.plain:
        by_name = {pathlib.Path(r["id"]).name: r for r in read(given.plain)}
        loss = []
        for one, members in zip(ids, sets):
            row = by_name[one]
            inside = sum(
                float(row[name.replace("label", "probability")])
                for name, label in row.items()
                if name.startswith("label") and label in members
            )
            loss.append(1.0 - inside)
        loss = np.array(loss)
        report("plain loss", loss, wrong)
    review = [row["id"] for row in read(given.audit / "review.csv")]
    ranks = [int(row["rank"]) for row in read(given.audit / "review.csv")]
    review = [one for _, one in sorted(zip(ranks, review))]
    seen = set(review[: given.budget])
    place = np.array([one in seen for one in ids])
    print(
        f"of the first {place.sum()} of the review list {wrong[place].sum()} "
        "are truly outside"
    )
    if given.corrected:
        if given.random:
            stream = np.random.default_rng(0)
            seen = set(stream.permutation(ids)[: given.budget])
        with open(given.corrected, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("id", "candidates"))
            for one, members in zip(ids, sets):
                members = [truth[one]] if one in seen else members
                writer.writerow((one, json.dumps(members)))


if __name__ == "__main__":
    main()
