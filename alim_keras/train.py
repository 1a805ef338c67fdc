"""Trains a classifier from images with candidate sets.

    python -m alim_keras.train --dataset=cifar100 --norm=scale

`--help` lists all flags. The run folder that is printed holds everything the
run leaves; the same command continues an interrupted run.
"""

import importlib.util
import os
import shlex
import signal
import sys

from alim_keras import cli
from alim_keras.cli import train_flags
from alim_keras.files import write_atomically


def main(settings):
    """Runs the training that the settings describe."""
    from alim_keras.runs.folder import RunFolder

    _check_environment(settings)
    signal.signal(signal.SIGTERM, _interrupt)
    folder = RunFolder(settings.run_dir or _default_run_dir(settings))
    with folder.lock():
        folder.check_same(settings.as_dict())
        results = folder.finished()
        if results is None:
            results = _train(settings, folder)
        else:
            print(f"This run is finished; nothing to do in {folder.path}")
        _print_results(results, folder)


def _train(settings, folder):
    import keras

    from alim_keras import backend
    from alim_keras.runs import artefacts
    from alim_keras.runs import build
    from alim_keras.runs import record
    from alim_keras.runs import session

    build.check_settings(settings)
    # Before the data: reading them with TFDS starts TensorFlow, after which
    # a CPU cannot be split any more.
    scope, replicas = backend.make_strategy(
        settings.distribute, settings.replicas
    )
    build.check_batch(settings, replicas)
    training = build.training_data(settings)
    data, candidates = training.data, training.candidates
    noise_rate = build.noise_rate(settings, candidates)
    folder.check_candidates(candidates.content_hash)
    if settings.save_candidates:
        candidates.save(settings.save_candidates)
    print(candidates.describe(data.labels))

    keras.utils.set_random_seed(settings.seed)
    keras.config.set_dtype_policy(settings.precision)
    if settings.deterministic:
        backend.make_deterministic()
    restored = folder.checkpoint.exists()
    with scope:
        model = build.model(settings, data, len(training.trained), restored)
        build.compile_model(settings, model)

    finished_epochs = 0
    if restored:
        finished_epochs = folder.checkpoint.restore(model)
        print(f"Continuing {folder.path} after epoch {finished_epochs}")
    else:
        _describe(model, settings, replicas)
        folder.write(
            "run.json",
            record.run_record(
                settings.as_dict(),
                shlex.join(sys.orig_argv),
                candidates,
                data,
                len(training.trained),
            ),
        )
        candidates.save(folder.file("candidates.npz"))
        write_atomically(folder.file("run.flags"), cli.flags_as_text(settings))
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
    folder.checkpoint.restore(model, "best")
    artefacts.write_artefacts(folder, model, training)
    results = record.results_record(
        folder,
        settings.as_dict(),
        candidates,
        noise_rate,
        candidates.statistics(data.labels)["realised_noise"],
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


def _describe(model, settings, replicas):
    parameters = sum(v.value.shape.num_elements() for v in model.variables)
    trainable = sum(
        v.value.shape.num_elements() for v in model.trainable_variables
    )
    table = model.pseudo_labels.shape
    print(
        f"Model: {settings.method} on {settings.network}, {trainable:,} "
        f"trainable parameters, all decayed by {settings.weight_decay:g}; "
        f"table {table[0]:,} x {table[1]}, "
        f"{4 * table[0] * table[1] / 2**20:.1f} MiB; state in all "
        f"{4 * parameters / 2**20:.1f} MiB per device; "
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
        ("saved_model", "the classifier, images in, probabilities out"),
        ("model.keras", "the whole model, for Keras"),
        ("metrics.csv", "a row per epoch"),
        ("results.json", "the numbers above and more"),
        ("run.flags", "repeats the run"),
    ):
        print(f"  {name:<13} {what}")


if __name__ == "__main__":
    sys.exit(cli.run(train_flags.COMMAND, main))
