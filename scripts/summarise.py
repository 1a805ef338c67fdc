"""Mean and standard deviation over seeds of finished runs, as Markdown.

    python scripts/summarise.py --by lam norm mixup_weight -- runs/*

Runs that agree in the settings named by `--by` form a row. The deviation is
that of the sample (n - 1).
"""

import argparse
import json
import pathlib

import pandas as pd

COLUMNS = {
    "test_accuracy": "test, last epoch",
    "test_accuracy_selected": "test, selected epoch",
    "pseudo_label_accuracy": "training labels right",
    "lambda": "lambda",
}


def spread(values):
    """Returns "mean ± deviation", or the value alone, or "-"."""
    values = values.dropna()
    if values.empty:
        return "-"
    mean = f"{values.mean():.4f}"
    return mean if len(values) == 1 else f"{mean} ± {values.std():.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", nargs="+", required=True)
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    runs = []
    for run in arguments.runs:
        if not (run / "results.json").exists():
            parser.error(f"{run} is not a finished run")
        settings = json.loads((run / "run.json").read_text())["settings"]
        results = json.loads((run / "results.json").read_text())
        by = {name: str(settings[name]) for name in arguments.by}
        numbers = {name: results[name] for name in COLUMNS}
        runs.append({**by, "seeds": str(results["seed"]), **numbers})
    runs = pd.DataFrame(runs).astype(dict.fromkeys(COLUMNS, float))
    shown = {"seeds": ", ".join, **dict.fromkeys(COLUMNS, spread)}
    table = runs.groupby(arguments.by, sort=False).agg(shown).reset_index()
    lines = [[COLUMNS.get(name, name) for name in table]]
    lines += [["---"] * len(table.columns), *table.to_numpy().tolist()]
    for line in lines:
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
