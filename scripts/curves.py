"""Draws columns of the metrics.csv of runs against the epoch.

    python scripts/curves.py --out docs/images/cifar.png \
        --columns pseudo_label_accuracy test_accuracy lambda -- runs/*
"""

import argparse
import csv
import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402


def read(run):
    with open(run / "metrics.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--columns", nargs="+", required=True)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    count = len(arguments.columns)
    figure, axes = plt.subplots(
        1, count, figsize=(4 * count, 3), squeeze=False, layout="constrained"
    )
    for axis, column in zip(axes[0], arguments.columns):
        for run in arguments.runs:
            rows = [row for row in read(run) if row.get(column)]
            axis.plot(
                [int(row["epoch"]) for row in rows],
                [float(row[column]) for row in rows],
                label=run.name,
            )
        axis.set_xlabel("epoch")
        axis.set_title(column.replace("_", " "))
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize="small")
    figure.savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
