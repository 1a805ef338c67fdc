"""The shipped flagfiles hold what was published."""

import pytest

from alim_keras.cli import flagfiles
from alim_keras.cli import train_flags

COMMAND = train_flags.COMMAND

# Optimisation, PiCO and ALIM as in the authors' example.sh and readme.
COMMON = {
    "method": "pico",
    "network": "cifar_resnet18",
    "lam": "adaptive",
    "noise_rate": None,
    "scale_factor": 1.0,
    "update": "step",
    "scores": "method",
    "pseudo_label_momentum_start": 0.95,
    "pseudo_label_momentum_end": 0.8,
    "mixup_weight": 1.0,
    "mixup_alpha": 4.0,
    "contrastive_weight": 0.5,
    "temperature": 0.07,
    "prototype_momentum": 0.99,
    "prototype_start": 1,
    "key_momentum": 0.999,
    "queue_size": 8192,
    "embedding_dim": 128,
    "epochs": 1000,
    "batch_size": 128,
    "learning_rate": 0.01,
    "lr_schedule": "cosine",
    "momentum": 0.9,
    "weight_decay": 0.001,
    "warmup_epochs": 80,
    "holdout": 0.0,
    "select": "last",
    "imbalance": None,
    "augmentation": "simaugment",
    "crop_scale": 0.2,
    "flip": 0.5,
    "jitter": True,
    "strong_operations": 3,
    "cutout": 0.5,
}
CUB = {
    "image_size": 224,
    "network": "ResNet50",
    "weights": "imagenet",
    "epochs": 200,
    "batch_size": 256,
    "queue_size": 4096,
    "weight_decay": 1e-5,
    "prototype_start": 30,
    "warmup_epochs": 60,
    "crop_scale": 0.08,
}
# Flags without a default that do nothing until they are given.
ASKED_FOR = ("candidates_file", "save_candidates", "flagfile")


def table():
    """Returns (preset, dataset, protocol, norm, q, eta, differences)."""
    rows = [
        ("cifar10", "cifar10", "flip", "onehot", 0.3, 0.3, {}),
        ("cifar100", "cifar100", "flip", "scale", 0.05, 0.3, {}),
        ("cifar100h", "cifar100h", "superclass", "onehot", 0.5, 0.2, {}),
        ("cub200", "cub200", "pico", "onehot", 0.05, 0.2, CUB),
    ]
    for q in (0.1, 0.3, 0.5):
        more = {"warmup_epochs": 140} if q == 0.5 else {}
        for eta in (0.1, 0.2, 0.3):
            name = f"cifar10_q{q}_eta{eta}"
            rows.append((name, "cifar10", "flip", "onehot", q, eta, more))
    more = {"warmup_epochs": 140, "mixup_weight": 0.0, "epochs": 2000}
    name = "cifar10_q0.5_eta0.3_nomixup"
    rows.append((name, "cifar10", "flip", "onehot", 0.5, 0.3, more))
    for q in (0.01, 0.03, 0.05):
        for eta in (0.1, 0.2, 0.3, 0.4, 0.5)[: 5 if q == 0.05 else 3]:
            name = f"cifar100_q{q}_eta{eta}"
            rows.append((name, "cifar100", "flip", "scale", q, eta, {}))
    return rows


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_published_values(row):
    name, dataset, protocol, norm, q, eta, differences = row
    settings = COMMAND.parse([f"--preset={name}"])
    expected = {
        **COMMON,
        "dataset": dataset,
        "protocol": protocol,
        "norm": norm,
        "ambiguity": q,
        "noise_level": eta,
        **differences,
    }
    values = settings.as_dict()
    assert {key: values[key] for key in expected} == expected
    # A preset lies inside the setting that it states itself.
    assert settings.warnings == ()


def test_every_preset_is_known_here():
    names = {row[0] for row in table()} | {"smoke"}
    assert set(flagfiles.preset_names()) == names


@pytest.mark.parametrize(
    "dataset, preset",
    [
        ("cifar10", "cifar10"),
        ("cifar100", "cifar100"),
        ("cifar100h", "cifar100h"),
        ("cub200", "cub200"),
        ("digits", None),
        ("fashion_mnist", None),
    ],
)
def test_a_data_set_alone_means_its_published_setting(dataset, preset):
    settings = COMMAND.parse([f"--dataset={dataset}"])
    assert settings.preset == preset
    assert settings.dataset == dataset
    digits = COMMAND.parse([]).epochs
    assert settings.epochs == {None: digits, "cub200": 200}.get(preset, 1000)


def test_the_call_of_the_mission():
    settings = COMMAND.parse(["--dataset=cifar100", "--norm=scale"])
    assert settings.ambiguity == 0.05
    assert settings.noise_level == 0.3
    assert settings.warmup_epochs == 80
    assert settings.epochs == 1000
    assert settings.network == "cifar_resnet18"
    assert settings.origin("norm") == "command line"
    origin = settings.origin("epochs")
    assert origin.startswith("preset cifar100 (pico_base.flags:")


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (
            ["--preset=cifar10", "--ambiguity=0.5"],
            "--preset=cifar10_q0.5_eta0.3.",
        ),
        (
            ["--dataset=cifar10", "--ambiguity=0.5", "--mixup_weight=0"],
            "--preset=cifar10_q0.5_eta0.3_nomixup.",
        ),
        (
            ["--dataset=cifar100", "--noise_level=0.5"],
            "--preset=cifar100_q0.05_eta0.5.",
        ),
        (["--dataset=cifar10", "--ambiguity=0.7"], "no preset is published"),
    ],
)
def test_warning_outside_the_setting(arguments, expected):
    (text,) = COMMAND.parse(arguments).warnings
    assert expected in text


def test_smoke_is_small_on_any_data_set():
    for dataset in ("digits", "cifar100h", "fashion_mnist"):
        settings = COMMAND.parse(["--preset=smoke", f"--dataset={dataset}"])
        assert settings.dataset == dataset
        assert settings.epochs == 2 and settings.network == "small_cnn"
        assert settings.warnings == ()


def test_the_digits_default():
    settings = COMMAND.parse([])
    assert settings.dataset == "digits" and settings.preset is None
    assert settings.noise_rate is None and settings.lam == "adaptive"
    assert settings.download is True and settings.run_dir is None


def test_every_flag_says_what_it_is():
    flag_values = COMMAND.new_flags()
    fields = {"command", "flag_values", "origins", "words", "warnings"}
    for name in flag_values:
        text = flag_values[name].help
        assert text.endswith(".") and len(text) > 10, name
        # Settings are read as attributes: no flag may hide a field.
        assert name not in fields | {"origin", "as_dict"}, name
        # A flag that is not set by default says what happens then.
        if flag_values[name].default is None and name not in ASKED_FOR:
            assert "Without it" in text, name
