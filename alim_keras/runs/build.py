"""From settings to views, table, model and optimizer: one function each."""

import math

import keras
import numpy as np

import alim_keras
from alim_keras.errors import ConfigError
from alim_keras.layers import PseudoLabelTable
from alim_keras.layers import SparsePseudoLabelTable
from alim_keras.networks import make_backbone
from alim_keras.runs import choice


def views(settings, image_shape, data=None):
    """Returns the weak and strong augmentation.

    Args:
        settings: The train command's settings.
        image_shape: `(H, W, channels)`, see `image_shape`.
        data: The `ImageData`; needed if it holds feature vectors.
    """
    if data is not None and data.kind == "features":
        return alim_keras.augment.FeatureViews(
            data.mean, data.std, seed=settings.seed
        )
    if settings.augmentation == "autoaugment":
        # Margin and square as published for 32 pixels, in proportion.
        side = min(image_shape[:2])
        return alim_keras.augment.AutoAugmentViews(
            image_size=image_shape[:2],
            seed=settings.seed,
            padding=round(side / 8),
            flip=settings.flip,
            cutout=round(side / 2),
        )
    return alim_keras.augment.Views(
        image_size=image_shape[:2],
        seed=settings.seed,
        crop_scale=(settings.crop_scale, 1.0),
        flip=settings.flip,
        jitter=(0.4, 0.4, 0.4, 0.1) if settings.jitter else None,
        grayscale_probability=0.2 if settings.jitter else 0.0,
        num_operations=settings.strong_operations,
        cutout=settings.cutout,
    )


def image_shape(settings, data):
    """Returns the shape the network works at."""
    height, width, channels = data.images.shape[1:]
    if settings.image_size and data.kind == "images":
        height = width = settings.image_size
    return height, width, channels


def table(settings, num_examples, num_classes, max_set_size):
    """Returns the pseudo-label table that the settings describe."""
    size, name = (num_examples, num_classes), "pseudo_label_table"
    dtype = settings.table_dtype
    if settings.table == "dense":
        return PseudoLabelTable(*size, table_dtype=dtype, name=name)
    return SparsePseudoLabelTable(
        *size,
        max_set_size=max_set_size,
        num_others=settings.table_others,
        # Answers need a factor of lambda for each example.
        quantile="exact" if settings.known_as_sets else "histogram",
        table_dtype=dtype,
        name=name,
    )


def model(settings, training, restored=False):
    """Returns the method's model, not compiled.

    Args:
        settings: The train command's settings.
        training: The `TrainingData`.
        restored: Whether a checkpoint will overwrite all weights, so that
            those of `--weights` need not be at hand any more.
    """
    data = training.data
    shape = image_shape(settings, data)
    weights = None if restored else settings.weights
    backbone, normalised = make_backbone(
        choice.network(settings, data.kind), shape, settings.width, weights
    )
    # A network that brings its own preprocessing wants [0, 255] untouched.
    mean, std = (data.mean, data.std) if normalised else (0.0, 1.0 / 255.0)
    try:
        return choice.method(settings)(
            backbone,
            len(data.class_names),
            len(training.trained),
            views=views(settings, shape, data)
            if settings.views == "device"
            else None,
            mean=np.asarray(mean).tolist(),
            std=np.asarray(std).tolist(),
            table=table(
                settings,
                len(training.trained),
                len(data.class_names),
                training.max_set_size,
            ),
            weight_decay=settings.weight_decay,
            seed=settings.seed,
            name=choice.method(settings).__name__.lower(),
            **choice.method_options(settings),
        )
    except (TypeError, ValueError) as error:
        if not settings.method_options:
            raise
        raise ConfigError(
            f"{error} (--method_options={settings.method_options})"
        ) from error


def compile_model(settings, built):
    """Compiles with SGD and the metrics that evaluation reads."""
    # On JAX there is no other way to compile, and without it each operation
    # runs on its own.
    jit_compile = settings.jit_compile or keras.config.backend() == "jax"
    built.compile(
        optimizer=keras.optimizers.SGD(
            settings.learning_rate, momentum=settings.momentum
        ),
        metrics=[
            alim_keras.metrics.CoveringRate(),
            alim_keras.metrics.ApproximatedAccuracy(),
        ],
        jit_compile=jit_compile,
        steps_per_execution=settings.steps_per_execution,
    )
    built.optimizer.build(built.trainable_variables)


def learning_rate(settings, epochs=None):
    """Returns the rate of an epoch (from 0) as a function.

    The authors' cosine: it ends at a thousandth of the rate it starts from,
    and epochs count from 1, so that the last epoch runs at the floor. They
    are `settings.epochs` unless another number is given.
    """
    epochs = epochs or settings.epochs

    def cosine(epoch, _=None):
        floor = settings.learning_rate * 1e-3
        share = (1 + math.cos(math.pi * (epoch + 1) / epochs)) / 2
        return floor + (settings.learning_rate - floor) * share

    def constant(epoch, _=None):
        return settings.learning_rate

    return cosine if settings.lr_schedule == "cosine" else constant


def check_settings(settings):
    """Raises, before any data are read, for what cannot work."""
    keeps = choice.keeps_pseudo_labels(settings)
    if settings.lam not in (0, "adaptive") and not keeps:
        raise ConfigError(
            f"--method={settings.method} keeps no pseudo labels, so ALIM has "
            "nothing to adjust; use rc, proden, pico, crdpll, irnet or "
            f"pico_plus, or --lam=0. Received: --lam={settings.lam}"
        )
    if settings.lam_per_class and settings.lam != "adaptive":
        raise ConfigError(
            "--lam_per_class is for --lam=adaptive. Received: --lam="
            f"{settings.lam}"
        )
    if settings.select != "last" and not settings.holdout:
        raise ConfigError(
            f"--select={settings.select} judges epochs by images held out of "
            "training; add --holdout=0.1. Received: --holdout=0"
        )
    if settings.replicas and settings.distribute != "mirrored":
        raise ConfigError(
            "--replicas needs --distribute=mirrored; multi_worker runs one in "
            f"each process. Received: --replicas={settings.replicas} "
            f"--distribute={settings.distribute}"
        )


def check_batch(settings, replicas):
    """Raises unless the batch splits evenly over the replicas."""
    if settings.batch_size % replicas:
        raise ConfigError(
            f"A batch must split evenly over {replicas} replicas. "
            f"Received: --batch_size={settings.batch_size}"
        )
    if replicas > 1 and choice.mixup_weight(settings):
        if settings.batch_size // replicas % 2:
            raise ConfigError(
                "Mixup pairs neighbours, so each replica needs an even share "
                f"of the batch. Received: --batch_size={settings.batch_size} "
                f"for {replicas} replicas"
            )
    if replicas > 1 and settings.steps_per_execution > 1:
        raise ConfigError(
            "--steps_per_execution above 1 does not work with more than one "
            "replica in Keras. Received: --steps_per_execution="
            f"{settings.steps_per_execution}"
        )
