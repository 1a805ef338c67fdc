import dataclasses
import hashlib
import socket
import sys

import pytest

from alim_keras.data.sources.known import KNOWN


@pytest.fixture(autouse=True)
def no_network(monkeypatch, request):
    """Notes every attempt to use the network; a test that makes one fails."""
    if getattr(request.module, "USES_THE_NETWORK", False):
        yield
        return
    attempts = []

    def refuse(*args, **_):
        attempts.append(args)
        raise OSError("the network is blocked in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield
    assert attempts == []


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path_factory):
    """Hides the data sets this machine may have outside `data_dir`."""
    folder = tmp_path_factory.mktemp("no_tfds")
    monkeypatch.setenv("TFDS_DATA_DIR", str(folder))
    for name, known in KNOWN.items():
        hidden = dataclasses.replace(known, system_folder=None)
        monkeypatch.setitem(KNOWN, name, hidden)
    return folder


@pytest.fixture
def accept(monkeypatch):
    """Makes the checksums of small archives the official ones."""

    def change(name, *paths):
        archives = {
            path.name: "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
            for path in paths
        }
        changed = {**KNOWN[name].archives, **archives}
        monkeypatch.setitem(
            KNOWN, name, dataclasses.replace(KNOWN[name], archives=changed)
        )

    return change


@pytest.fixture
def no_tfds(monkeypatch):
    """Makes `import tensorflow_datasets` fail."""
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
