"""The values of the published settings, from `--print_config`.

`config.json` was written by
`python tests/golden/test_config.py > tests/golden/config.json` from the
repository, with `tests` on PYTHONPATH.
"""

import json
import pathlib

import pytest
from golden import harness

FLAGS = pathlib.Path(harness.REPOSITORY) / "flags"
FROZEN = json.loads(
    pathlib.Path(__file__).with_name("config.json").read_text("utf-8") or "{}"
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


def read(presets, cwd):
    """Returns preset to the values of the flags above, of flagfiles."""
    calls = [
        ["train", f"--flagfile={FLAGS / one}.flags", "--print_config"]
        for one in presets
    ]
    found = {}
    done = harness.run_many(calls, cwd)
    for preset, (code, out, err) in zip(presets, done, strict=True):
        if code:
            raise RuntimeError(f"{preset}: {code} {err}")
        every = values(out)
        found[preset] = {n: every[n] for n in NAMES if n in every}
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return read(list(FROZEN), tmp_path_factory.mktemp("config"))


@pytest.mark.parametrize("preset", FROZEN)
def test_preset(found, preset):
    assert found[preset] == FROZEN[preset]


def test_every_flagfile_is_frozen_or_new():
    assert {path.stem for path in FLAGS.glob("*.flags")} >= set(FROZEN)


if __name__ == "__main__":
    stems = sorted(path.stem for path in FLAGS.glob("*.flags"))
    lines = [f'"{k}": {json.dumps(v)}' for k, v in read(stems, ".").items()]
    print("{\n" + ",\n".join(lines) + "\n}")
