"""Ten kinds of birds as somebody's own photographs with candidate sets.

    python scripts/cub10.py CUB10.npz OUT --seed=0
    python -m alim_keras.train --dataset=OUT/sets.csv --images=OUT/photos \\
      --test_labels=OUT/test.csv --network=BACKBONE.keras --run_dir=OUT/run
    python scripts/cub10.py --right OUT OUT/run

CUB10.npz holds images, uint8 (n, H, W, 3), labels, integers (n,), and
label_names, (10,): the first ten classes of CUB-200-2011. 60 photographs
drawn by the seed are test images; the others get simulated sets (`flip`,
q 0.15, eta 0.137). truth.csv holds the true labels, for measurements only;
`--right` prints the share of labels in a run's labels.csv that are true.
"""

import argparse
import pathlib

import numpy as np
import pandas as pd
from PIL import Image

from alim_keras.data import simulate_candidates

TESTED = 60


def write(source, out, seed):
    """Writes photos/, sets.csv, test.csv and truth.csv into a folder."""
    with np.load(source) as file:
        images, labels = file["images"], file["labels"].astype(int)
        names = np.asarray([str(name) for name in file["label_names"]])
    order = np.random.default_rng(seed).permutation(len(labels))
    test, train = order[:TESTED], order[TESTED:]
    sets = simulate_candidates(
        labels[train],
        len(names),
        ambiguity=0.15,
        noise_level=0.137,
        seed=seed,
        class_names=names,
    )
    photos = out / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    for row, image in enumerate(images):
        Image.fromarray(image).save(photos / f"{row:03d}.png")
    ids = [f"{row:03d}.png" for row in train]
    listed = ["|".join(names[sets.members(row)]) for row in range(len(train))]
    frame = pd.DataFrame({"id": ids, "candidates": listed})
    frame.to_csv(out / "sets.csv", index=False)
    for name, rows in (("truth", train), ("test", test)):
        ids = [f"{row:03d}.png" for row in rows]
        frame = pd.DataFrame({"id": ids, "label": names[labels[rows]]})
        frame.to_csv(out / f"{name}.csv", index=False)


def right(out, run):
    """Returns the share of settled labels that are true."""
    settled = pd.read_csv(run / "labels.csv", dtype=str)
    truth = pd.read_csv(out / "truth.csv", dtype=str)
    both = truth.merge(settled, on="id", suffixes=("_true", ""))
    return (both["label_true"] == both["label"]).mean(), len(both)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=pathlib.Path, help="CUB10.npz, or OUT")
    parser.add_argument("second", type=pathlib.Path, help="OUT, or a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--right", action="store_true")
    given = parser.parse_args()
    if given.right:
        share, count = right(given.first, given.second)
        print(f"{share:.3f} of {count} labels are right")
    else:
        write(given.first, given.second, given.seed)


if __name__ == "__main__":
    main()
