"""What the line alone tells, before any model is read."""

import pytest

from alim_keras import cli
from alim_keras import predict
from alim_keras.cli import predict_flags


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--rank", "--candidates_file=t.csv", "--top_k=2"], "--top_k=2"),
        (["a.png", "--images=/photos"], "--images=/photos"),
        (["a.png", "--layout=wide"], "PATHS are no table; leave it out"),
        (["a.png", "--min_votes=3"], "--min_votes=3"),
        (["a.png", "--out=FOLDER"], "--out must be the name of a file"),
    ],
)
def test_what_would_not_be_read_is_refused(flags, said, tmp_path, capsys):
    flags = [one.replace("FOLDER", str(tmp_path)) for one in flags]
    words = [str(tmp_path / "nowhere"), *flags]
    assert cli.run(predict_flags.COMMAND, predict.main, words) == 2
    assert said in capsys.readouterr().err


def test_flags_of_the_table_are_those_that_the_command_has():
    known = set(predict_flags.COMMAND.new_flags())
    assert set(predict_flags.OF_TABLE) < known
