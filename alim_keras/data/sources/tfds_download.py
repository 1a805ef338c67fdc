"""Letting TensorFlow Datasets fetch a data set, watched.

The host is probed first, size and place are announced on stderr, and what a
failed download leaves behind is removed. Checksums and certificates are
always verified.
"""

import importlib.util
import os
import re
import shutil
import sys
import urllib.parse

from alim_keras.data.messages import nearest
from alim_keras.data.messages import one_line
from alim_keras.data.sources import network
from alim_keras.data.sources import tfds as prepared
from alim_keras.data.sources.known import KNOWN
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.errors import EnvironmentLacksError

_LEFT_BEHIND = re.compile(r"incomplete\..*|.*\.tmp\.[0-9a-f]{32}")


def check_name(name):
    """Raises `ConfigError` unless TFDS, or this package, knows the name."""
    known = set(KNOWN)
    try:
        known |= set(
            prepared.module().list_builders(with_community_datasets=False)
        )
    except EnvironmentLacksError:
        if not nearest(name, known):
            raise
    base = prepared.split_name(name)[0]
    if base not in known:
        raise ConfigError(
            f"Unknown data set{nearest(base, known) or '.'} Names are "
            f"{', '.join(sorted(KNOWN))}, others of TensorFlow Datasets, or "
            "the path of a table (.csv, .jsonl, .parquet, .npz, ...) or of a "
            f"folder that is there. Received: dataset={name!r}"
        )


def download(name, data_dir, absent, remedy):
    """Has TFDS download and prepare a data set; returns its folder.

    Args:
        name: String, a TFDS name.
        data_dir: String, where TFDS is to keep it.
        absent: String, that it is not here and where it was looked for.
        remedy: String, what else the user can do, for the message.

    Raises:
        DataError: No network, or the download failed.
        EnvironmentLacksError: A package that TFDS needs for it is missing.
    """
    tfds = prepared.module()
    infos = tfds.builder_cls(prepared.split_name(name)[0]).url_infos or {}
    reason = network.unreachable(infos)
    if reason is not None:
        raise DataError(
            f"{absent}; and there is no network to download it ({reason}). "
            f"{remedy}"
        )
    _check_packages(name, absent)
    print(
        f"{name}: not on this machine; downloading {_size(infos)} from "
        f"{_hosts(infos)} to {data_dir} (--nodownload forbids it)",
        file=sys.stderr,
        flush=True,
    )
    before = _leftovers(data_dir, name)
    try:
        builder = tfds.builder(name, data_dir=data_dir)
        builder.download_and_prepare(
            download_config=tfds.download.DownloadConfig(try_download_gcs=False)
        )
    except BaseException as error:
        for path in _leftovers(data_dir, name) - before:
            shutil.rmtree(path, ignore_errors=True)
        if not isinstance(error, Exception):
            raise
        raise DataError(
            f"{name}: the download from {_urls(infos)} failed: "
            f"{_cause(error)}. Nothing half-finished was kept. {remedy}"
        ) from error
    return str(builder.data_dir)


def _check_packages(name, absent):
    if name == "caltech_birds2011" and not importlib.util.find_spec("cv2"):
        raise EnvironmentLacksError(
            f"{absent}; TensorFlow Datasets needs OpenCV to prepare it: "
            "pip install opencv-python-headless; or put CUB_200_2011.tgz in "
            "--data_dir, which needs neither"
        )


def _files(infos):
    """Returns each file once: some are listed with several addresses."""
    return {
        info.filename or url: (url, info) for url, info in infos.items()
    }.values()


def _size(infos):
    total = sum(int(info.size) for _, info in _files(infos))
    return f"{total / 2**20:.1f} MiB" if total else "files of unknown size"


def _hosts(infos):
    hosts = {urllib.parse.urlsplit(url).netloc for url, _ in _files(infos)}
    return ", ".join(sorted(hosts)) or "their own address"


def _urls(infos):
    urls = [url for url, _ in _files(infos)]
    more = f" (and {len(urls) - 1} more)" if len(urls) > 1 else ""
    return urls[0] + more if urls else "its own address"


def _cause(error):
    """Returns one line of cause and remedy, by the kind of failure."""
    kind = type(error).__name__
    text = one_line(error)
    if kind == "NonMatchingChecksumError":
        return (
            "the file is not the one with the published checksum; the host "
            "may have answered with an error page, so try again later"
        )
    if "certificate" in str(error).lower() or "SSL" in kind:
        return (
            f"the certificate of the host was refused ({text}); check the "
            "clock and the CA certificates (REQUESTS_CA_BUNDLE)"
        )
    return f"{kind}: {text}"


def _leftovers(data_dir, name):
    """Returns the unfinished folders of downloads and of this data set."""
    found = set()
    base = prepared.split_name(name)[0]
    for top in ("downloads", base):
        for folder, folders, _ in os.walk(os.path.join(data_dir, top)):
            for inner in list(folders):
                if _LEFT_BEHIND.fullmatch(inner):
                    found.add(os.path.join(folder, inner))
                    folders.remove(inner)
    return found
