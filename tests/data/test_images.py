"""Image files that look like an array, and what is kept once decoded."""

import os

import numpy as np
import PIL.Image
import pytest

from alim_keras.data import DiskImages
from alim_keras.data import decoding
from alim_keras.data import image_rows
from alim_keras.data import images as module
from alim_keras.data.images import channel_statistics
from alim_keras.data.images import scan
from alim_keras.errors import DataError

SIDE = 6


@pytest.fixture
def made(tmp_path):
    """Folder, names and pixels of 20 images."""
    stream = np.random.default_rng(0)
    pixels = stream.integers(0, 256, (20, SIDE, SIDE, 3)).astype(np.uint8)
    names = [f"{n}.png" for n in range(20)]
    for name, one in zip(names, pixels, strict=True):
        PIL.Image.fromarray(one).save(tmp_path / name)
    return tmp_path, names, pixels


@pytest.fixture
def opened(monkeypatch):
    """The files that were decoded."""
    found = []
    decode = decoding.decode

    def noted(source, *args, **more):
        found.append(source)
        return decode(source, *args, **more)

    monkeypatch.setattr(decoding, "decode", noted)
    return found


def test_it_looks_like_an_array(made):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert images.shape == pixels.shape and images.ndim == 4
    assert images.dtype == np.uint8 and len(images) == 20
    assert images.nbytes == pixels.nbytes
    assert np.array_equal(images.read(), pixels)
    index = np.array([7, 3, 3, 19])
    assert np.array_equal(images.read(index), pixels[index])
    assert np.array_equal(images.read(slice(2, 9)), pixels[2:9])
    assert np.array_equal(images[4], pixels[4])
    assert np.array_equal(images[-1], pixels[-1])
    assert images.read(np.arange(0)).shape == (0, SIDE, SIDE, 3)
    assert np.array_equal(image_rows(images, index), pixels[index])
    assert np.array_equal(image_rows(pixels, index), pixels[index])


def test_rows_of_rows(made, opened):
    folder, names, pixels = made
    images = DiskImages(np.array(names), SIDE, folder=folder)
    mask = np.arange(20) % 2 == 1
    for rows in (slice(3, 12), mask, np.array([5, 1, 5]), [2, 0], slice(0, 0)):
        chosen = images[rows]
        assert isinstance(chosen, DiskImages)
        assert chosen.shape == (len(pixels[rows]), SIDE, SIDE, 3)
    assert opened == []
    twice = images[mask][np.array([4, 0])]
    assert np.array_equal(twice.read(), pixels[mask][[4, 0]])
    assert np.array_equal(twice.read([1]), pixels[mask][[0]])


def test_a_million_rows_are_chosen_at_once():
    images = DiskImages([b""] * 1_000_000, 224)
    assert images.nbytes == 1_000_000 * 224 * 224 * 3
    with pytest.raises(DataError, match="row 999997 .an encoded image"):
        images[np.arange(999_999, 0, -2)][:5].read([1])


def test_small_images_are_decoded_once(made, opened, monkeypatch):
    folder, names, pixels = made
    for limit, count in ((pixels.nbytes + 1, 20), (pixels.nbytes, 60)):
        monkeypatch.setattr(module, "_KEPT", limit)
        images, before = DiskImages(names, SIDE, folder=folder), len(opened)
        images[5:].read()[:] = 0
        images[3][:] = 0
        for _ in range(2):
            assert np.array_equal(images.read(), pixels)
        assert len(opened) - before in (count, count - 4)


def test_it_does_not_become_an_array_by_itself(made):
    folder, names, _ = made
    with pytest.raises(TypeError, match="images.read"):
        np.asarray(DiskImages(names, SIDE, folder=folder))


def test_a_bad_file_is_named(made):
    folder, names, _ = made
    (folder / "9.png").write_bytes(b"")
    (folder / "15.png").unlink()
    images = DiskImages(names, SIDE, folder=folder)
    # The first in the order of reading, whichever thread meets one first.
    for _ in range(5):
        with pytest.raises(DataError) as found:
            images.read(np.arange(19, -1, -1))
        assert str(found.value) == (
            f"{folder}/15.png: cannot be read as an image: there is no such "
            "file; mend it, or leave its item out"
        )
    with pytest.raises(DataError, match="9.png: .*empty"):
        images.read([9])
    with pytest.raises(DataError, match="^row 1 .an encoded image.: .*empty"):
        DiskImages([b"", b""], SIDE)[1:].read()


def test_statistics_are_those_of_a_sample(made, opened):
    folder, names, pixels = made
    images = DiskImages(names, SIDE, folder=folder)
    assert channel_statistics(images) == channel_statistics(pixels)
    opened.clear()
    many = DiskImages(names * 500, SIDE, folder=folder)
    mean, std = channel_statistics(many)
    assert len(opened) == 256
    assert np.allclose(mean, (pixels / 255).mean((0, 1, 2)), atol=0.03)
    assert np.allclose(std, (pixels / 255).std((0, 1, 2)), atol=0.03)


