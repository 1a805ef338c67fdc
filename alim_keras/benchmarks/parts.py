"""The parts of a training step, each compiled alone.

They call the model's own methods on tensors of the shapes that a step has, so
that a part costs what the same code costs within the step.
"""

import dataclasses
from typing import Any

import keras
import numpy as np

from alim_keras import backend
from alim_keras import ops
from alim_keras.backend import timing
from alim_keras.errors import ConfigError
from alim_keras.methods.batch import Batch

# The names that --parts takes, in the order of a step, and what they are.
PARTS = {
    "data": "next batch",
    "weak": "weak view",
    "strong": "strong view",
    "query": "query pass, forward and backward",
    "table": "table refresh",
    "prototypes": "prototypes",
    "key_average": "key encoder's average",
    "key": "key pass, forward",
    "contrast": "contrast and queue",
    "mixup": "mixup pass, forward and backward",
    "optimizer": "weight decay and optimizer",
    "logs": "losses and metrics for the log",
}


@dataclasses.dataclass
class Part:
    """A part that runs on the device.

    Attributes:
        name: A key of `PARTS`.
        program: A `timing.Program`.
        arguments: Tensors to call it with.
    """

    name: str
    program: Any
    arguments: tuple


def chosen(text):
    """Returns the names that `--parts` asks for, in the order of a step.

    Args:
        text: `"all"`, `"none"` or names separated by commas.

    Raises:
        ConfigError: If a name is unknown.
    """
    if text in ("all", "none"):
        return tuple(PARTS) if text == "all" else ()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PARTS:
            raise ConfigError(
                f"--parts must be all, none or some of {', '.join(PARTS)}, "
                f"separated by commas. Received: {name!r} in --parts={text}"
            )
    return tuple(name for name in PARTS if name in names)


def programs(model, x, y, jit_compile=False):
    """Returns the parts of a model's training step.

    Args:
        model: A compiled `PiCO`.
        x: A training batch's dict.
        y: Its candidate sets `(B, C)`.
        jit_compile: Whether XLA compiles them. Defaults to `False`.

    Returns:
        A list of `Part`, in the order of a step; without views where the
        batch brings them, without mixup where the model has none.
    """
    return _Parts(model, x, y, jit_compile).found


