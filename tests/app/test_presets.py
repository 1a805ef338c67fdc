"""The shipped flagfiles hold what was published."""

import pytest

from alim_keras import train
from alim_keras.app import cli

# Optimisation, PiCO and ALIM as in the authors' example.sh and readme.
COMMON = dict(
    method="pico",
    network="cifar_resnet18",
    lam="adaptive",
    noise_rate=None,
    scale_factor=1.0,
    update="step",
    scores="method",
    pseudo_label_momentum_start=0.95,
    pseudo_label_momentum_end=0.8,
    mixup_weight=1.0,
    mixup_alpha=4.0,
    contrastive_weight=0.5,
    temperature=0.07,
    prototype_momentum=0.99,
    prototype_start=1,
    key_momentum=0.999,
    queue_size=8192,
    embedding_dim=128,
    epochs=1000,
    batch_size=128,
    learning_rate=0.01,
    lr_schedule="cosine",
    momentum=0.9,
    weight_decay=0.001,
    warmup_epochs=80,
    holdout=0.0,
    select="last",
    imbalance=None,
    augmentation="simaugment",
    crop_scale=0.2,
    flip=0.5,
    jitter=True,
    strong_operations=3,
    cutout=0.5,
)
CUB = dict(
    image_size=224,
    network="ResNet50",
    weights="imagenet",
    epochs=200,
    batch_size=256,
    queue_size=4096,
    weight_decay=1e-5,
    prototype_start=30,
    warmup_epochs=60,
    crop_scale=0.08,
)


def published():
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


@pytest.mark.parametrize("row", published(), ids=lambda row: row[0])
def test_published_values(row):
    name, dataset, protocol, norm, q, eta, differences = row
    line = train.COMMAND.parse([f"--preset={name}"])
    expected = {
        **COMMON,
        "dataset": dataset,
        "protocol": protocol,
        "norm": norm,
        "ambiguity": q,
        "noise_level": eta,
        **differences,
    }
    values = line.config.as_dict()
    assert {key: values[key] for key in expected} == expected
    # A preset lies inside the setting that it states itself.
    assert line.warnings == ()


def test_every_preset_is_known_here():
    names = {row[0] for row in published()} | {"smoke"}
    assert set(cli.preset_names()) == names
    assert set(cli.PUBLISHED) < names


@pytest.mark.parametrize("dataset", [*cli.PUBLISHED, "digits", "mnist"])
def test_a_data_set_alone_means_its_published_setting(dataset):
    line = train.COMMAND.parse([f"--dataset={dataset}"])
    is_published = dataset in cli.PUBLISHED
    assert line.values["preset"] == (dataset if is_published else None)
    assert line.config.data.dataset == dataset


def test_the_call_of_the_paper():
    line = train.COMMAND.parse(["--dataset=cifar100", "--norm=scale"])
    values = line.config.as_dict()
    assert (values["ambiguity"], values["noise_level"]) == (0.05, 0.3)
    assert (values["warmup_epochs"], values["epochs"]) == (80, 1000)
    assert line.origins["norm"] == "command line"
