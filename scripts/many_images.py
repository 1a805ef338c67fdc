"""A table that lists very many images, and what it costs to read it.

    python scripts/many_images.py OUT [--count=1000000]

OUT then holds files/ (4,000 small JPEG and PNG pictures of noise), photos/
(links to these, as many as --count says) and labels.csv with one to three
candidates for each. Then `check`, and `train` up to its 300th step, run as
processes of their own, and their seconds and peak memory are printed.
"""

import argparse
import csv
import os
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np
from PIL import Image

FILES = 4000
CLASSES = [f"class_{number}" for number in range(10)]
# Training, stopped after some steps; it tells when the first was done.
TRAIN = """
import os, time
began = time.monotonic()
from alim_keras import train
from alim_keras.app import process
from alim_keras.callbacks import EpochTimer
steps = [0]
def stop(callback, batch, logs=None):
    steps[0] += 1
    if steps[0] in (1, 300):
        print(f"step {steps[0]} after {time.monotonic() - began:.1f} s")
    if steps[0] == 300:
        os._exit(0)
EpochTimer.on_train_batch_end = stop
process.run(train.COMMAND, train.main)
"""


def make(out, count):
    stream = np.random.default_rng(0)
    for name in ("files", "photos"):
        (out / name).mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(FILES):
        ending = "jpg" if number % 2 else "png"
        pixels = stream.integers(0, 256, (32, 32, 3), "uint8")
        files.append(out / "files" / f"{number}.{ending}")
        Image.fromarray(pixels).save(files[-1])
    with open(out / "labels.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "candidates"))
        for number in range(count):
            source = files[number % FILES]
            name = f"image_{number}{source.suffix}"
            os.symlink(source.resolve(), out / "photos" / name)
            size = int(stream.integers(1, 4))
            members = stream.choice(CLASSES, size, replace=False)
            writer.writerow((name, "|".join(members)))


def measure(what, command):
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    told = [line for line in done.stdout.splitlines() if "step " in line]
    print(
        f"{what}: rc {done.returncode}, {time.monotonic() - began:.1f} s, "
        f"peak of the largest process so far {peak:.2f} GiB",
        *[line for line in told if " after " in line],
        sep="\n  ",
        flush=True,
    )
    if done.returncode:
        print(done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1_000_000)
    given = parser.parse_args()
    if not (given.out / "labels.csv").exists():
        make(given.out, given.count)
    flags = [
        f"--dataset={given.out / 'labels.csv'}",
        f"--images={given.out / 'photos'}",
        "--method=proden",
        "--noise_rate=0.1",
        "--batch_size=128",
    ]
    python = [sys.executable]
    measure("check", [*python, "-m", "alim_keras.check", *flags])
    run_dir = f"--run_dir={given.out / 'run'}"
    measure("train", [*python, "-c", TRAIN, *flags, run_dir])


if __name__ == "__main__":
    main()
