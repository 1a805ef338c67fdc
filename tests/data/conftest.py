"""A machine without data sets and network."""

import dataclasses
import socket

import pytest

from alim_keras.data.known_data import KNOWN


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path_factory):
    """Hides the data sets and the network that this machine may have."""

    def refuse(*args, **_):
        raise AssertionError(f"the network is asked for {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    folder = tmp_path_factory.mktemp("no_tfds")
    monkeypatch.setenv("TFDS_DATA_DIR", str(folder))
    hidden = dataclasses.replace(KNOWN["fashion_mnist"], system_folder=None)
    monkeypatch.setitem(KNOWN, "fashion_mnist", hidden)
