"""Checks and measures one GPU with Keras on JAX, in under eight minutes.

    python scripts/gpu_check.py --data=cifar10.npz --out=gpu_check

Needs JAX with its GPU plug-in, Keras and the package's own folder; not
TensorFlow. Three stages, each a process of its own, so that one does not hold
the other's memory:

1. parity: twenty steps on the CPU and on the GPU, from equal weights;
2. benchmark: ALIM's step and the plain one in float32 and bfloat16;
3. training: as many epochs of CIFAR-10 (q 0.3, eta 0.3, ALIM-Onehot, mixup,
   cosine) as fit into --minutes, with test accuracy against seconds.

--data is an .npz file with train_images, train_labels, test_images and
test_labels; without it the third stage is left out. --rehearse runs all of it
at a small scale on whatever device there is. Results: OUT/gpu_check.json,
OUT/metrics.csv, OUT/log-*.txt, and a summary on stdout. Ends with 1 if the
parity fails or a stage does.
"""

import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
# Differences of weights and state after twenty steps in float32.
TOLERANCE = 1e-3
PRECISIONS = ("float32", "mixed_bfloat16")
# Seconds for compiling, the first epoch's host work and the artefacts.
RESERVE = 60.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--out", default="gpu_check")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, help="instead of --minutes")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--parity_stage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parity_stage:
        return parity_stage(options.parity_stage)
    if options.data and not pathlib.Path(options.data).is_file():
        parser.error(f"there is no file --data={options.data}")
    if not 0 < options.minutes < float("inf"):
        parser.error(f"--minutes must be positive: {options.minutes}")
    if options.rehearse:
        options.width, options.batch_size = 4, 32
        options.epochs = options.epochs or 2
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    found = {"options": vars(options), "parity": parity(out)}
    show_parity(found["parity"])
    found["benchmark"] = {p: benchmark(out, options, p) for p in PRECISIONS}
    show_benchmark(found["benchmark"])
    if options.data:
        found["training"] = train(out, options, found["benchmark"])
        show_training(found["training"])
    else:
        found["training"] = None
        print("training: left out, --data was not given")
    found["seconds"] = time.monotonic() - began
    text = json.dumps(found, indent=1)
    (out / "gpu_check.json").write_text(text, encoding="utf-8")
    print(f"{found['seconds']:.0f} s in all; {out / 'gpu_check.json'}")
    # Training that ran out of its time was interrupted, which is 130.
    trained = (found["training"] or {"exit_code": 0})["exit_code"] in (0, 130)
    return 0 if found["parity"]["agrees"] and trained else 1


def run(command, log, seconds=None):
    """Runs a stage with its output in a file; returns its exit code.

    A stage that runs past its time is asked to stop and leaves what it has.
    """
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(TOP),
        # The second and third stage compile the same step.
        "JAX_COMPILATION_CACHE_DIR": str(log.parent.resolve() / "compiled"),
    }
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            return process.wait(60)


def checked(command, log, seconds=None):
    code = run(command, log, seconds)
    if code:
        lines = log.read_text(encoding="utf-8").splitlines()[-15:]
        print("\n".join([*lines, f"{command[0]} ended with {code}, see {log}"]))
        sys.exit(1)


# Parity.


def parity(out):
    result = out / "parity.json"
    command = [__file__, f"--parity_stage={result}"]
    checked(command, out / "log-parity.txt", 150)
    return json.loads(result.read_text(encoding="utf-8"))


def parity_stage(path):
    import jax

    # A GPU multiplies float32 in fewer bits unless it is told not to.
    jax.config.update("jax_default_matmul_precision", "highest")
    accelerator, cpu = jax.devices()[0], jax.devices("cpu")[0]
    ends = {}
    for device in (cpu, accelerator):
        with jax.default_device(device):
            ends[device.platform] = twenty_steps()
    first, second = ends[cpu.platform], ends[accelerator.platform]
    largest, name = max(
        (float(abs(a - b).max()), name)
        for (name, a), (_, b) in zip(first, second)
    )
    found = {
        "device": accelerator.device_kind,
        "compared_with": cpu.device_kind,
        "largest_difference": largest,
        "where": name,
        "tolerance": TOLERANCE,
        "agrees": largest <= TOLERANCE,
    }
    pathlib.Path(path).write_text(json.dumps(found), encoding="utf-8")
    return 0


def twenty_steps():
    """All weights after five epochs of four steps."""
    import random

    import keras
    import numpy as np

    import alim_keras

    count, batch, shape = 64, 16, (32, 32, 3)
    stream = np.random.default_rng(0)
    images = stream.integers(0, 256, (count, *shape)).astype("uint8")
    labels = stream.integers(0, 10, count)
    candidates = stream.random((count, 10)) < 0.3
    candidates[np.arange(count), labels] = True
    random.seed(1)
    # On the CPU, so that both devices start from the same weights.
    import jax

    with jax.default_device(jax.devices("cpu")[0]):
        start = parity_model(count).get_weights()
    model = parity_model(count)
    model.set_weights(start)
    model.compile(keras.optimizers.SGD(0.003, momentum=0.9), jit_compile=True)
    alim = alim_keras.callbacks.ALIM("scale", noise_rate=0.3, warmup_epochs=1)
    data = alim_keras.data.train_dataset(images, candidates, batch)
    model.fit(data, epochs=5, verbose=0, callbacks=[alim])
    return [(v.path, v.numpy().astype("float64")) for v in model.variables]


