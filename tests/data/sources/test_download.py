"""What is nowhere on the machine: asked for, announced, forbidden, failed."""

import os

import pytest

from alim_keras.data import load
from alim_keras.data.sources import network
from alim_keras.data.sources import tfds_download
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

tfds = pytest.importorskip("tensorflow_datasets")
FIRST = "downloads/x.tar.gz.tmp." + "0" * 32
OLD = "downloads/old.tar.gz.tmp." + "f" * 32


class Builder:
    """Stands for a TFDS builder whose download ends in `error`."""

    def __init__(self, error):
        self.error = error

    def __call__(self, name, data_dir):
        self.name, self.data_dir = name, data_dir
        return self

    def download_and_prepare(self, download_config):
        for folder in (FIRST, "cifar10/incomplete.ABC_3.0.2"):
            os.makedirs(os.path.join(self.data_dir, folder))
        raise self.error


@pytest.fixture
def connected(monkeypatch):
    monkeypatch.setattr(network, "unreachable", lambda urls: None)


def failed(error, tmp_path, monkeypatch, kind=DataError):
    monkeypatch.setattr(tfds, "builder", Builder(error))
    (tmp_path / OLD).mkdir(parents=True)
    with pytest.raises(kind) as caught:
        load("cifar10", data_dir=tmp_path)
    # What was there before is another process's.
    assert (tmp_path / OLD).is_dir()
    assert not (tmp_path / FIRST).exists()
    assert os.listdir(tmp_path / "cifar10") == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_download_is_announced_first(
    tmp_path, monkeypatch, connected, capsys
):
    failed(OSError("x"), tmp_path, monkeypatch)
    assert capsys.readouterr().err == (
        "cifar10: not on this machine; downloading 162.2 MiB from "
        f"www.cs.toronto.edu to {tmp_path} (--nodownload forbids it)\n"
    )


def test_a_wrong_checksum(tmp_path, monkeypatch, connected):
    from tensorflow_datasets.core.download import download_manager

    error = download_manager.NonMatchingChecksumError
    text = failed(error("Artifact x\nExpected"), tmp_path, monkeypatch)
    assert "cifar10: the download from https://" in text
    assert "cifar-10-binary.tar.gz failed: the file is not the one" in text
    assert "Put cifar-10-python.tar.gz" in text


def test_a_refused_certificate(tmp_path, monkeypatch, connected):
    error = OSError("SSL: CERTIFICATE_VERIFY_FAILED certificate has expired")
    text = failed(error, tmp_path, monkeypatch)
    assert "certificate of the host was refused" in text
    assert "REQUESTS_CA_BUNDLE" in text


def test_any_other_failure(tmp_path, monkeypatch, connected):
    text = failed(ValueError("first\nsecond"), tmp_path, monkeypatch)
    assert "ValueError: first. Nothing half-finished" in text


def test_an_interrupted_download(tmp_path, monkeypatch, connected):
    failed(KeyboardInterrupt(), tmp_path, monkeypatch, KeyboardInterrupt)


def test_a_finished_download_is_read(tmp_path, monkeypatch, connected, capsys):
    class Prepared(Builder):
        def download_and_prepare(self, download_config):
            assert download_config.try_download_gcs is False

    def read(folder, name, size):
        raise DataError(f"reading {name} from {folder} at {size}")

    builder = Prepared(None)
    monkeypatch.setattr(tfds, "builder", builder)
    monkeypatch.setattr("alim_keras.data.sources.tfds.read", read)
    with pytest.raises(DataError, match=f"reading cifar100 from {tmp_path} at"):
        load("cifar100h", data_dir=tmp_path)
    assert builder.name == "cifar100"


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr(
        network, "unreachable", lambda urls: "www.cs.toronto.edu: timed out"
    )
    with pytest.raises(DataError) as caught:
        load("cifar10", data_dir=tmp_path)
    assert str(caught.value) == (
        f"cifar10 is not on this machine, looked in {tmp_path}, "
        f"{tmp_path}/downloads, {tmp_path}/downloads/manual, "
        f"{os.environ['TFDS_DATA_DIR']}; and there is no network to download "
        "it (www.cs.toronto.edu: timed out). Put cifar-10-python.tar.gz or "
        "cifar-10-binary.tar.gz or cifar10.npz in --data_dir"
    )


def test_a_forbidden_download_touches_nothing(tmp_path):
    with pytest.raises(DataError, match="downloading is forbidden. Put its"):
        load("mnist", data_dir=tmp_path, download=False)
    assert list(tmp_path.iterdir()) == []


def test_birds_need_opencv(tmp_path, monkeypatch, connected):
    monkeypatch.setattr(
        tfds_download.importlib.util, "find_spec", lambda name: None
    )
    with pytest.raises(EnvironmentLacksError) as caught:
        load("cub200", data_dir=tmp_path)
    assert "pip install opencv-python-headless" in str(caught.value)
    assert "CUB_200_2011.tgz" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cifar1O", r"did you mean cifar10 or cifar100"),
        ("fashion-mnist", "did you mean fashion_mnist"),
        ("qqqqqq", r"Unknown data set. Names are cifar10, cifar100, cifar100h"),
    ],
)
def test_unknown_names(name, text):
    with pytest.raises(ConfigError, match=text) as caught:
        load(name)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_unknown_name_with_network_blocked_is_settled_here():
    # The fixture that blocks the network would fail this test otherwise.
    with pytest.raises(ConfigError, match="Unknown"):
        load("no_such_set_anywhere", download=True)
