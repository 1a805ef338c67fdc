"""Candidate sets for CIFAR-10 from the people of CIFAR-10N.

    python scripts/cifar10n_candidates.py LABELS --labels=union --out=sets.npz
    python -m alim_keras.train --dataset=cifar10 --candidates_file=sets.npz

LABELS is an .npz file with the arrays random_label1, random_label2 and
random_label3, integers (50000,) in CIFAR-10's official order. CIFAR-10N ships
the same arrays in a PyTorch file, CIFAR-10_human.pt.

Reference: Wei et al., 2022, https://arxiv.org/abs/2110.12088
"""

import argparse
import sys

import numpy as np

from alim_keras.data import CandidateSets
from alim_keras.data.candidate_sets import default_ids

PEOPLE = ("random_label1", "random_label2", "random_label3")
CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def main():
    """Writes the sets and says what they are like."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file")
    parser.add_argument("--labels", default="union", choices=("union", *PEOPLE))
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    with np.load(arguments.file) as found:
        names = PEOPLE if arguments.labels == "union" else (arguments.labels,)
        missing = [name for name in names if name not in found]
        if missing:
            return f"{arguments.file} lacks the arrays {', '.join(missing)}"
        votes = np.stack([found[name] for name in names]).astype(int)
    sets = np.eye(len(CLASS_NAMES), dtype=bool)[votes].any(axis=0)
    candidates = CandidateSets(
        default_ids(len(sets)),
        sets,
        CLASS_NAMES,
        {"source": f"CIFAR-10N, {arguments.labels}"},
    )
    candidates.save(arguments.out)
    print(candidates.describe())
    return 0


if __name__ == "__main__":
    sys.exit(main())
