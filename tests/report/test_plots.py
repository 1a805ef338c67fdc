import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest

from alim_keras.report import plots

SVG = "{http://www.w3.org/2000/svg}"


def history(**columns):
    return pd.DataFrame({"epoch": [1, 2, 3], **columns})


def texts(plot):
    return [
        node.text
        for node in ElementTree.fromstring(plot.svg).iter(f"{SVG}text")
    ]


def test_curves_say_what_they_show():
    # metrics.csv leaves empty what was not computed in an epoch.
    losses, shares, steering = plots.curves(
        history(
            loss=["4.0", "2.0", "1.25"],
            cls_loss=[1.0, 1.5, 3.0],
            covering_rate=["", 0.5, 0.75],
            outside=[0.0, 0.0, 0.0],
            noise_rate=[0.2, 0.2, 0.2],
            test_accuracy=["", "", ""],
        )
    )
    assert losses.name == "losses"
    assert losses.finding == (
        "From epoch 1 to 3: loss fell from 4.00 to 1.25; "
        "classification rose from 1.00 to 3.00."
    )
    assert losses.columns == ("epoch", "loss", "classification")
    assert losses.rows == (
        ("1", "4.00", "1.00"),
        ("2", "2.00", "1.50"),
        ("3", "1.25", "3.00"),
    )
    assert shares.rows[0] == ("1", "-", "0\N{NO-BREAK SPACE}%")
    assert "covering rate rose from 50.0\N{NO-BREAK SPACE}%" in shares.finding
    assert "outside the set 0\N{NO-BREAK SPACE}% at both ends" in shares.finding
    assert steering.columns == ("epoch", "noise rate")
    assert {"loss", "classification", "epoch"} <= set(texts(losses))


def test_no_curve_without_numbers():
    assert plots.curves(None) == []
    assert plots.curves(history().iloc[:0]) == []
    assert plots.curves(history(test_accuracy=["", "", ""])) == []
    assert plots.curves(history(seconds=[1.0, 2.0, 3.0])) == []


def test_one_epoch_and_negative_losses():
    (one,) = plots.curves(history(loss=[-1.0, -2.0, -0.5]).iloc[:1])
    assert one.finding == "From epoch 1 to 1: loss -1.00 at both ends."
    assert one.rows == (("1", "-1.00"),)
    # The point is drawn: a marker, used once in the axes.
    assert "<use " in one.svg


def test_long_histories_give_short_tables():
    frame = pd.DataFrame({"epoch": np.arange(1, 1001), "loss": 1.0})
    (plot,) = plots.curves(frame)
    assert len(plot.rows) == 100
    assert (plot.rows[0][0], plot.rows[-1][0]) == ("1", "1,000")


def test_ratio_histogram_counts_every_example():
    # Two below 1, of them one settled outside; inf: all classes are in the
    # set; nan: not seen.
    ratio = [0.1, 0.5, 2.0, 20.0, 200.0, np.inf, np.nan, 3e38]
    outside = [True, False, False, False, False, False, False, False]
    plot = plots.ratio_histogram(ratio, outside, lam=0.25)
    assert "Of 6 examples, 33.3\N{NO-BREAK SPACE}% have a class" in plot.finding
    assert "settled outside the set: 0.100." in plot.finding
    # Of 0.5, 2, 20, 200 and 3e38.
    assert "settled inside the set: 20.0." in plot.finding
    assert "below lambda, 0.250 on average." in plot.finding
    assert "Not drawn: 2 whose ratio" in plot.finding
    inside = [int(row[2].replace(",", "")) for row in plot.rows]
    beyond = [int(row[3].replace(",", "")) for row in plot.rows]
    assert (sum(inside), sum(beyond), len(plot.rows)) == (5, 1, 48)
    # Beyond a million is kept in the last bar.
    assert plot.rows[-1][1] == "1,000,000" and inside[-1] == 1
    # The bar that holds 0.1, from 0.1 on.
    (bar,) = [row for row in plot.rows if row[3] == "1"]
    assert float(bar[0]) <= 0.1 <= float(bar[1])
    assert "lambda" in texts(plot)


@pytest.mark.parametrize("lam", [None, 0.0, 1.0, float("nan")])
def test_lambda_is_marked_only_where_it_says_something(lam):
    plot = plots.ratio_histogram([0.5, 2.0], [True, False], lam=lam)
    assert "lambda" not in plot.finding
    assert "lambda" not in texts(plot)


def test_no_histogram_without_a_ratio():
    assert plots.ratio_histogram([np.nan, np.inf, 0.0], [0, 0, 0]) is None
    assert plots.ratio_histogram([], []) is None


def all_plots():
    made = plots.curves(
        history(
            loss=[3.0, 2.0, 1.0],
            outside=[0.0, 0.1, 0.1],
            lambda_=[0, 0, 0],
            test_accuracy=[0.1, 0.2, 0.3],
        ).rename(columns={"lambda_": "lambda"})
    )
    return [*made, plots.ratio_histogram([0.5, 2.0, 9.0], [1, 0, 0], 0.4)]


def test_svg_fits_a_page():
    seen = []
    for plot in all_plots():
        root = ElementTree.fromstring(plot.svg)
        assert root.tag == f"{SVG}svg"
        assert "viewBox" in root.attrib and "width" not in root.attrib
        seen += [node.get("id") for node in root.iter() if node.get("id")]
        for wrong in ("<style", "<metadata", "<!--", "xlink", "<image"):
            assert wrong not in plot.svg
        # No colour of its own: both schemes set the page's variables.
        assert re.findall(r"#[0-9a-f]{6}\b", plot.svg) == []
        used = set(re.findall(r"var\((--\w+)\)", plot.svg))
        assert {"--ink", "--muted", "--line", "--c1"} <= used
        # Text stays text, in the page's font.
        assert len(texts(plot)) > 5 and "font-size: 10px" in plot.svg
        assert "font-family" not in plot.svg and "DejaVu" not in plot.svg
        for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', plot.svg):
            assert f'id="{"".join(target)}"' in plot.svg
        without = plot.svg.replace("http://www.w3.org/2000/svg", "")
        assert "http" not in without
    assert len(seen) == len(set(seen)) > 20


def test_the_same_numbers_give_the_same_picture():
    expected = [plot.svg for plot in all_plots()]
    own = {"svg.fonttype": "path", "font.size": 30, "lines.linewidth": 9}
    own |= {"axes.grid": True, "figure.facecolor": "red"}
    with matplotlib.rc_context(own):
        assert [plot.svg for plot in all_plots()] == expected
        assert matplotlib.rcParams["font.size"] == 30
