"""Measures how far off each estimator of the noise rate is.

    python scripts/noise_rate_table.py --out table.md

For each protocol, planted eta and seed: candidate sets for a subset of a data
set, a tenth of it held out; a short training on the rest, and three for
predictions out of fold; then every estimator on what the network says. Writes
Markdown: the mean error (bias) and its standard deviation over the seeds
(spread) in percentage points, the mean absolute error, and how often the true
rate lay in the 95 % interval. Errors are against the realised rate of the
training part. The defaults take about a quarter of an hour on one core.
"""

import argparse
import collections
import itertools

import numpy as np

from alim_keras import noise_rate
from alim_keras import train
from alim_keras.app import load
from alim_keras.app import noise
from alim_keras.data import holdout_split
from alim_keras.files import write_atomically

ESTIMATORS = (
    "auto",
    "em, held out",
    "em, out of fold",
    "em, trained on",
    "annotated, 100",
)


def cell(cross_fit, training, seed):
    """Returns every estimator's `Estimate`, realised rate and accuracy."""
    labels, sets = training.labels, training.sets.dense()
    trained, held_out = holdout_split(training.ids, 0.1, seed)
    # Rows of the fits count within all images: the script holds out itself.
    logits = cross_fit(trained, np.arange(len(sets)), training)
    fold_logits = noise_rate.out_of_fold(
        lambda fit, rest: cross_fit(trained[fit], trained[rest], training),
        len(trained),
        seed=seed,
    )
    looked_up = np.random.default_rng(seed).choice(trained, 100, replace=False)
    estimates = {
        "em, held out": noise_rate.em(logits[held_out], sets[held_out]),
        "em, out of fold": noise_rate.em(fold_logits, sets[trained]),
        "em, trained on": noise_rate.em(logits[trained], sets[trained]),
        "annotated, 100": noise_rate.annotated(
            labels[looked_up], sets[looked_up]
        ),
    }
    pair = logits[held_out], sets[held_out]
    estimates["auto"] = noise_rate.cautious(*pair)
    realised = 1.0 - sets[trained, labels[trained]].mean()
    right = logits[held_out].argmax(axis=1) == labels[held_out]
    return estimates, float(realised), float(right.mean())


def measure(arguments):
    """Yields protocol, eta, estimates, realised rate and accuracy."""
    for seed in range(arguments.seeds):
        cross_fit = None
        for protocol, eta in itertools.product(
            arguments.protocols, arguments.noise_levels
        ):
            config = train.COMMAND.parse(
                [
                    f"--dataset={arguments.dataset}",
                    f"--train_size={arguments.train_size}",
                    f"--ambiguity={arguments.ambiguity}",
                    f"--noise_level={eta}",
                    f"--protocol={protocol}",
                    f"--seed={seed}",
                    "--holdout=0",
                    "--width=16",
                    *arguments.flags,
                ]
            ).config
            training = load.training_set(config)
            # One compiled model for all cells of a seed.
            cross_fit = cross_fit or noise.cross_fit(config, training, 12)
            numbers = cell(cross_fit, training, seed)
            print(
                f"seed {seed} {protocol} eta {eta}: realised "
                f"{numbers[1]:.3f}, accuracy {numbers[2]:.3f}, "
                + ", ".join(
                    f"{k} {v.value:.3f}" for k, v in numbers[0].items()
                ),
                flush=True,
            )
            yield protocol, eta, *numbers


def table(protocol, levels, cells):
    """Returns the Markdown table of one protocol."""
    heads = [f"eta {eta:g}" for eta in levels]
    rows = [
        f"| `{protocol}` | {' | '.join(heads)} | mean absolute | inside |",
        "|---|" + "---|" * (len(levels) + 2),
    ]
    for name in ESTIMATORS:
        entries, errors, inside = [], [], []
        for eta in levels:
            these = []
            for estimates, realised, _ in cells[protocol, eta]:
                one = estimates[name]
                these.append(100 * (one.value - realised))
                inside.append(one.low <= realised <= one.high)
            entries.append(f"{np.mean(these):+.1f} ± {np.std(these):.1f}")
            errors += these
        rows.append(
            f"| {name} | {' | '.join(entries)} | "
            f"{np.mean(np.abs(errors)):.1f} | {np.mean(inside):.0%} |"
        )
    for what, place in (("realised, %", 1), ("accuracy, %", 2)):
        means = [
            f"{100 * np.mean([c[place] for c in cells[protocol, eta]]):.1f}"
            for eta in levels
        ]
        rows.append(f"| *{what}* | {' | '.join(means)} | | |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, help="Markdown file to write")
    parser.add_argument("--dataset", default="fashion_mnist")
    parser.add_argument("--train_size", type=int, default=2000)
    parser.add_argument("--ambiguity", type=float, default=0.3)
    parser.add_argument("--protocols", nargs="+", default=["flip", "pico"])
    parser.add_argument(
        "--noise_levels",
        nargs="+",
        type=float,
        default=[0.0, 0.05, 0.1, 0.2, 0.3, 0.4],
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--flags",
        nargs=argparse.REMAINDER,
        default=[],
        help="further flags of alim_keras.train, after --flags",
    )
    arguments = parser.parse_args()
    cells = collections.defaultdict(list)
    for protocol, eta, *numbers in measure(arguments):
        cells[protocol, eta].append(numbers)
    tables = [
        table(protocol, arguments.noise_levels, cells)
        for protocol in arguments.protocols
    ]
    write_atomically(arguments.out, "\n\n".join(tables) + "\n")


if __name__ == "__main__":
    main()
