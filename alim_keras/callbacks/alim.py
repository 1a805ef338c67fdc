"""The Adjusting Label Importance Mechanism as a Keras callback."""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import ops
from alim_keras.layers import PseudoLabelTable
from alim_keras.methods import checks
from alim_keras.methods.clock import linear


class ALIM(keras.callbacks.Callback):
    """Gives non-candidate labels the weight lambda, so sets can be corrected.

    It works on every model that owns a `PseudoLabelTable`. List it before
    `BackupAndRestore`, so that a backup holds the new lambda.

    Lambda is 0 through epoch `warmup_epochs` (e0, counted from 1); at the end
    of that epoch and of each later one it is set anew.

    Args:
        norm: `"onehot"` (Eq. 4) or `"scale"` (Eq. 5). Defaults to `"onehot"`.
        scale_factor: K of Eq. 5. Defaults to `1.0`.
        lam: `"adaptive"` (Eq. 6) or a number in `[0, 1]` to use after the
            warm-up. 0 is the method without ALIM. Defaults to `"adaptive"`.
        noise_rate: eta, the share of wrong sets, in `[0, 1]`; needed by
            `lam="adaptive"`. 0 keeps lambda at 0.
        warmup_epochs: e0. Defaults to `80`.
        update: When the pseudo labels are recomputed. `"step"`: in every
            training step, blended into the table with the momentum phi (the
            authors' code). `"epoch"`: by one inference pass over `data` at the
            end of each epoch, unblended (the paper's Algorithm 1). Defaults
            to `"step"`.
        data: For `update="epoch"`: batches `(x, candidates)` over the whole
            training set, x with `"image"` and `"index"`; see
            `alim_keras.data.eval_dataset`.
        pseudo_label_momentum: phi: a pair (first epoch, end of training) to
            move linearly between, or a number. Defaults to the model's own
            `(0.95, 0.8)`. Only for `update="step"`.
        labels: True labels `(N,)` of the training set, where known. They are
            used for one thing: the log `pseudo_label_accuracy`.

    Logs: `lambda`; `outside` (share of this epoch's examples whose pseudo
    label lies outside their set, from the model); with `labels`,
    `pseudo_label_accuracy` (uses true labels).

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If the model owns no `PseudoLabelTable`.

    Example:

    ```python
    model.fit(data, epochs=100, callbacks=[alim_keras.callbacks.ALIM(
        norm="scale", noise_rate=0.3, warmup_epochs=20)])
    ```

    Reference:
    - [Xu et al., 2023](https://arxiv.org/abs/2301.12077)
    """

    def __init__(
        self,
        norm="onehot",
        scale_factor=1.0,
        lam="adaptive",
        noise_rate=None,
        warmup_epochs=80,
        update="step",
        data=None,
        pseudo_label_momentum=None,
        labels=None,
    ):
        super().__init__()
        _one_of("norm", norm, ("onehot", "scale"))
        _one_of("update", update, ("step", "epoch"))
        checks.check_ranges(scale_factor=(scale_factor, "positive"))
        if warmup_epochs != 0:
            checks.check_ranges(warmup_epochs=(warmup_epochs, "count"))
        if lam != "adaptive":
            checks.check_ranges(lam=(lam, "lambda"))
        elif noise_rate is None:
            raise ValueError(
                "Argument `lam='adaptive'` needs `noise_rate`, the share of "
                "candidate sets that are wrong (eta); a guess such as 0.2 "
                "does, or give a fixed `lam`. Received: noise_rate=None"
            )
        if noise_rate is not None:
            checks.check_ranges(noise_rate=(noise_rate, "share"))
        if update == "epoch" and data is None:
            raise ValueError(
                "Argument `update='epoch'` needs `data`, the training set in "
                "inference form (see alim_keras.data.eval_dataset). "
                "Received: data=None"
            )
        if np.isscalar(pseudo_label_momentum):
            pseudo_label_momentum = (pseudo_label_momentum,) * 2
        if pseudo_label_momentum is not None:
            checks.check_ranges(
                pseudo_label_momentum=(pseudo_label_momentum, "share")
            )
            if len(pseudo_label_momentum) != 2:
                raise ValueError(
                    "Argument `pseudo_label_momentum` must be a number or a "
                    "pair (first epoch, end of training). Received: "
                    f"pseudo_label_momentum={pseudo_label_momentum}"
                )
        self.norm = norm
        self.scale_factor = scale_factor
        self.lam = lam
        self.noise_rate = noise_rate
        self.warmup_epochs = warmup_epochs
        self.update = update
        self.data = data
        self.pseudo_label_momentum = pseudo_label_momentum
        self.labels = labels

    def set_model(self, model):
        super().set_model(model)
        table = getattr(model, "pseudo_label_table", None)
        if not isinstance(table, PseudoLabelTable):
            raise TypeError(
                f"ALIM needs a model with a pseudo-label table; {model.name} "
                f"({type(model).__name__}) keeps no pseudo labels. Use a "
                "subclass of alim_keras.PartialLabelModel such as PiCO."
            )
        self.table = table
        if self.labels is not None and len(self.labels) != table.num_examples:
            raise ValueError(
                f"Argument `labels` must have one label for each of the "
                f"{table.num_examples} training examples. Received: "
                f"{len(self.labels)} labels"
            )

    def on_train_begin(self, logs=None):
        table = self.table
        table.use_onehot.assign(float(self.norm == "onehot"))
        table.scale_factor.assign(self.scale_factor)
        table.update_in_step.assign(float(self.update == "step"))
        if self.update == "epoch":
            self._infer = backend.compiled(
                self.model.infer_scores, self.model.variables
            )

    def on_epoch_begin(self, epoch, logs=None):
        if epoch < self.warmup_epochs:
            # After an earlier fit, lambda may stand at what that one left.
            self.table.lam.assign(0.0)
        if self.pseudo_label_momentum:
            self.table.momentum.assign(
                linear(self.pseudo_label_momentum, epoch, self.params)
            )

    def on_epoch_end(self, epoch, logs=None):
        if self.update == "epoch":
            self._update_all(epoch)
        else:
            self._update_lambda(epoch)
        if logs is not None:
            logs["lambda"] = float(self.table.lam.numpy())
            if self.labels is not None:
                settled, known = self.table.settled()
                right = settled == np.asarray(self.labels)
                logs["pseudo_label_accuracy"] = float(right[known].mean())

    def _update_lambda(self, epoch):
        """Sets lambda for the next epoch from this epoch's Eq. 6 values."""
        if epoch + 1 < self.warmup_epochs or self.noise_rate == 0:
            lam = 0.0
        elif self.lam == "adaptive":
            lam = self.table.adaptive_lambda(self.noise_rate)
        else:
            lam = self.lam
        self.table.lam.assign(lam)

    def _update_all(self, epoch):
        """Algorithm 1: lambda and all pseudo labels from one inference pass.

        Labels need lambda, which needs every score first. A dense table
        allows for scores of its own size to be kept meanwhile; beside a
        sparse one they are computed a second time.
        """
        ratios = np.full((self.table.num_examples,), np.nan, "float32")
        kept = []
        for index, scores, candidates in self._scored():
            ratios[index] = ops.candidate_ratio(scores, candidates)
            if self.table.is_dense:
                kept.append((index, scores, candidates))
        self.table.assign_ratios(ratios)
        self._update_lambda(epoch)
        if epoch + 1 < self.model.pseudo_label_start:
            return

        def labelled():
            for index, scores, candidates in kept or self._scored():
                labels = ops.pseudo_labels(
                    scores,
                    candidates,
                    self.table.lam,
                    self.norm,
                    self.scale_factor,
                )
                yield index, labels, candidates

        self.table.replace(labelled())

    def _scored(self):
        """Yields index, scores and candidates of all batches, as numpy."""
        for x, y in self.data:
            scores = self._infer(x["image"])
            yield tuple(
                keras.ops.convert_to_numpy(v) for v in (x["index"], scores, y)
            )


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected one of "
            f"{allowed}. Received: {name}={value!r}"
        )
