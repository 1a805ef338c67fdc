"""Writes CIFAR-10 with three people's labels as somebody would have them.

    python scripts/cifar10n_folder.py CIFAR10.npz CIFAR10N.npz OUT [--count=N]

OUT then holds photos/ (PNG files), labels.csv (a row for each person's answer,
in random order), known.csv (200 true labels, as if somebody had looked these
up), truth.csv (the true labels, for measurements only) and test.csv (2,000 of
the official test images). The first file holds train_images, train_labels,
test_images and test_labels, in official order; the second random_label1,
random_label2 and random_label3 of CIFAR-10N.
"""

import argparse
import csv
import pathlib

import numpy as np
from PIL import Image

NAMES = "airplane automobile bird cat deer dog frog horse ship truck".split()
KNOWN = 200
TESTED = 2000


def write_csv(path, head, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cifar10")
    parser.add_argument("cifar10n")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with np.load(given.cifar10) as file:
        data = {name: file[name] for name in file.files}
    with np.load(given.cifar10n) as file:
        people = [file[f"random_label{number}"] for number in (1, 2, 3)]
    stream = np.random.default_rng(given.seed)
    photos = given.out / "photos"
    photos.mkdir(parents=True, exist_ok=True)

    answers, truth = [], []
    for row in stream.permutation(len(data["train_images"]))[: given.count]:
        name = f"{row:05d}.png"
        Image.fromarray(data["train_images"][row]).save(photos / name)
        truth.append((name, NAMES[data["train_labels"][row]]))
        for number, labels in enumerate(people, 1):
            answers.append((name, f"person{number}", NAMES[labels[row]]))
    tested = []
    for row in range(0, len(data["test_images"]), 10000 // TESTED):
        name = f"test_{row:05d}.png"
        Image.fromarray(data["test_images"][row]).save(photos / name)
        tested.append((name, NAMES[data["test_labels"][row]]))

    order = stream.permutation(len(answers))
    write_csv(
        given.out / "labels.csv",
        ("image", "annotator", "label"),
        [answers[place] for place in order],
    )
    pair = ("id", "label")
    looked_up = stream.permutation(len(truth))[:KNOWN]
    known = [truth[place] for place in sorted(looked_up)]
    write_csv(given.out / "known.csv", pair, known)
    write_csv(given.out / "truth.csv", pair, truth)
    write_csv(given.out / "test.csv", pair, tested)


if __name__ == "__main__":
    main()
