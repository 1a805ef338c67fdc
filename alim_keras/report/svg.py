"""Drawings by matplotlib as SVG that takes its colours from the page."""

import contextlib
import io
import re

# matplotlib draws with these colours; the page's CSS variables replace them.
_COLOURS = {
    "#0a0b01": "--ink",
    "#0a0b02": "--muted",
    "#0a0b03": "--line",
    "#0a0b11": "--c1",
    "#0a0b12": "--c2",
    "#0a0b13": "--c3",
    "#0a0b14": "--c4",
    "#0a0b15": "--c5",
}
INK, MUTED, LINE, *SERIES = _COLOURS
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1)))
_SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 10.0,
    "font.family": ["sans-serif"],
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": False,
    "grid.color": LINE,
    "grid.linewidth": 1.0,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}


@contextlib.contextmanager
def settings():
    """Draws the same whatever the user's own settings of matplotlib are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def figure(width, height):
    """Returns a figure (in inches) and its axes, free of pyplot's state."""
    from matplotlib.figure import Figure

    made = Figure((width, height), layout="constrained")
    axes = made.add_subplot()
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=5)
    made.patch.set_visible(False)
    axes.patch.set_visible(False)
    return made, axes


def legend(axes):
    """Puts the legend above the plot, where it hides no line."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
        frameon=False,
        labelcolor=INK,
        handlelength=2.4,
        borderpad=0.0,
        columnspacing=2.6,
    )


def text(figure, name):
    """Returns the figure as an `<svg>` for a page of several.

    Args:
        figure: From `figure`, drawn and stored within `settings`.
        name: ASCII string that starts every id in it.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    out = io.StringIO()
    # The salt makes the ids of clip paths the same in every run.
    matplotlib.rcParams["svg.hashsalt"] = name
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # A style element in an inline SVG would hold for the whole page.
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    # The page's own font: text keeps its place, which is all that is fixed.
    # Older releases of matplotlib write size and family as one.
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", svg)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r">\s*\n\s*<", "><", svg).strip()