class _Parts:
    def __init__(self, model, x, y, jit_compile):
        self.model = model
        self.jit_compile = jit_compile
        self.found = []
        self.y = keras.ops.convert_to_tensor(y, dtype="float32")
        self.index = keras.ops.convert_to_tensor(x["index"])
        size, self.num_classes = self.y.shape
        stream = np.random.default_rng(0)

        def normal(*shape):
            rows = stream.standard_normal(shape).astype("float32")
            return keras.ops.convert_to_tensor(rows)

        self.logits = normal(size, self.num_classes)
        self.embeddings = ops.unit_norm(normal(size, model.embedding_dim))
        self.keys = ops.unit_norm(normal(size, model.embedding_dim))
        self.classes = keras.ops.cast(
            keras.ops.argmax(self.logits, axis=-1), backend.INTEGER
        )
        self.targets = ops.uniform_over_candidates(self.y)
        self.network = model.backbone.variables + model.classifier.variables
        self.network += model.projection.variables
        self._views(x)
        self._query()
        self._table()
        self._prototypes()
        self._keys()
        self._contrast()
        if model.mixup_weight:
            self._mixup()
        self._optimizer()
        self._logs(x)

    def _add(self, name, function, arguments, variables=(), **options):
        program = timing.Program(
            function, variables, jit_compile=self.jit_compile, **options
        )
        self.found.append(Part(name, program, arguments))

    def _batch(self, weak=None, index=None, y=None):
        index = self.index if index is None else index
        y = self.y if y is None else y
        return Batch({"weak": weak}, index, y, None)

    def _views(self, x):
        model = self.model
        if "weak" in x or model.views is None:
            weak = x["weak"] if "weak" in x else x["image"]
            self.images = model.prepare(keras.ops.convert_to_tensor(weak))
            return
        images = keras.ops.convert_to_tensor(x["image"])
        for name in ("weak", "strong"):
            view = getattr(model.views, name)

            def made(images, index, view=view):
                return model.prepare(view(images, model.epoch, index))

            self._add(name, made, (images, self.index), [model.epoch])
        weak = self.found[0]
        self.images = weak.program(*weak.arguments)

    def _query(self):
        model = self.model
        # What the contrast's gradient is within the step.
        pull = self.embeddings

        def loss(images, targets, pull):
            outputs = model.encode(images, training=True)
            total = model.cross_entropy(targets, outputs["logits"])
            total = total + keras.ops.sum(outputs["embeddings"] * pull)
            return model.optimizer.scale_loss(total)

        self._add(
            "query",
            loss,
            (self.images, self.targets, pull),
            self.network + model.prototypes.variables + _scale(model),
            gradient=model.trainable_variables,
        )

    def _table(self):
        model = self.model

        def refresh(index, logits, similarities, y):
            outputs = {"logits": logits, "similarities": similarities}
            batch = self._batch(index=index, y=y)
            targets = model.pseudo_label_table.refresh(
                index,
                model.scores(outputs),
                y,
                active=model.epoch + 1 >= model.pseudo_label_start,
            )
            return targets, model._pseudo_class(outputs, batch)

        self._add(
            "table",
            refresh,
            (self.index, self.logits, self.logits, self.y),
            [*model.pseudo_label_table.variables, model.epoch],
        )

    def _prototypes(self):
        prototypes = self.model.prototypes

        def update(embeddings, classes):
            similarities = prototypes(embeddings)
            prototypes.update(embeddings, classes)
            return similarities

        arguments = (self.embeddings, self.classes)
        self._add("prototypes", update, arguments, prototypes.variables)

    def _keys(self):
        model = self.model

        def move():
            model._move_key_encoder()
            return model.key_encoder.variables[0] + 0.0

        keys = model.key_encoder.variables
        self._add("key_average", move, (), keys + self.network)

        def encode(images):
            return ops.unit_norm(model.key_encoder(images, training=True))

        self._add("key", encode, (self.images,), keys)

    def _contrast(self):
        model = self.model

        def loss(embeddings, keys, classes):
            return model._contrast(embeddings, keys, classes, None)

        self._add(
            "contrast",
            loss,
            (self.embeddings, self.keys, self.classes),
            model.queue.variables,
            gradient="input",
        )

    def _mixup(self):
        model = self.model

        def loss(images, targets, index, y):
            batch = self._batch(weak=images, index=index, y=y)
            total = model._mixup_loss(targets, batch)
            return model.optimizer.scale_loss(total)

        self._add(
            "mixup",
            loss,
            (self.images, self.targets, self.index, self.y),
            self.network
            + [*model.prototypes.variables, model.epoch]
            + _scale(model),
            gradient=[
                *model.backbone.trainable_variables,
                *model.classifier.trainable_variables,
            ],
        )

    def _optimizer(self):
        model = self.model
        weights = model.trainable_variables

        # Zeros cost what other numbers cost, and leave the network as it is.
        given = [keras.ops.zeros(w.shape, w.dtype) for w in weights]

        def decay(given):
            return model.optimizer.scale_loss(model.regularisation())

        state = self.network + model.optimizer.variables
        program = timing.Program(
            decay,
            state,
            gradient=weights,
            then=lambda gradients, given: model.optimizer.apply(
                [g + d for g, d in zip(given, gradients)], weights
            ),
            jit_compile=self.jit_compile,
        )
        self.found.append(Part("optimizer", program, (given,)))

    def _logs(self, x):
        model = self.model

        def track(logits, targets, index, y, values):
            total = keras.ops.sum(values)
            parts = {
                name: (1.0, values[place])
                for place, name in enumerate(model.loss_names)
            }
            batch = self._batch(index=index, y=y)
            model._track(total, parts, targets, batch)
            return model.compute_metrics(
                x, y, keras.ops.softmax(logits), sample_weight=None
            )

        values = keras.ops.ones((len(model.loss_names),), "float32")
        self._add(
            "logs",
            track,
            (self.logits, self.targets, self.index, self.y, values),
            [
                *model.metrics_variables,
                model.non_finite_step,
                *model.optimizer.variables,
            ],
        )


def _scale(model):
    """What `scale_loss` reads under mixed_float16."""
    if hasattr(model.optimizer, "inner_optimizer"):
        return list(model.optimizer.variables)
    return []
