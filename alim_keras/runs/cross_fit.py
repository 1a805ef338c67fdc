"""Trainings of the run's own network on a part, for `noise_rate.cv`."""

import keras
import numpy as np

import alim_keras
from alim_keras import backend
from alim_keras.data import eval_dataset
from alim_keras.data import train_dataset
from alim_keras.networks import make_backbone
from alim_keras.noise_rate.held_out import inference
from alim_keras.noise_rate.held_out import to_numpy
from alim_keras.runs import build
from alim_keras.runs import choice

# At most so many epochs, unless they have fewer steps than the second number.
EPOCHS = 12
STEPS = 240


class CrossFit:
    """`fit_predict` of `noise_rate.out_of_fold`, from the run's settings.

    The network, its input, views, optimizer and batches are the run's, the
    batches smaller where a part does not fill one; the method is the plain
    `PartialLabelModel` with lambda 0 and Eq. 5, which every network can be
    trained with. One model serves all folds: it starts each from the same
    initial weights.

    Args:
        settings: The train command's settings.
        training: The `TrainingData`; rows count within its `trained`.
        epochs: Of each training. Defaults to few: 12, or more where these
            have fewer than 240 steps, but never more than the run's.
        progress: Function of a string, told as each training begins.
    """

    def __init__(self, settings, training, epochs=None, progress=None):
        self.settings = settings
        self.training = training
        self.epochs = epochs
        self.progress = progress
        self._fold = 0
        self._model = None

    def __call__(self, train_rows, predict_rows):
        """Returns the logits of `predict_rows`, float32 `(n, C)`."""
        settings, training = self.settings, self.training
        # The run fills a batch, and a part of its items may not.
        batch_size = min(settings.batch_size, len(train_rows))
        steps = len(train_rows) // batch_size
        if self._model is None:
            self._make()
        else:
            for variable, value in self._start:
                variable.assign(value)
        rows = training.trained[train_rows]
        epochs = self.epochs
        if epochs is None:
            epochs = min(settings.epochs, max(EPOCHS, -(-STEPS // steps)))
        self._fold += 1
        if self.progress:
            self.progress(
                f"network {self._fold}: {epochs} epochs on {len(rows):,} items"
            )
        if batch_size < settings.batch_size:
            (self.progress or _tell)(
                f"network {self._fold}: in batches of {batch_size}, since "
                f"{len(rows)} items do not fill one of {settings.batch_size}"
            )
        self._model.fit(
            train_dataset(
                training.data.images[rows],
                training.sets[rows],
                batch_size=batch_size,
                seed=settings.seed,
            ),
            epochs=epochs,
            verbose=0,
            callbacks=[
                keras.callbacks.LearningRateScheduler(
                    build.learning_rate(settings, epochs)
                )
            ],
        )
        rows = training.trained[predict_rows]
        data = eval_dataset(
            training.data.images[rows],
            training.sets[rows],
            training.sets.shape[1],
        )
        found = [to_numpy(self._infer(x["image"])) for x, _ in data]
        return np.concatenate(found)

    def _make(self):
        settings, data = self.settings, self.training.data
        shape = build.image_shape(settings, data)
        num_classes = len(data.class_names)
        backend.set_random_seed(settings.seed)
        backbone, normalised = make_backbone(
            choice.network(settings, data.kind),
            shape,
            settings.width,
            settings.weights,
        )
        mean, std = (data.mean, data.std) if normalised else (0.0, 1.0 / 255.0)
        num_examples = len(self.training.trained)
        model = alim_keras.PartialLabelModel(
            backbone,
            num_classes,
            num_examples,
            views=build.views(settings, shape, data),
            mean=np.asarray(mean).tolist(),
            std=np.asarray(std).tolist(),
            table=build.table(
                settings, num_examples, num_classes, self.training.max_set_size
            ),
            # Labels of the last few epochs: the training is short.
            pseudo_label_momentum=(0.5, 0.5),
            weight_decay=settings.weight_decay,
            seed=settings.seed,
            name="cross_fit",
        )
        model.pseudo_label_table.use_onehot.assign(0.0)
        build.compile_model(settings, model)
        # The initial weights again at each fold, and the optimizer's.
        self._start = [
            (variable, variable.numpy())
            for variable in (*model.variables, *model.optimizer.variables)
        ]
        self._infer = inference(model)
        self._model = model


def _tell(text):
    print(f"Estimating the noise rate: {text}", flush=True)
