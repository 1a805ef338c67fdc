"""Scanning image files: sizes, problems, copies; in threads and processes."""

import os
import subprocess

import numpy as np
import PIL.Image
import pytest

from alim_keras.data.sources import header_pool
from alim_keras.data.sources import header_worker
from alim_keras.data.sources import image_headers
from alim_keras.data.sources.image_headers import scan
from alim_keras.data.sources.image_headers import unified_channels
from alim_keras.data.sources.image_headers import unified_size
from alim_keras.errors import ConfigError
from alim_keras.errors import EnvironmentLacksError


@pytest.fixture(params=["threads", "processes"])
def ways(request, monkeypatch):
    """Both ways of reading, whatever the number of files."""
    if request.param == "processes":
        monkeypatch.setattr(image_headers, "_FEW", 0)
    return request.param


def picture(path, size=(6, 4), mode="RGB", seed=0, **options):
    stream = np.random.default_rng(seed)
    pixels = stream.integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    path.parent.mkdir(exist_ok=True)
    PIL.Image.fromarray(pixels).convert(mode).save(path, **options)
    return str(path)


EMPTY = "it is empty (zero bytes)"
NO_IMAGE = "it is not an image of a known format"
CUT = "it is cut short"


@pytest.fixture
def mixed(tmp_path):
    """Case 70: good, corrupt, empty, missing, grey, CMYK, GIF and WebP."""
    picture(tmp_path / "good.png", (6, 4))
    picture(tmp_path / "grey.png", (5, 5), "L")
    picture(tmp_path / "cmyk.jpg", (9, 7), "CMYK")
    picture(tmp_path / "one.gif", (3, 2), "P")
    picture(tmp_path / "one.webp", (4, 8))
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("no image")
    whole = (tmp_path / "good.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) - 40])
    (tmp_path / "folder.png").mkdir()
    names = "good.png grey.png cmyk.jpg one.gif one.webp empty.png text.png"
    return tmp_path, [*names.split(), "cut.png", "gone.png", "folder.png"]


def test_what_is_found(mixed, ways):
    folder, names = mixed
    found = scan(names, folder=folder)
    assert len(found) == 10
    assert found.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 6, 0, 0]
    assert found.height.tolist() == [4, 5, 7, 2, 8, 0, 0, 4, 0, 0]
    assert found.channels.tolist() == [3, 1, 3, 3, 3, 0, 0, 3, 0, 0]
    sizes = [os.path.getsize(folder / n) for n in names if n != "gone.png"]
    sizes.insert(8, 0)
    assert found.bytes.tolist() == sizes
    assert found.problems == {
        5: EMPTY,
        6: NO_IMAGE,
        8: "there is no such file",
        9: "it is a folder",
    }
    assert found.identical == []
    # Its head is sound; only decoding tells.
    full = scan(names, "full", folder=folder)
    assert full.problems == {**found.problems, 7: CUT}
    assert full.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 0, 0, 0]
    assert full.compared


def test_absolute_paths_need_no_folder(mixed):
    folder, names = mixed
    relative = scan(names, folder=folder)
    absolute = scan([str(folder / name) for name in names])
    assert absolute.problems == relative.problems
    assert scan([folder / "good.png"], folder="elsewhere").width[0] == 6


def test_a_turned_image_is_measured_as_shown(tmp_path):
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    files = [picture(tmp_path / "x.jpg", (6, 4), exif=exif)]
    found = scan(files)
    assert (found.width[0], found.height[0]) == (4, 6)


def test_a_grey_palette_is_grey(tmp_path):
    files = [
        picture(tmp_path / "grey.gif", mode="L"),
        picture(tmp_path / "colour.gif", mode="P"),
    ]
    assert scan(files).channels.tolist() == [1, 3]


def test_links_are_opened_once(tmp_path, ways, monkeypatch):
    first = picture(tmp_path / "a.png", seed=1)
    second = picture(tmp_path / "b.png", seed=2)
    os.symlink(first, tmp_path / "soft.png")
    os.link(first, tmp_path / "hard.png")
    files = [second, first, str(tmp_path / "soft.png")]
    files += [str(tmp_path / "hard.png"), first]
    asked = []
    act = header_worker.frame if ways == "processes" else header_worker.describe
    name = act.__name__

    def counted(paths, *args):
        asked.extend([paths] if isinstance(paths, str) else paths)
        return act(paths, *args)

    monkeypatch.setattr(header_worker, name, counted)
    found = scan(files)
    assert asked == [second, first] and found.num_files == 2
    assert found.width.tolist() == [6] * 5
    assert [rows.tolist() for rows in found.identical] == [[1, 2, 3, 4]]


