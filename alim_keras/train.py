"""Trains an image classifier on candidate label sets.

Some of them may miss the true label (ALIM, NeurIPS 2023). The run folder that
is printed holds everything the run leaves; the same command continues an
interrupted run.
"""

import dataclasses
import glob
import os
import sys

from alim_keras.app import cli
from alim_keras.app import defaults
from alim_keras.app import load
from alim_keras.app import process
from alim_keras.app.config import TRAINING

COMMAND = cli.Command(
    name="train",
    doc=__doc__,
    groups=TRAINING,
    examples=(
        "train --dataset=cifar100 --norm=scale",
        "train --dataset=labels.csv --images=photos --run_dir=runs/mine",
        "train --preset=smoke --run_dir=/tmp/run",
    ),
    first=(
        "run_dir dataset images preset method network noise_rate epochs "
        "batch_size backend"
    ).split(),
)


def main(line):
    """Runs the training of a command line."""
    import keras

    from alim_keras import backend
    from alim_keras.app import artefacts
    from alim_keras.app import build
    from alim_keras.app.run_folder import RunFolder

    config = line.config
    load.check_use(line)
    build.check(config)
    folder = RunFolder(config.run.run_dir or _default_run_dir(config))
    # Before the data: reading them with TFDS starts TensorFlow, after which
    # devices and workers cannot be set up any more.
    machine = config.machine
    strategy = backend.make_strategy(machine.distribute, machine.replicas)
    with folder.lock(backend.is_chief()):
        folder.check_same(config)
        results = folder.finished()
        is_new = results is None
        if is_new:
            results = train(config, folder, *strategy)
    if not backend.is_chief():
        return
    if not is_new:
        print(f"This run is finished; nothing to do in {folder.path}")
    if is_new and keras.config.backend() != "tensorflow":
        # It locks the folder itself.
        artefacts.export_on_tensorflow(folder)
    print(artefacts.describe(results))
    left = ", ".join(sorted(glob.glob("*", root_dir=folder.path)))
    print(f"In {folder.path}: {left}. docs/runs.md describes them.")


def train(config, folder, scope, replicas=1, publish=True):
    """Trains in a `RunFolder` that is locked, or goes on with what is there.

    Scope and replicas are those of `backend.make_strategy`; `publish` says
    whether models and labels are written, too. Returns the results on the
    chief, which alone writes; None elsewhere.
    """
    from alim_keras import backend
    from alim_keras.app import artefacts
    from alim_keras.app import build
    from alim_keras.app import features
    from alim_keras.app import noise
    from alim_keras.app.verdict import verdict

    # Data.
    is_chief = backend.is_chief()
    is_restored = folder.checkpoint.exists()
    config = defaults.kept(config, folder)
    training = load.training_set(config, folder)
    config, reasons = defaults.resolve(config, training)
    build.check(config, replicas)
    training = defaults.arranged(config, training)
    pixels = training = features.at_own_size(config, training)
    folder.check_data(config, training)
    if is_chief:
        sets = training.sets.describe(training.labels)
        lines = [*training.notes, sets, defaults.describe(reasons)]
        print("\n".join(filter(None, lines)), flush=True)
    training = features.frozen(config, pixels, folder)

    first = None
    if not is_restored and defaults.epochs_frozen(config.method.train_backbone):
        first = _frozen_run(config, folder, scope, replicas, publish)
        of_features = {"mean": first.training.mean, "std": first.training.std}
        training = dataclasses.replace(training, **of_features)

    noise_rate = noise.prepare(config, folder, training)

    # Model and optimizer.
    with scope:
        model = build.model(config, training, is_restored)
    if first is not None:
        build.start_from(model, first)
    finished_epochs = folder.checkpoint.restore(model) if is_restored else 0
    if is_chief:
        if is_restored:
            print(f"Continuing {folder.path} after epoch {finished_epochs}")
        else:
            print(build.describe(config, model, training, replicas))
        folder.write_identity(config, pixels, reasons)
        print(f"Run folder: {folder.path}", flush=True)

    # Training: the step is methods/base.py's, in the Trainer of backend/.
    if finished_epochs < config.train.epochs:
        chosen = build.run_callbacks(
            config, folder, training, finished_epochs, noise_rate
        )
        model.fit(
            build.train_batches(config, training),
            epochs=config.train.epochs,
            initial_epoch=finished_epochs,
            verbose=0,
            callbacks=chosen,
        )

    # What others use, with the weights of the selected epoch.
    results = None
    if is_chief:
        settled = mean = judgement = None
        if publish:
            print("Writing the models and the labels", flush=True)
            folder.checkpoint.restore(model, "best")
            settled, mean = artefacts.write(folder, model, training)
            judgement = verdict(model, training, settled)
        rate = noise.Kept(config, folder, training).in_force()
        results = artefacts.results(config, folder, training, rate, mean)
        results["verdict"] = judgement
        folder.write("results.json", results)
    # The other workers have done their part when the chief has.
    backend.gather_processes([0])
    return results


def _frozen_run(config, folder, scope, replicas, publish):
    """Returns the `OpenRun` of the run that trains the head first."""
    from alim_keras import backend
    from alim_keras.app import build
    from alim_keras.app.run_folder import RunFolder

    first = RunFolder(f"{folder.path}-frozen")
    config = defaults.of_frozen_part(config, first.path)
    with first.lock(backend.is_chief()):
        first.check_same(config)
        if first.finished() is None:
            train(config, first, scope, replicas, publish)
        # As its run.flags say, but where the images lie now.
        return build.reopened(config, first)


def _default_run_dir(config):
    """Names a run for what it is; runs of other settings never collide."""
    from alim_keras.app.run_folder import fingerprint

    dataset = os.path.splitext(os.path.basename(config.data.dataset))[0]
    # The class, of a method that is named by its file.
    method = (config.method.method or "auto").rpartition(":")[2]
    parts = [dataset, method, config.alim.norm, f"seed{config.run.seed}"]
    parts.append(fingerprint(config.as_dict()))
    return os.path.join("runs", "-".join(filter(None, parts)))


if __name__ == "__main__":
    sys.exit(process.run(COMMAND, main))
