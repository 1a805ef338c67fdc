"""Mean and standard deviation over seeds of finished runs, as Markdown.

    python scripts/summarise.py --by lam norm mixup_weight -- runs/*

Runs that agree in the settings named by `--by` form a row. The deviation is
that of the sample (n - 1).
"""

import argparse
import collections
import json
import pathlib
import statistics

COLUMNS = (
    ("test_accuracy", "test, last epoch"),
    ("test_accuracy_selected", "test, selected epoch"),
    ("pseudo_label_accuracy", "training labels right"),
    ("lambda", "lambda"),
)


def spread(values):
    """Returns "mean ± deviation", or the value alone, or "-"."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.4f}"
    deviation = statistics.stdev(values)
    return f"{statistics.mean(values):.4f} ± {deviation:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", nargs="+", required=True)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    groups = collections.defaultdict(list)
    for run in arguments.runs:
        if not (run / "results.json").exists():
            parser.error(f"{run} is not a finished run")
        settings = json.loads((run / "run.json").read_text())["settings"]
        results = json.loads((run / "results.json").read_text())
        key = tuple(str(settings[name]) for name in arguments.by)
        groups[key].append(results)
    titles = [*arguments.by, "seeds", *(title for _, title in COLUMNS)]
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for key, results in groups.items():
        seeds = ", ".join(str(r["seed"]) for r in results)
        cells = [spread([r[name] for r in results]) for name, _ in COLUMNS]
        print("| " + " | ".join([*key, seeds, *cells]) + " |")


if __name__ == "__main__":
    main()
