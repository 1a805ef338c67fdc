"""The progress bar, and how odd data are told."""

import io
import sys
import warnings

from alim_keras import cli
from alim_keras.data.messages import DataWarning


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nobody_looks_so_nothing_is_drawn(capsys):
    with cli.bar("Looking") as progress:
        assert progress is None
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_how_many_are_done(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with cli.bar("Looking at images") as progress:
        progress(300, 1200)
        progress(1200, 1200)
    drawn = terminal.getvalue()
    assert "Looking at images" in drawn and "1200/1200" in drawn


def test_odd_data_are_told_in_a_line_of_their_own(toy, capsys):
    def main(settings):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            for _ in range(2):
                warnings.warn("class 0\nis odd", DataWarning, stacklevel=1)

    before = warnings.showwarning
    assert cli.run(toy, main, []) == 0
    told = capsys.readouterr().err
    assert told == "alim_keras.toy: warning: class 0 is odd\n"
    assert warnings.showwarning is before


def test_keras_is_loaded_only_where_it_is_wanted(toy, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        "alim_keras.cli.main.load_keras", lambda *a: loaded.append(a)
    )
    assert cli.run(toy, lambda settings: 0, [], keras=False) == 0
    assert loaded == []
    assert cli.run(toy, lambda settings: 0, []) == 0
    assert len(loaded) == 1
