"""Draws where a training step's time goes, from benchmark files.

    python scripts/performance_chart.py --out docs/images/performance.png \
        "before=before.json" "after=after.json"

Each file is what `python -m alim_keras.benchmark --output=FILE` wrote. A name
before the `=` is the bar's; without it the network's stands there.
"""

import argparse
import json

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

# Parts of a step that are drawn as one, with the color of the bar: the
# passes that the limit is made of, then what comes on top.
GROUPS = (
    ("query pass", ("query",), "#1f4e79"),
    ("mixup pass", ("mixup",), "#3f7fb5"),
    ("key pass", ("key",), "#9cc3e0"),
    ("optimizer", ("optimizer", "key_average"), "#7a8b99"),
    ("views", ("weak", "strong"), "#e07b39"),
    ("contrast", ("contrast",), "#f2b134"),
    ("table, prototypes", ("table", "prototypes"), "#b5533c"),
    ("data, log", ("data", "logs"), "#8c6bb1"),
    ("rest", ("rest",), "#d9d9d9"),
)


def read(argument):
    """Returns a bar's name and its benchmark."""
    name, _, path = argument.rpartition("=")
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    settings = result["settings"]
    shape = "x".join(str(side) for side in result["image_shape"])
    width = f" width {settings['width']}" if settings["width"] else ""
    title = f"{settings['network']}{width}"
    details = f"{shape}, batch {settings['batch_size']}, {result['backend']}"
    return f"{name or title}\n{details}", result


def shares(result):
    """Returns each group's share of the whole step, in the groups' order.

    Where the parts alone take longer than the whole, they share it.
    """
    seconds = {**result["parts"], "rest": max(result["rest"], 0.0)}
    total = sum(seconds.values())
    return [
        sum(seconds.get(part, 0.0) for part in members) / total
        for _, members, _ in GROUPS
    ]


def draw(bars):
    """Returns the figure: a stacked bar for each benchmark."""
    figure, axis = plt.subplots(
        figsize=(9, 1.4 + 0.8 * len(bars)), layout="constrained"
    )
    places = range(len(bars))
    left = [0.0] * len(bars)
    columns = zip(*(shares(result) for _, result in bars))
    for (name, _, color), widths in zip(GROUPS, columns):
        axis.barh(places, widths, 0.6, left, color=color, label=name)
        dark = sum(int(color[i : i + 2], 16) for i in (1, 3, 5)) < 380
        for place, width, start in zip(places, widths, left):
            if width >= 0.04:
                axis.text(
                    start + width / 2,
                    place,
                    f"{width:.0%}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if dark else "black",
                )
        left = [a + b for a, b in zip(left, widths)]
    for place, (_, result) in zip(places, bars):
        milliseconds = 1e3 * result["seconds"]["alim"]["median"]
        efficiency = result["by_round"]["efficiency"]["median"]
        axis.text(
            1.01,
            place,
            f"{milliseconds:,.0f} ms\nefficiency {efficiency:.2f}",
            va="center",
            fontsize=9,
        )
    axis.set_yticks(places, [name for name, _ in bars], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1))
    axis.set_xlabel("share of a training step")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(
        loc="outside upper center", ncols=5, fontsize=8, frameon=False
    )
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+", metavar="[NAME=]FILE")
    arguments = parser.parse_args()
    figure = draw([read(argument) for argument in arguments.files])
    figure.savefig(arguments.out, dpi=130)


if __name__ == "__main__":
    main()