# Looking at many files.


def picture(path, size=(6, 4), mode="RGB", seed=0, **options):
    stream = np.random.default_rng(seed)
    pixels = stream.integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    path.parent.mkdir(exist_ok=True)
    PIL.Image.fromarray(pixels).convert(mode).save(path, **options)
    return str(path)


EMPTY = "it is empty (zero bytes)"
NO_IMAGE = "it is not an image of a known format"


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


def test_what_is_found(mixed):
    folder, names = mixed
    found = scan(names, folder=folder)
    assert len(found) == 10
    assert found.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 6, 0, 0]
    assert found.height.tolist() == [4, 5, 7, 2, 8, 0, 0, 4, 0, 0]
    assert found.channels.tolist() == [3, 1, 3, 3, 3, 0, 0, 3, 0, 0]
    sizes = [os.path.getsize(folder / n) for n in names if n != "gone.png"]
    sizes.insert(8, 0)
    assert found.bytes.tolist() == sizes
    # The head of the one that was cut short is sound, its end is not there.
    assert found.cut_rows().tolist() == [7]
    assert found.problems == {
        5: EMPTY,
        6: NO_IMAGE,
        8: "there is no such file",
        9: "it is a folder",
    }
    assert found.identical == []


def test_a_turned_image_is_measured_as_shown(tmp_path):
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    files = [picture(tmp_path / "x.jpg", (6, 4), exif=exif)]
    found = scan(files)
    assert (found.width[0], found.height[0]) == (4, 6)


def test_links_are_opened_once(tmp_path, monkeypatch):
    first = picture(tmp_path / "a.png", seed=1)
    second = picture(tmp_path / "b.png", seed=2)
    os.symlink(first, tmp_path / "soft.png")
    os.link(first, tmp_path / "hard.png")
    files = [second, first, str(tmp_path / "soft.png")]
    files += [str(tmp_path / "hard.png"), first]
    asked, head = [], decoding.head
    monkeypatch.setattr(decoding, "head", lambda f: asked.append(f) or head(f))
    looked = scan(files)
    assert asked == [second, first] and looked.num_files == 2
    assert looked.width.tolist() == [6] * 5
    assert [rows.tolist() for rows in looked.identical] == [[1, 2, 3, 4]]
    assert looked.copies[1] == looked.copies[4] != looked.copies[0]
    times = [os.stat(f).st_mtime_ns for f in files]
    assert looked.modified.tolist() == times


def test_a_broken_link_to_a_bad_file_marks_every_row(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    os.symlink(tmp_path / "a.png", tmp_path / "b.png")
    os.symlink(tmp_path / "gone", tmp_path / "c.png")
    found = scan(["a.png", "b.png", "c.png"], folder=tmp_path)
    missing = "there is no such file"
    assert found.problems == {0: NO_IMAGE, 1: NO_IMAGE, 2: missing}


def test_equal_contents_are_found(tmp_path, monkeypatch):
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
    monkeypatch.setattr(module, "_COMPARED", 3 * os.path.getsize(one) - 1)
    found = scan([one, other, same])
    assert not found.compared and found.identical == []


def test_encoded_images(mixed):
    folder, names = mixed
    images = [(folder / name).read_bytes() for name in names[:8]]
    found = scan([*images, images[0]])
    assert found.width.tolist() == [6, 5, 9, 3, 4, 0, 0, 6, 6]
    assert found.bytes.tolist() == [len(one) for one in [*images, images[0]]]
    assert found.problems == {5: EMPTY, 6: NO_IMAGE}
    assert [rows.tolist() for rows in found.identical] == [[0, 8]]


def test_no_files():
    found = scan([])
    assert len(found) == 0 and found.problems == {} and found.identical == []
    assert (found.unified_size(), found.unified_channels()) == (224, 3)


def test_progress_ends_with_all(tmp_path):
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
    looked = scan([*files, str(tmp_path / "bad.png")])
    assert looked.unified_size() == expected


def test_names_of_all_kinds(tmp_path):
    names = ["ä é.png", "line\nbreak.png", "@A.png", "漢字.png"]
    names.append(os.fsdecode(b"caf\xe9.png"))
    for number, name in enumerate(names):
        picture(tmp_path / name, (number + 1, 2))
    looked = scan(names, folder=tmp_path)
    assert looked.width.tolist() == [1, 2, 3, 4, 5] and looked.problems == {}


def test_the_few_that_differ(tmp_path):
    sizes = [(8, 8)] * 4 + [(9, 8), (8, 8), (20, 20)]
    files = [
        picture(tmp_path / f"{n}.png", size) for n, size in enumerate(sizes)
    ]
    assert scan(files).odd_rows().tolist() == [4, 6]
    assert scan(files[3:]).odd_rows().tolist() == [1, 3]
    assert scan(files[4:]).odd_rows().tolist() == []
    assert scan([]).odd_rows().tolist() == []
