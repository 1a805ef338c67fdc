"""CIFAR-10 with the labels of CIFAR-10N's three people, in two forms.

    python scripts/cifar10n.py sets CIFAR10N.npz --labels=union --out=sets.npz
    python -m alim_keras.train --dataset=cifar10 --candidates_file=sets.npz

    python scripts/cifar10n.py folder CIFAR10N.npz CIFAR10.npz OUT

CIFAR10N.npz holds random_label1, random_label2 and random_label3, integers
(50000,) in CIFAR-10's official order; CIFAR-10N ships these arrays in a
PyTorch file, CIFAR-10_human.pt. CIFAR10.npz holds train_images, train_labels,
test_images and test_labels, in official order.

`folder` writes what somebody would have of their own: photos/ (PNG files),
labels.csv (a row for each person's answer, in random order), known.csv (200
true labels, as if somebody had looked these up), truth.csv (the true labels,
for measurements only) and test.csv (2,000 of the official test images). With
`--in_order` these are the first images, in official order, and person1.csv to
person3.csv hold one person's labels, worse.csv the array worse_label, and
labels600_0.csv to labels600_2.csv the answers on 600 images each.

Reference: Wei et al., 2022, https://arxiv.org/abs/2110.12088
"""

import argparse
import csv
import pathlib

import numpy as np
from PIL import Image

from alim_keras.data import CandidateSets

PEOPLE = ("random_label1", "random_label2", "random_label3")
NAMES = "airplane automobile bird cat deer dog frog horse ship truck".split()
KNOWN = 200
TESTED = 2000


def read(path, names):
    with np.load(path) as file:
        return [file[name] for name in names]


def write_sets(given):
    """Writes candidate sets for the data set `cifar10`."""
    names = PEOPLE if given.labels == "union" else (given.labels,)
    votes = np.stack(read(given.cifar10n, names)).astype(int)
    candidates = CandidateSets.from_dense(
        np.eye(len(NAMES), dtype=bool)[votes].any(axis=0),
        ids=[f"train_{row:05d}" for row in range(votes.shape[1])],
        class_names=NAMES,
        provenance={"source": f"CIFAR-10N, {given.labels}"},
    )
    candidates.save(given.out)
    print(candidates.describe())


def write_csv(path, head, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def write_folder(given):
    """Writes pictures and tables."""
    people = read(given.cifar10n, PEOPLE)
    arrays = ("train_images", "train_labels", "test_images", "test_labels")
    images, labels, test_images, test_labels = read(given.cifar10, arrays)
    stream = np.random.default_rng(given.seed)
    photos = given.out / "photos"
    photos.mkdir(parents=True, exist_ok=True)

    answers, truth = [], []
    order = np.arange(len(images))
    if not given.in_order:
        order = stream.permutation(len(images))
    for row in order[: given.count]:
        name = f"{row:05d}.png"
        Image.fromarray(images[row]).save(photos / name)
        truth.append((name, NAMES[labels[row]]))
        for number, said in enumerate(people, 1):
            answers.append((name, f"person{number}", NAMES[said[row]]))
    tested = []
    for row in range(0, len(test_images), 10000 // TESTED):
        name = f"test_{row:05d}.png"
        Image.fromarray(test_images[row]).save(photos / name)
        tested.append((name, NAMES[test_labels[row]]))

    head = ("image", "annotator", "label")
    if given.in_order:
        write_parts(given, head, answers)
    else:
        answers = [answers[row] for row in stream.permutation(len(answers))]
    write_csv(given.out / "labels.csv", head, answers)
    looked_up = sorted(stream.permutation(len(truth))[:KNOWN])
    known = [truth[row] for row in looked_up]
    for name, rows in (("known", known), ("truth", truth), ("test", tested)):
        write_csv(given.out / f"{name}.csv", ("id", "label"), rows)


def write_parts(given, head, answers):
    """Writes one person's labels, the worst of three, and 600 images' votes."""
    people = read(given.cifar10n, (*PEOPLE, "worse_label"))
    names = [name for name, *_ in answers[:: len(PEOPLE)]]
    for name, said in zip(("person1", "person2", "person3", "worse"), people):
        rows = zip(names, (NAMES[label] for label in said))
        write_csv(given.out / f"{name}.csv", ("id", "label"), rows)
    for seed in range(3):
        drawn = np.random.default_rng(seed).permutation(len(names))[:600]
        kept = {names[row] for row in drawn}
        rows = [row for row in answers if row[0] in kept]
        write_csv(given.out / f"labels600_{seed}.csv", head, rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    forms = parser.add_subparsers(required=True)
    sets = forms.add_parser("sets")
    sets.add_argument("cifar10n")
    sets.add_argument("--labels", default="union", choices=("union", *PEOPLE))
    sets.add_argument("--out", required=True)
    sets.set_defaults(write=write_sets)
    folder = forms.add_parser("folder")
    folder.add_argument("cifar10n")
    folder.add_argument("cifar10")
    folder.add_argument("out", type=pathlib.Path)
    folder.add_argument("--count", type=int, default=10000)
    folder.add_argument("--seed", type=int, default=0)
    folder.add_argument("--in_order", action="store_true")
    folder.set_defaults(write=write_folder)
    given = parser.parse_args()
    given.write(given)


if __name__ == "__main__":
    main()
