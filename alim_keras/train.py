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
                results = train(settings, folder, scope, replicas)
            elif backend.is_chief():
                print(f"This run is finished; nothing to do in {folder.path}")
        if backend.is_chief():
            _print_results(results, folder)


def train(settings, folder, scope, replicas, publish=True):
    """Trains in a run folder, or goes on with what is there.

    Args:
        settings: The train command's settings.
        folder: The `RunFolder`, locked and of the same settings.
        scope: The distribution's scope; see `backend.make_strategy`.
        replicas: Number of replicas.
        publish: Whether the served model, the Keras model and the labels are
            written too.

    Returns:
        The results on the chief, which alone writes; `None` elsewhere.
    """
    import keras

    from alim_keras import backend
    from alim_keras.runs import build
    from alim_keras.runs import identity
    from alim_keras.runs import loading
    from alim_keras.runs import noise
    from alim_keras.runs import session
    from alim_keras.runs import workers

    training = loading.training_data(
        settings,
        ids=folder.trained_ids(),
        normalisation=folder.normalisation(),
    )
    data, candidates = training.data, training.candidates
    folder.check_candidates(candidates.content_hash)
    folder.check_data(identity.of_data(training))
    workers.check_agreement(settings.as_dict(), folder, candidates)
    chief = backend.is_chief()
    if chief and settings.save_candidates:
        candidates.save(settings.save_candidates)
    if chief:
        for note in training.notes:
            print(note)
        print(candidates.describe(data.labels))
    # Before the seed: it may train networks of its own.
    noise_rate = noise.prepare(settings, folder, training)

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
                settings, folder, training, finished_epochs, noise_rate
            ),
        )
    results = None
    if chief:
        mean = _publish(folder, training, model) if publish else None
        results = _finish(settings, folder, training, mean)
    # The other workers have done their part when the chief has.
    backend.gather_processes([0])
    return results


def _write_identity(settings, folder, training):
    """Writes what says which run this is, and repeats it."""
    from alim_keras.runs import identity
    from alim_keras.runs import noise
    from alim_keras.runs import record

    folder.write(
        "run.json",
        record.run_record(
            settings.as_dict(),
            shlex.join(sys.orig_argv),
            training.candidates,
            training.data,
            len(training.trained),
            noise.final(settings, folder, training),
            identity.of_data(training),
            identity.of_files(settings.as_dict()),
            training.notes,
        ),
    )
    training.candidates.save(folder.file("candidates.npz"))
    write_atomically(
        folder.file("class_names.txt"),
        "".join(f"{name}\n" for name in training.data.class_names),
    )
    write_atomically(folder.file("run.flags"), cli.flags_as_text(settings))


def _publish(folder, training, model):
    """Writes what others use, with the weights of the selected epoch.

    Returns the mean over the classes of their test accuracy.
    """
    from alim_keras.runs import artefacts

    folder.checkpoint.restore(model, "best")
    return artefacts.write_artefacts(folder, model, training)


def _finish(settings, folder, training, per_class_mean):
    """Writes the numbers of a finished run; returns them."""
    from alim_keras.runs import noise
    from alim_keras.runs import record

    candidates, labels = training.candidates, training.data.labels
    results = record.results_record(
        folder,
        settings.as_dict(),
        candidates,
        noise.final(settings, folder, training),
        candidates.statistics(labels)["realised_noise"],
        per_class_mean,
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
    # The class, of a method that is named by its file.
    method = settings.method.rpartition(":")[2]
    parts = [dataset, method, settings.norm, f"seed{settings.seed}"]
    parts.append(fingerprint(settings.as_dict()))
    return os.path.join("runs", "-".join(filter(None, parts)))


def _interrupt(*_):
    raise KeyboardInterrupt


def _describe(model, settings, training, replicas):
    from alim_keras.runs import choice

    trainable = sum(math.prod(v.shape) for v in model.trainable_variables)
    network = choice.network(settings, training.data.kind)
    print(
        f"Model: {settings.method} on {network}, {trainable:,} "
        f"trainable parameters, all decayed by {settings.weight_decay:g}; "
        f"{replicas} replica(s)"
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
        ("classes.csv", "a row per class, with its test accuracy"),
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
