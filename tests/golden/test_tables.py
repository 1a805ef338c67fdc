"""Tables of labels: the sets that are read, and what is refused."""

import pathlib

import numpy as np
import pytest
from golden import harness
from golden.cases import CASES
from PIL import Image

PICTURES = (*"abcdef", "1", "2", "3", "01")


def _paint(path, shade):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((8, 8), shade % 256, np.uint8)
    pixels[:4] = shade * 7 % 256
    Image.fromarray(pixels).save(path)


def _write(path, content):
    if isinstance(content, tuple):
        for place, name in enumerate(content):
            _paint(path / name, place)
    elif isinstance(content, dict) and path.suffix == ".npz":
        np.savez(path, **{name: np.array(v) for name, v in content.items()})
    elif isinstance(content, dict):
        from pyarrow import parquet
        from pyarrow import table

        parquet.write_table(table(content), path)
    else:
        text = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(text)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Returns what came of every case, by its name."""
    folder = tmp_path_factory.mktemp("tables")
    for place, name in enumerate(PICTURES):
        _paint(folder / "i" / f"{name}.png", 20 * place)
    found = {}
    for blocked in (False, True):
        cases = [case for case in CASES if case.blocked == blocked]
        tables = []
        for case in cases:
            # No word of the case may stand in the path that messages name.
            home = folder / f"t{CASES.index(case)}"
            home.mkdir()
            for name, text in {case.file: case.content, **case.more}.items():
                _write(home / name, text)
            flags = case.flags.replace("HOME", str(home)).split()
            if "--network=mlp" not in flags and case.file != "tree":
                flags.append(f"--images={folder / 'i'}")
            if "--network=mlp" not in flags:
                flags.append("--network=small_cnn")
            tables.append([str(home / case.file), *flags])
        packages = ("pyarrow", "pyarrow.parquet") if blocked else ()
        done = harness.read_tables(tables, folder, packages)
        found |= {case.name: one for case, one in zip(cases, done)}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_table(found, case):
    one = found[case.name]
    assert one["code"] == case.code, one["err"]
    said = one["out"] + one["err"]
    for word in case.words:
        assert word in said
    if case.code:
        # Pictures that are missing are listed on stdout, without a line.
        lines = one["err"].splitlines()
        assert len(lines) == 1 or (one["out"] and not lines)
        for line in lines:
            assert line.startswith("alim_keras.check: error: ")
            # It names the file, but for a flag that does not fit.
            assert case.code != 3 or pathlib.Path(case.file).suffix in line
        return
    assert "Traceback" not in said
    if case.sets is None:
        return
    sets = {
        name: sorted(row.split() if isinstance(row, str) else row)
        for name, row in case.sets.items()
    }
    assert one["sets"] == sets
    names = sorted(set().union(*sets.values()))
    if case.classes is not None:
        names = case.classes.split()
    assert one["class_names"] == names
    assert one["known"] == case.known
    assert one["test"] == case.test
