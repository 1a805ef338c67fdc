"""Writes a folder of pictures and a CSV, as somebody might have them.

    python examples/make_folder.py OUT

The pictures are real handwritten digits (scikit-learn's); the three people who
say what each shows are made up: ann is careful, ben is wrong in one answer of
four and mixes up 1 and 7, cat skips a third and sometimes says 'unsure'. OUT
then holds photos/, labels.csv (a row for each answer), test.csv (labels of
other pictures, to test on) and truth.csv, which nobody has in real life: it
plays the person who looks pictures up.
"""

import argparse
import csv
import pathlib

import numpy as np
from PIL import Image

from alim_keras.data import load

NAMES = "zero one two three four five six seven eight nine".split()


def write_folder(out, count=600, tested=120, seed=0):
    """Writes the folder.

    Args:
        out: Path.
        count: Integer, pictures with answers, at most 1437.
        tested: Integer, pictures to test on, at most 360.
        seed: Integer of the people's mistakes.

    Returns:
        Dict from each file name to the set of names that people gave it.
    """
    data = load("digits")
    stream = np.random.default_rng(seed)
    (out / "photos").mkdir(parents=True, exist_ok=True)
    answers, sets = [], {}
    for row in range(count):
        name, truth = f"{row:04d}.png", NAMES[data.labels[row]]
        save(out / "photos" / name, data.images[row])
        said = say(truth, stream)
        answers += [(name, who, word) for who, word in said]
        sets[name] = {word for _, word in said if word != "unsure"}
    for row in range(tested):
        save(out / "photos" / f"test_{row:04d}.png", data.test_images[row])
    order = stream.permutation(len(answers))
    write(
        out / "labels.csv",
        ("image", "annotator", "label"),
        [answers[place] for place in order],
    )
    truth = [
        (f"{row:04d}.png", NAMES[data.labels[row]]) for row in range(count)
    ]
    write(out / "truth.csv", ("id", "label"), truth)
    test = [
        (f"test_{row:04d}.png", NAMES[data.test_labels[row]])
        for row in range(tested)
    ]
    write(out / "test.csv", ("id", "label"), test)
    return sets


def say(truth, stream):
    """Returns (person, answer) pairs about one picture."""

    def wrong(share):
        mixed_up = {"one": "seven", "seven": "one"}
        if stream.random() >= share:
            return truth
        others = [name for name in NAMES if name != truth]
        return mixed_up.get(truth, others[stream.integers(9)])

    found = []
    # One picture in twelve is hard, and ann has a bad day.
    if stream.random() < 1 / 12:
        found.append(("ann", wrong(1)))
        return found
    found += [("ann", wrong(0.02)), ("ben", wrong(0.25))]
    if stream.random() < 2 / 3:
        unsure = stream.random() < 0.2
        found.append(("cat", "unsure" if unsure else wrong(0.05)))
    return found


def save(path, pixels):
    Image.fromarray(pixels[..., 0]).save(path)


def write(path, head, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    write_folder(parser.parse_args().out)
