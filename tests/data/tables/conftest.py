"""A small table on disk, and a Labels as plain values."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes text or bytes and gives the path."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        path.write_bytes(data)
        return str(path)

    return write


@pytest.fixture
def sets_of():
    """Returns a function from Labels to {id: set of class names}."""

    def sets_of(labels):
        names = labels.candidates.class_names
        return {
            str(one): {names[i] for i in row.nonzero()[0]}
            for one, row in zip(labels.ids, labels.candidates.sets, strict=True)
        }

    return sets_of