def test_a_broken_link_to_a_bad_file_marks_every_row(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    os.symlink(tmp_path / "a.png", tmp_path / "b.png")
    os.symlink(tmp_path / "gone", tmp_path / "c.png")
    found = scan(["a.png", "b.png", "c.png"], folder=tmp_path)
    missing = "there is no such file"
    assert found.problems == {0: NO_IMAGE, 1: NO_IMAGE, 2: missing}


def test_equal_contents_are_found(tmp_path, ways, monkeypatch):
    one = picture(tmp_path / "a.bmp", seed=1)
    other = picture(tmp_path / "b.bmp", seed=2)
    same = str(tmp_path / "c.bmp")
    with open(same, "wb") as file, open(one, "rb") as source:
        file.write(source.read())
    # All three are of one size, two of one content.
    found = scan([one, other, same])
    assert found.compared
    assert [rows.tolist() for rows in found.identical] == [[0, 2]]
    # Where that would mean reading too much, it is not done.
    monkeypatch.setattr(
        image_headers, "_COMPARED", 3 * os.path.getsize(one) - 1
    )
    found = scan([one, other, same])
    assert not found.compared and found.identical == []
    found = scan([one, other, same], "full")
    assert [rows.tolist() for rows in found.identical] == [[0, 2]]


def test_encoded_images(mixed):
    folder, names = mixed
    images = [(folder / name).read_bytes() for name in names[:8]]
    found = scan([*images, images[0]])
    assert found.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 6, 6]
    assert found.bytes.tolist() == [len(one) for one in [*images, images[0]]]
    assert found.problems == {5: EMPTY, 6: NO_IMAGE}
    assert [rows.tolist() for rows in found.identical] == [[0, 8]]
    assert scan(images, "full").problems[7] == CUT


def test_no_files():
    found = scan([])
    assert len(found) == 0 and found.problems == {} and found.identical == []
    assert (unified_size(found), unified_channels(found)) == (224, 3)


def test_another_verify_is_named():
    with pytest.raises(ConfigError, match="headers or full.*verify='all'"):
        scan([], "all")


def test_progress_ends_with_all(tmp_path, ways):
    files = [picture(tmp_path / f"{n}.png", seed=n) for n in range(3)]
    calls = []
    scan(files * 200, progress=lambda *counts: calls.append(counts))
    assert calls[-1] == (600, 600)
    assert all(total == 600 and done <= 600 for done, total in calls)
    assert calls == sorted(calls)


@pytest.mark.parametrize(
    "sizes, expected",
    [
        ([(8, 8), (8, 8)], 8),
        ([(8, 8), (9, 9)], 224),
        ([(8, 6), (8, 6)], 224),
    ],
)
def test_unified_size(tmp_path, sizes, expected):
    files = [
        picture(tmp_path / f"{n}.png", size) for n, size in enumerate(sizes)
    ]
    # What cannot be read does not count.
    (tmp_path / "bad.png").touch()
    assert unified_size(scan([*files, str(tmp_path / "bad.png")])) == expected


def test_unified_channels(tmp_path):
    grey = picture(tmp_path / "g.png", mode="L")
    colour = picture(tmp_path / "c.png")
    assert unified_channels(scan([grey, grey])) == 1
    assert unified_channels(scan([grey, colour])) == 3


# Processes.


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    found = []
    start = subprocess.Popen

    def noted(*args, **options):
        found.append(start(*args, **options))
        return found[-1]

    monkeypatch.setattr(header_pool.subprocess, "Popen", noted)
    monkeypatch.setattr(image_headers, "_FEW", 0)
    return found


def all_over(processes):
    return all(one.poll() is not None for one in processes)


def test_many_files_in_processes(tmp_path, started):
    files = [
        picture(tmp_path / f"{n}.png", (n % 5 + 1, 3), seed=n)
        for n in range(600)
    ]
    found = scan(files, workers=2)
    assert found.width.tolist() == [n % 5 + 1 for n in range(600)]
    assert len(started) == 2 and all_over(started)


def test_names_of_all_kinds(tmp_path, started):
    names = ["ä é.png", "line\nbreak.png", "@A.png", "漢字.png"]
    names.append(os.fsdecode(b"caf\xe9.png"))
    for number, name in enumerate(names):
        picture(tmp_path / name, (number + 1, 2))
    found = scan(names, folder=tmp_path)
    assert found.width.tolist() == [1, 2, 3, 4, 5] and found.problems == {}
    assert started


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_no_process(tmp_path, started, error):
    files = [picture(tmp_path / f"{n}.png", seed=n) for n in range(5)]
    calls = []

    def interrupt(done, total):
        calls.append(done)
        # The first call comes before the processes.
        if len(started) == 2:
            raise error

    with pytest.raises(error):
        scan(files, workers=2, progress=interrupt)
    assert len(started) == 2 and all_over(started)


def test_a_file_that_ends_the_decoder_is_named(tmp_path, started, monkeypatch):
    # A worker that dies of one of the files, as a bug in a C library would.
    script = tmp_path / "worker.py"
    with open(header_worker.__file__, encoding="utf-8") as file:
        text = file.read()
    text = text.replace(
        "    known = Record()\n",
        "    known = Record()\n    if 'evil' in source: os._exit(9)\n",
    )
    assert "evil" in text
    script.write_text(text, encoding="utf-8")
    monkeypatch.setattr(header_worker, "__file__", str(script))
    names = ["a.png", "evil1.png", "b.png", "evil2.png", "c.png"]
    for number, name in enumerate(names):
        picture(tmp_path / name, (number + 1, 2))
    found = scan(names, workers=1, folder=tmp_path)
    reason = "decoding it ends the process"
    assert found.problems == {1: reason, 3: reason}
    assert found.width.tolist() == [1, 0, 3, 0, 5]
    assert len(started) == 3 and all_over(started)


def test_a_worker_that_does_not_start(tmp_path, started, monkeypatch):
    monkeypatch.setattr(header_worker, "__file__", str(tmp_path / "no.py"))
    files = [picture(tmp_path / "a.png")]
    with pytest.raises(EnvironmentLacksError, match="could not be started"):
        scan(files)
    assert all_over(started)