def parity_model(count):
    import random

    import alim_keras

    random.seed(1)
    return alim_keras.PiCO(
        alim_keras.networks.cifar_resnet18(width=8),
        10,
        count,
        queue_size=128,
        # The operations of the strong view round to whole levels, which
        # turns the last digit of a float into a step.
        views=alim_keras.augment.Views(num_operations=0),
        weight_decay=1e-3,
    )


def show_parity(found):
    verdict = "agrees" if found["agrees"] else "DIFFERS"
    print(
        f"parity: {found['device']} {verdict} with the CPU after 20 steps, "
        f"largest difference {found['largest_difference']:.1e} in "
        f"{found['where']}",
        flush=True,
    )


# Benchmark.


def common(options):
    return [
        "--backend=jax",
        f"--width={options.width}",
        f"--batch_size={options.batch_size}",
    ]


def benchmark(out, options, precision):
    import numpy as np

    log, data = out / f"log-benchmark-{precision}.txt", out / "random.npz"
    count = 640 if options.rehearse else 50000
    stream, arrays = np.random.default_rng(0), {}
    for split, size in (("train", count), ("test", 10)):
        shape = (size, 32, 32, 3)
        arrays[f"{split}_images"] = stream.integers(0, 256, shape, "uint8")
        arrays[f"{split}_labels"] = np.arange(size) % 10
    np.savez(data, **arrays)
    command = [
        "-m",
        "alim_keras.benchmark",
        "--preset=cifar10",
        f"--dataset={data}",
        f"--precision={precision}",
        "--seconds=15",
        *common(options),
    ]
    checked(command, log, 240)
    printed = log.read_text(encoding="utf-8")
    return json.loads(printed[printed.index("{\n") : printed.rindex("}") + 1])


def show_benchmark(found):
    for precision, result in found.items():
        rate = result["images_per_second"]
        print(
            f"benchmark {precision}: ALIM {rate['alim']:.0f} images/s, plain "
            f"{rate['plain']:.0f}, efficiency {result['efficiency']:.2f}",
            flush=True,
        )


# Training.


def train(out, options, measured):
    rates = {
        precision: result["images_per_second"]["alim"]
        for precision, result in measured.items()
    }
    precision = max(rates, key=rates.get)
    budget = 60.0 * options.minutes
    epochs = options.epochs
    if epochs is None:
        # A tenth for what stands between the epochs.
        seconds = 1.1 * 50000 / rates[precision]
        epochs = max(1, int((budget - RESERVE) / seconds))
    folder = out / "run"
    shutil.rmtree(folder, ignore_errors=True)
    command = [
        "-m",
        "alim_keras.train",
        "--preset=cifar10",
        f"--dataset={options.data}",
        f"--run_dir={folder}",
        f"--precision={precision}",
        f"--epochs={epochs}",
        f"--warmup_epochs={max(1, round(0.2 * epochs))}",
        f"--learning_rate={options.learning_rate}",
        "--lr_schedule=cosine",
        "--progress=line",
        "--holdout=0",
        "--select=last",
        *common(options),
    ]
    if options.rehearse:
        command.append("--train_size=640")
    code = run(command, out / "log-training.txt", budget)
    rows = curve(folder / "metrics.csv")
    if rows:
        shutil.copy(folder / "metrics.csv", out / "metrics.csv")
    elif code:
        sys.exit(f"training ended with {code}, see {out / 'log-training.txt'}")
    return {
        "precision": precision,
        "epochs_planned": epochs,
        "exit_code": code,
        "curve": rows,
    }


def curve(path):
    """Returns the seconds of training so far, and numbers of each epoch."""
    if not path.exists():
        return []
    names = ("test_accuracy", "pseudo_label_accuracy", "images_per_second")
    seconds, rows = 0.0, []
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            seconds += float(row["seconds"])
            rows.append(
                {
                    "epoch": int(row["epoch"]),
                    "seconds": round(seconds, 1),
                    **{name: float(row[name]) for name in names},
                }
            )
    return rows


def show_training(found):
    if not found["curve"]:
        print("training: no epoch was finished in time")
        return
    rows = found["curve"]
    print(f"training in {found['precision']}: seconds, test accuracy")
    step = max(1, len(rows) // 12)
    for row in [*rows[:-1:step], rows[-1]]:
        print(
            f"  epoch {row['epoch']:3d} {row['seconds']:7.1f} s  "
            f"{row['test_accuracy']:.4f}  "
            f"{row['images_per_second']:.0f} images/s"
        )


if __name__ == "__main__":
    sys.exit(main())
