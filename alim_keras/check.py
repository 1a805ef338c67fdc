"""Reads labels and images, trains nothing, says what was found.

    python -m alim_keras.check --dataset=labels.csv --images=photos

It takes training's flags: the line that is checked is the line that trains.
Ends with 3 if training would refuse the data.
"""

import csv
import io
import sys
import warnings

from alim_keras import cli
from alim_keras.cli import check_flags
from alim_keras.files import check_is_no_folder
from alim_keras.files import write_atomically

_SHOWN = 20


def main(settings):
    """Checks the data that the settings describe."""
    from alim_keras.data.sources import is_own
    from alim_keras.data.sources.own_images import UnreadableError
    from alim_keras.runs import loading

    if settings.problems:
        check_is_no_folder(settings.problems, "--problems")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = None
        if is_own(settings.dataset):
            try:
                with cli.bar("Looking at images") as progress:
                    found = loading.own_data(settings, progress, refuse=False)
            except UnreadableError as error:
                # Not one can be read: the list is all that there is to say.
                _write(settings, error.problems)
                raise
        problems = _problems(found)
        _write(settings, problems)
        refused = bool(problems) and settings.on_bad_image == "error"
        if not refused:
            cli.load(settings)
            training = loading.training_data(settings, found=found)
    if refused:
        print("\n".join(found.notes))
    else:
        # Its package imports Keras, for which a backend is chosen only now.
        from alim_keras.report import findings

        print(findings.describe(training, found))
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"warning: {text}")
    if not refused:
        print(_what_happens(settings, training), flush=True)
    return _verdict(settings, problems)


def _problems(found):
    """Returns (file, reason) of each image that cannot be read."""
    if found is None or found.scan is None:
        return []
    return [(found.files[n], why) for n, why in found.scan.problems.items()]


def _write(settings, problems):
    if not settings.problems:
        return
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [("file", "problem"), *problems]
    )
    write_atomically(settings.problems, out.getvalue())


def _what_happens(settings, training):
    """Says what training would do with these data, and what it needs."""
    from alim_keras.networks import make_backbone
    from alim_keras.runs import build
    from alim_keras.runs import choice
    from alim_keras.runs import memory
    from alim_keras.runs import noise

    build.check_settings(settings)
    network = choice.network(settings, training.data.kind)
    shape = build.image_shape(settings, training.data)
    backbone, _ = make_backbone(network, shape, settings.width)
    found = memory.needed(settings, backbone, training)
    memory.check_limit(found, settings.memory_limit)
    steps = len(training.trained) // settings.batch_size
    rate = noise.wish(settings)
    noise.check(settings, training)
    told = "" if rate is None else f", told the noise rate {rate}"
    tested = len(training.data.test_images)
    return (
        f"{memory.describe(found)}\n"
        f"training       {settings.method} on {network} at "
        f"{' x '.join(map(str, shape))}{told}: {settings.epochs} epochs of "
        f"{steps} steps of {settings.batch_size}; "
        f"{len(training.trained):,} items train, "
        f"{len(training.held_out):,} are held out, {tested:,} test"
    )


def _verdict(settings, problems):
    if not problems:
        print("Sound: training would take these data.")
        return 0
    for name, why in problems[:_SHOWN]:
        print(f"  {name}: {why}")
    if len(problems) > _SHOWN:
        print(f"  and {len(problems) - _SHOWN} more; --problems=FILE has all")
    if settings.on_bad_image == "skip":
        print(f"{len(problems)} images cannot be read and are left out.")
        return 0
    print(
        f"Not sound: {len(problems)} images cannot be read. Mend them, or "
        "leave their items out with --on_bad_image=skip."
    )
    return 3


if __name__ == "__main__":
    sys.exit(cli.run(check_flags.COMMAND, main, keras=False))
