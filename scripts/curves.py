"""Draws columns of the metrics.csv of runs against the epoch.

    python scripts/curves.py --out docs/images/cifar.png \
        --columns pseudo_label_accuracy test_accuracy lambda -- runs/*
"""

import argparse
import pathlib

import pandas as pd
from matplotlib.figure import Figure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--columns", nargs="+", required=True)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    count = len(arguments.columns)
    figure = Figure((4 * count, 3), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for run in arguments.runs:
        metrics = pd.read_csv(run / "metrics.csv", index_col="epoch")
        for axis, column in zip(axes, arguments.columns):
            if column in metrics:
                line = metrics[column].dropna()
                axis.plot(line.index, line, label=run.name)
    for axis, column in zip(axes, arguments.columns):
        axis.set_xlabel("epoch")
        axis.set_title(column.replace("_", " "))
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.savefig(arguments.out, dpi=110)


if __name__ == "__main__":
    main()
