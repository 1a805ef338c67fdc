"""The files of a comparison: cells.csv, tables and plot, from its cells."""

import io
import os

import pandas as pd
from matplotlib.figure import Figure

from alim_keras.files import write_atomically

COLUMNS = (
    "row column method alim mixup ambiguity noise_level seed status "
    "test_accuracy test_accuracy_selected pseudo_label_accuracy lambda "
    "noise_rate realised_noise epochs seconds seconds_per_epoch folder"
).split()
_SPREAD = {"mean": "mean", "std": "std", "seeds": "count"}
_OF_PAIRS = {"difference": "mean", "standard_error": "sem", "seeds": "count"}
# Okabe and Ito's colors, told apart with any color vision; the yellow, too
# pale for lines on white, is left out.
_COLORS = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000".split()
_MARKERS = "os^DvPX*"


def frame_of(cells):
    """Returns a data frame of `COLUMNS` with a row for each cell.

    Args:
        cells: List of dicts, see docs/compare.md; a number that is missing or
            None is not known. `column` is the name of the table's column.
    """
    frame = pd.DataFrame(cells, columns=COLUMNS)
    return frame.astype({"test_accuracy": float, "seconds_per_epoch": float})


def write(frame, pairs, out):
    """Writes all files.

    Args:
        frame: What `frame_of` returned.
        pairs: Triples (plug-in, row without it, row with it) of strings.
        out: The folder.
    """
    spread = spread_of(frame)
    table = pd.DataFrame(index=pd.Index(frame.row.unique(), name="row"))
    for column in frame.column.unique():
        for name, values in spread.xs(column, level="column").items():
            table[f"{column} {name}"] = values
    table["seconds_per_epoch"] = _seconds(frame)
    differences = differences_of(frame, pairs)
    for name, content in (
        ("cells.csv", frame.drop(columns="column").to_csv(index=False)),
        ("table.csv", table.to_csv()),
        ("differences.csv", differences.to_csv(index=False)),
        ("table.md", as_markdown(frame, differences)),
    ):
        write_atomically(os.path.join(out, name), content)
    # A plot against eta needs etas.
    if frame.noise_level.notna().all():
        image = io.BytesIO()
        figure(frame).savefig(image, format="png", dpi=150)
        write_atomically(os.path.join(out, "accuracy.png"), image.getvalue())


def spread_of(frame):
    """Returns mean, std (n - 1) and seeds of the accuracy, by row and column.

    NaN stands where there are none, or, for std, less than two.
    """
    names = ["row", "column"]
    places = [frame[name].unique() for name in names]
    places = pd.MultiIndex.from_product(places, names=names)
    groups = _finished(frame).groupby(names).test_accuracy
    spread = groups.agg(**_SPREAD).reindex(places)
    return spread.assign(seeds=spread.seeds.fillna(0).astype(int))


def differences_of(frame, pairs):
    """Returns a data frame of the mean differences of pairs of rows.

    Both rows of a seed share their sets and draws, so the standard error is
    that of the differences within the seeds.
    """
    accuracy = _finished(frame).pivot(
        index=["column", "seed"], columns="row", values="test_accuracy"
    )
    accuracy = accuracy.reindex(columns=frame.row.unique())
    names = ["column", "ambiguity", "noise_level"]
    columns = frame[names].drop_duplicates("column")
    parts = [pd.DataFrame(columns=["plug_in", "base", "with"])]
    for plug_in, base, plus in pairs:
        paired = (accuracy[plus] - accuracy[base]).dropna().groupby("column")
        part = columns.join(paired.agg(**_OF_PAIRS), on="column")
        part = part.assign(plug_in=plug_in, base=base, **{"with": plus})
        parts.append(part.assign(seeds=part.seeds.fillna(0).astype(int)))
    return pd.concat(parts)


def as_markdown(frame, differences):
    """Returns the tables as Markdown, accuracies in percent."""
    seeds, spread = frame.seed.nunique(), spread_of(frame)
    best = spread["mean"].groupby("column").max()
    seconds = _seconds(frame)

    def cell(mean, deviation, count, sign=""):
        if not count:
            return "–"
        shown = f"{100 * mean:{sign}.2f}"
        if count > 1:
            shown += f" ± {100 * deviation:.2f}"
        return shown if count == seeds else f"{shown} ({count})"

    table = pd.DataFrame(index=frame.row.unique())
    for column in frame.column.unique():
        places = spread.xs(column, level="column")
        shown = map(cell, places["mean"], places["std"], places.seeds)
        table[column] = [
            f"**{text}**" if mean == best[column] else text
            for text, mean in zip(shown, places["mean"], strict=True)
        ]
    table["s/epoch"] = [
        f"{seconds[row]:.3g}" if row in seconds else "–" for row in table.index
    ]
    content = (
        "Test accuracy after the last epoch in percent: mean ± standard "
        f"deviation over {seeds} seed(s); (n) where only n are finished. "
        f"s/epoch: seconds of an epoch's training steps, median.\n\n"
        f"{_markdown(table)}"
    )
    if differences.empty:
        return content
    changes = pd.DataFrame(columns=frame.column.unique())
    for (plug_in, base, plus), part in differences.groupby(
        ["plug_in", "base", "with"], sort=False
    ):
        values = part[list(_OF_PAIRS)].itertuples(index=False)
        name = f"{plug_in}: {plus} against {base}"
        changes.loc[name] = [cell(*value, sign="+") for value in values]
    return content + (
        "\nWhat a plug-in changes, in points of percent: mean over the seeds ± "
        "standard error of that mean, from the differences within each seed.\n"
        f"\n{_markdown(changes)}"
    )


def figure(frame):
    """Returns a matplotlib figure: accuracy against eta, a panel for each q.

    A method and its plug-ins share a color: dashed is the method alone, solid
    with ALIM; bars are the standard deviation over the seeds.
    """
    rows, methods = frame.row.unique(), list(frame.method.unique())
    ambiguities = frame.ambiguity.unique()
    drawn = Figure((4 * len(ambiguities) + 3, 4), layout="constrained")
    panels = drawn.subplots(1, len(ambiguities), squeeze=False)[0]
    for q, panel in zip(ambiguities, panels, strict=True):
        for number, row in enumerate(rows):
            part = frame[(frame.row == row) & (frame.ambiguity == q)]
            values = _finished(part).groupby("noise_level").test_accuracy
            values = 100 * values.agg(["mean", "std"]).dropna(subset="mean")
            color = methods.index(part.method.iloc[0]) % len(_COLORS)
            panel.errorbar(
                values.index,
                values["mean"],
                yerr=values["std"].fillna(0),
                label=row,
                color=_COLORS[color],
                linestyle="--" if (part.alim == 0).all() else "-",
                marker=_MARKERS[number % len(_MARKERS)],
                capsize=3,
            )
        panel.set_xticks(frame.noise_level.unique())
        panel.set_title(f"q = {q:g}")
        panel.set_xlabel("noise level eta")
    panels[0].set_ylabel("test accuracy, %")
    # Outside, where it hides no line.
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return drawn


def _finished(frame):
    return frame[frame.status == "finished"]


def _seconds(frame):
    return _finished(frame).groupby("row").seconds_per_epoch.median()


def _markdown(table):
    """Returns a data frame of strings as a Markdown table."""
    lines = [["method", *table.columns], ["---"] * (1 + len(table.columns))]
    lines += [[name, *texts] for name, *texts in table.itertuples(name=None)]
    return "".join(f"| {' | '.join(texts)} |\n" for texts in lines)
