"""Trains a classifier from images with candidate sets.

    python -m alim_keras.train --dataset=cifar100 --norm=scale

`--help` lists all flags. The run folder that is printed holds everything the
run leaves; the same command continues an interrupted run.
"""

import importlib.util
import math
import os
import shlex
import signal
import sys
from contextlib import nullcontext

from alim_keras import cli
from alim_keras.cli import train_flags
from alim_keras.files import write_atomically


def main(settings):
    """Runs the training that the settings describe."""
    from alim_keras import backend
    from alim_keras.runs import build
    from alim_keras.runs.folder import RunFolder

    _check_environment(settings)
    build.check_settings(settings)
    folder = RunFolder(settings.run_dir or _default_run_dir(settings))
    with backend.watching_workers():
        # Before the data: reading them with TFDS starts TensorFlow, after
        # which devices and workers cannot be set up any more.
        scope, replicas = backend.make_strategy(
            settings.distribute, settings.replicas
        )
        # Only now: TensorFlow answers SIGTERM itself where workers join.
        signal.signal(signal.SIGTERM, _interrupt)
        build.check_batch(settings, replicas)
        with folder.lock() if backend.is_chief() else nullcontext():
            folder.check_same(settings.as_dict())
            results = folder.finished()
            if results is None:
                results = _train(settings, folder, scope, replicas)
            elif backend.is_chief():
                print(f"This run is finished; nothing to do in {folder.path}")
        if backend.is_chief():
            _print_results(results, folder)


def _train(settings, folder, scope, replicas):
    """Trains; returns the results on the chief, which alone writes."""
    import keras

    from alim_keras import backend
    from alim_keras.runs import build
    from alim_keras.runs import session
    from alim_keras.runs import workers

    training = build.training_data(settings)
    data, candidates = training.data, training.candidates
    noise_rate = build.noise_rate(settings, candidates)
    folder.check_candidates(candidates.content_hash)
    workers.check_agreement(settings.as_dict(), folder, candidates)
    chief = backend.is_chief()
    if chief and settings.save_candidates:
        candidates.save(settings.save_candidates)
    if chief:
        print(candidates.describe(data.labels))

    backend.set_random_seed(settings.seed)
    keras.config.set_dtype_policy(settings.precision)
    if settings.deterministic:
        backend.make_deterministic()
    restored = folder.checkpoint.exists()
    with scope:
        model = build.model(settings, training, restored)
        build.compile_model(settings, model)

    finished_epochs = folder.checkpoint.restore(model) if restored else 0
    if chief and restored:
        print(f"Continuing {folder.path} after epoch {finished_epochs}")
    elif chief:
        _describe(model, settings, training, replicas)
        _write_identity(settings, folder, training)
    if chief:
        print(f"Run folder: {folder.path}", flush=True)

    if finished_epochs < settings.epochs:
        model.fit(
            session.train_batches(settings, training),
            epochs=settings.epochs,
            initial_epoch=finished_epochs,
            verbose=0,
            callbacks=session.callbacks(
                settings, folder, training, finished_epochs
            ),
        )
    results = None
    if chief:
        results = _finish(settings, folder, training, model, noise_rate)
    # The other workers have done their part when the chief has.
    backend.gather_processes([0])
    return results


def _write_identity(settings, folder, training):
    """Writes what says which run this is, and repeats it."""
    from alim_keras.runs import record

    folder.write(
        "run.json",
        record.run_record(
            settings.as_dict(),
            shlex.join(sys.orig_argv),
            training.candidates,
            training.data,
            len(training.trained),
        ),
    )
    training.candidates.save(folder.file("candidates.npz"))
    write_atomically(folder.file("run.flags"), cli.flags_as_text(settings))


def _finish(settings, folder, training, model, noise_rate):
    """Writes what a run leaves; returns its results."""
    from alim_keras.runs import artefacts
    from alim_keras.runs import record

    folder.checkpoint.restore(model, "best")
    artefacts.write_artefacts(folder, model, training)
    candidates, labels = training.candidates, training.data.labels
    results = record.results_record(
        folder,
        settings.as_dict(),
        candidates,
        noise_rate,
        candidates.statistics(labels)["realised_noise"],
    )
    folder.write("results.json", results)
    return results


def _check_environment(settings):
    from alim_keras.errors import EnvironmentLacksError

    if settings.tensorboard and not importlib.util.find_spec("tensorboard"):
        raise EnvironmentLacksError(
            "--tensorboard needs the package tensorboard: python -m pip "
            "install tensorboard. Without it metrics.csv has all numbers."
        )


def _default_run_dir(settings):
    """Names a run for what it is; runs of other settings never collide."""
    from alim_keras.runs.folder import fingerprint

    dataset = os.path.splitext(os.path.basename(settings.dataset))[0]
    name = (
        f"{dataset}-{settings.method}-{settings.norm}-seed{settings.seed}"
        f"-{fingerprint(settings.as_dict())}"
    )
    return os.path.join("runs", name)


def _interrupt(*_):
    raise KeyboardInterrupt


def _describe(model, settings, training, replicas):
    from alim_keras.runs import memory

    trainable = sum(math.prod(v.shape) for v in model.trainable_variables)
    found = memory.needed(settings, model.backbone, training)
    print(
        f"Model: {settings.method} on {settings.network}, {trainable:,} "
        f"trainable parameters, all decayed by {settings.weight_decay:g}; "
        f"{replicas} replica(s)\n{memory.describe(found)}"
    )


def _print_results(results, folder):
    def share(name):
        value = results[name]
        return "unknown" if value is None else f"{value:.4f}"

    print(
        f"Test accuracy {share('test_accuracy')} after the last epoch, "
        f"{share('test_accuracy_selected')} in epoch "
        f"{results['selected_epoch']}, selected by "
        f"{results['selected_by']}. Training labels right: "
        f"{share('pseudo_label_accuracy')}."
    )
    print(f"In {folder.path}:")
    for name, what in (
        ("labels.csv", "the settled label of every training image"),
        ("saved_model", "the classifier, images in, probabilities out"),
        ("model.keras", "the whole model, for Keras"),
        ("metrics.csv", "a row per epoch"),
        ("results.json", "the numbers above and more"),
        ("run.flags", "repeats the run"),
    ):
        # Without TensorFlow there is no saved_model.
        if os.path.exists(folder.file(name)):
            print(f"  {name:<13} {what}")


if __name__ == "__main__":
    sys.exit(cli.run(train_flags.COMMAND, main))
