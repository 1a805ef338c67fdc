"""The values of the published settings, from `--print_config`."""

import json
import pathlib

import pytest
from golden import harness

FLAGS = pathlib.Path(harness.REPOSITORY) / "flags"
FROZEN = json.loads(
    pathlib.Path(__file__).with_name("config.json").read_text("utf-8")
)
NAMES = (
    "run_dir dataset data_dir train_size method norm lam ambiguity noise_level "
    "noise_rate warmup_epochs update mixup_weight network width epochs "
    "batch_size learning_rate seed select distribute backend precision "
    "download verbose scale_factor weight_decay momentum queue_size "
    "embedding_dim key_momentum prototype_momentum temperature "
    "contrastive_weight mixup_alpha pseudo_label_momentum_start "
    "pseudo_label_momentum_end lr_schedule crop_scale flip jitter "
    "strong_operations cutout protocol legacy_stream image_size holdout"
).split()


def _value(text):
    try:
        return float(text)
    except ValueError:
        return text


def values(text):
    """Returns flag to value of what `--print_config` prints."""
    found = {}
    for line in text.splitlines():
        words = line.split("#")[0].split(maxsplit=1)
        if not words or not words[0].startswith("--"):
            continue
        name, equals, value = words[0].removeprefix("--").partition("=")
        if equals:
            found[name] = _value(value)
        elif len(words) > 1 and "not set" in words[1]:
            found[name] = None
        else:
            found[name.removeprefix("no")] = not name.startswith("no")
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Returns preset to code, stdout and stderr of printing its flagfile."""
    calls = [
        ["train", f"--flagfile={FLAGS / preset}.flags", "--print_config"]
        for preset in FROZEN
    ]
    found = harness.run_many(calls, tmp_path_factory.mktemp("config"))
    return dict(zip(FROZEN, found, strict=True))


@pytest.mark.parametrize("preset", FROZEN)
def test_preset(done, preset):
    code, out, err = done[preset]
    assert code == 0, err
    every = values(out)
    assert {n: every[n] for n in NAMES if n in every} == FROZEN[preset]


def test_every_flagfile_is_frozen_or_new():
    assert {path.stem for path in FLAGS.glob("*.flags")} >= set(FROZEN)
