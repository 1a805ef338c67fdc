"""True answers on the first items of three lists, to see what they are worth.

    python -m alim_keras.audit RUN --review=1000
    python scripts/review_value.py RUN TRUTH.csv OUT
    python -m alim_keras.train ... --known_as_sets \\
      --known_labels=OUT/review_300.csv

RUN was trained on one label an item, on the features of a frozen network.
Writes 100, 300 and 1,000 answers in the order of review.csv; by cleanlab's
self-confidence (the probability of the given label, of a logistic regression
in five folds on the same features); and at random.
"""

import argparse
import pathlib

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import normalize

from alim_keras.app import build
from alim_keras.audit import COMMAND

BUDGETS = (100, 300, 1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with build.open_run(COMMAND.parse([given.run]), lock=False) as opened:
        training = opened.training
    features = training.images[:, 0, 0]
    features = normalize(features - features.mean(axis=0))
    labels = training.sets.indices
    folds = StratifiedKFold(5, shuffle=True, random_state=given.seed)
    fit = LogisticRegression(C=20, max_iter=300)
    sure = cross_val_predict(
        fit, features, labels, cv=folds, method="predict_proba"
    )[np.arange(len(labels)), labels]
    review = pd.read_csv(pathlib.Path(given.run) / "review.csv", dtype=str)
    stream = np.random.default_rng(given.seed)
    orders = {
        "review": review.sort_values("rank", key=pd.to_numeric)["id"],
        "self_confidence": training.ids[np.argsort(sure, kind="stable")],
        "random": stream.permutation(training.ids),
    }
    truth = pd.read_csv(given.truth, dtype=str).set_index("id")
    given.out.mkdir(parents=True, exist_ok=True)
    for name, ids in orders.items():
        for budget in BUDGETS:
            path = given.out / f"{name}_{budget}.csv"
            truth.loc[list(ids[:budget])].to_csv(path)


if __name__ == "__main__":
    main()
