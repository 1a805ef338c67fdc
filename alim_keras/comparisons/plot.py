"""Accuracy against the noise level, a line for each row of the table."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's colors, told apart with any color vision; the yellow, too
# pale for lines on white, is left out.
COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
MARKERS = "os^DvPX*"
MOST_LINES = 14


def figure(table):
    """Returns a matplotlib figure: a panel for each q.

    A method and its plug-ins share a color: dashed is the method alone, solid
    with ALIM; markers tell further variants apart. Methods with ALIM come
    first; more than 14 lines or 7 methods go to further panels below. The
    options of a row are left out of its name where it has the name for itself.

    Args:
        table: A `Table` of columns with noise levels.
    """
    groups = split_rows(table.rows)
    ambiguities = list(dict.fromkeys(c.ambiguity for c in table.columns))
    labels = labels_of(table.rows)
    legend = 0.9 + 0.085 * max(map(len, labels.values()))
    drawn = Figure(
        figsize=(4.2 * len(ambiguities) + legend, 3.9 * len(groups)),
        layout="constrained",
    )
    FigureCanvasAgg(drawn)
    panels = drawn.subplots(len(groups), len(ambiguities), squeeze=False)
    for rows, line in zip(groups, panels):
        for ambiguity, panel in zip(ambiguities, line):
            columns = [c for c in table.columns if c.ambiguity == ambiguity]
            _draw_panel(panel, table, rows, columns, labels)
            panel.set_title(f"q = {ambiguity:g}")
        line[0].set_ylabel("test accuracy, %")
        # Outside, where it hides no line.
        line[-1].legend(
            loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False
        )
    for panel in panels[-1]:
        panel.set_xlabel("noise level eta")
    return drawn


def labels_of(rows):
    """Returns the name of each row in the legend, a dict by `row.name`."""
    short = [row.name.partition("[")[0] for row in rows]
    return {
        row.name: name if short.count(name) == 1 else row.name
        for row, name in zip(rows, short)
    }


def split_rows(rows):
    """Returns the rows in lists that one panel can show, methods together."""
    methods = {}
    for row in rows:
        methods.setdefault(row.method, []).append(row)
    groups = [[]]
    count = 0
    plain_last = sorted(
        methods.values(), key=lambda rows: not any(row.alim for row in rows)
    )
    for members in plain_last:
        full = len(groups[-1]) + len(members) > MOST_LINES
        if groups[-1] and (full or count == len(COLORS)):
            groups.append([])
            count = 0
        groups[-1] += members
        count += 1
    return groups


def _draw_panel(panel, table, rows, columns, labels):
    methods = list(dict.fromkeys(row.method for row in rows))
    variants = {}
    for row in rows:
        kind = (row.method, row.alim)
        variant = variants[kind] = variants.get(kind, -1) + 1
        points = []
        for column in columns:
            found = table.spread(row, column)
            if found.count:
                points.append(
                    (
                        column.noise_level,
                        100 * found.mean,
                        100 * (found.deviation or 0.0),
                    )
                )
        eta, mean, deviation = zip(*sorted(points)) if points else ((),) * 3
        panel.errorbar(
            eta,
            mean,
            yerr=deviation if points else None,
            label=labels[row.name],
            color=COLORS[methods.index(row.method)],
            linestyle="-" if row.alim else "--",
            marker=MARKERS[variant % len(MARKERS)],
            markersize=5,
            markerfacecolor=None if row.alim else "white",
            linewidth=1.5,
            capsize=3,
        )
    panel.set_xticks([column.noise_level for column in columns])
    panel.grid(alpha=0.3)
