"""The Adjusting Label Importance Mechanism as a Keras callback.

[Xu et al., 2023](https://arxiv.org/abs/2301.12077)
"""

import keras
import numpy as np

from alim_keras import backend
from alim_keras import errors
from alim_keras import ops
from alim_keras.layers import PseudoLabelTable


class ALIM(keras.callbacks.Callback):
    """Gives non-candidate labels the weight lambda, so sets can be corrected.

    List it before `BackupAndRestore`, so that a backup holds the new lambda.
    Lambda is 0 through epoch `warmup_epochs` (e0, counted from 1); at the end
    of that epoch and of each later one it is set anew.

    Args:
        norm: `"onehot"` (Eq. 4) or `"scale"` (Eq. 5). Defaults to the method's
            own, `model.default_norm`: with it and `lam=0` the run is the
            method itself, bit for bit.
        scale_factor: K of Eq. 5. Defaults to `1.0`.
        lam: `"adaptive"` (Eq. 6), or a number in `[0, 1]`; 0 is the method
            without ALIM. Defaults to `"adaptive"`.
        noise_rate: eta, the share of wrong sets, in `[0, 1]`, 0 for lambda 0,
            or an estimator such as `alim_keras.noise_rate.HeldOut`, asked
            whenever lambda is set. Needed by `lam="adaptive"`.
        warmup_epochs: e0. Defaults to `80`.
        update: `"step"` recomputes pseudo labels in every training step,
            blended into the table with the momentum phi (the authors' code);
            `"epoch"` by one inference pass over `data` at the end of each
            epoch, unblended (the paper's Algorithm 1). Defaults to `"step"`.
        data: The training set for `update="epoch"`, batches `(x, candidates)`
            of `alim_keras.data.eval_dataset`.
        pseudo_label_momentum: phi, for `update="step"`: a number or a pair,
            which becomes the model's own. Defaults to the model's.
        labels: True labels `(N,)` of the training set, -1 where not known,
            for the log `pseudo_label_accuracy` alone.
        known: Bool `(N,)`, examples whose set a person looked up: their lambda
            stays 0, so that no label leaves it. Defaults to none.

    Logs: `lambda` (of the coming epoch); `noise_rate`, where there is one (0
    before the first estimate); with `labels`, `pseudo_label_accuracy` (over
    the examples whose row has one strongest class).

    A model without a `PseudoLabelTable` raises `TypeError`.

    >>> alim = alim_keras.callbacks.ALIM(noise_rate=0.3, warmup_epochs=20)
    >>> model.fit(data, epochs=100, callbacks=[alim])
    """

    def __init__(
        self,
        norm=None,
        scale_factor=1.0,
        lam="adaptive",
        noise_rate=None,
        warmup_epochs=80,
        update="step",
        data=None,
        pseudo_label_momentum=None,
        labels=None,
        known=None,
    ):
        super().__init__()
        errors.check_choice("norm", norm, (None, "onehot", "scale"))
        errors.check_choice("update", update, ("step", "epoch"))
        errors.check_ranges(
            scale_factor=(scale_factor, "positive"),
            warmup_epochs=(warmup_epochs, "whole"),
        )
        self.estimator = None
        if callable(getattr(noise_rate, "estimate", None)):
            self.estimator = noise_rate
        elif noise_rate is not None:
            errors.check_ranges(noise_rate=(noise_rate, "share"))
        if lam != "adaptive":
            errors.check_ranges(lam=(lam, "share"))
        elif noise_rate is None:
            raise errors.ConfigError(
                "Argument `lam='adaptive'` needs `noise_rate`, the share of "
                "candidate sets that are wrong (eta); a guess such as 0.2 "
                "does, or give a fixed `lam`. Received: noise_rate=None"
            )
        if update == "epoch" and data is None:
            raise errors.ConfigError(
                "Argument `update='epoch'` needs `data`, the training set in "
                "inference form (see alim_keras.data.eval_dataset). Received: "
                "data=None"
            )
        phi = pseudo_label_momentum
        phi = (phi, phi) if np.isscalar(phi) else phi
        errors.check_number(
            "pseudo_label_momentum", phi, 0, 1, count=2, optional=True
        )
        self.norm = norm
        self.scale_factor = scale_factor
        self.lam = lam
        self.noise_rate = noise_rate
        self.warmup_epochs = warmup_epochs
        self.update = update
        self.data = data
        self.pseudo_label_momentum = phi
        self.labels = None if labels is None else np.asarray(labels)
        self.known = None if known is None else np.asarray(known, bool)

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
        for name in ("labels", "known"):
            values = getattr(self, name)
            if values is not None and len(values) != table.num_examples:
                raise errors.ConfigError(
                    f"Argument `{name}` must have one entry for each of the "
                    f"{table.num_examples} training examples. Received: "
                    f"{len(values)} entries"
                )

    def on_train_begin(self, logs=None):
        table, norm = self.table, self.norm or self.model.default_norm
        table.use_onehot.assign(float(norm == "onehot"))
        table.scale_factor.assign(self.scale_factor)
        table.update_in_step.assign(float(self.update == "step"))
        if self.pseudo_label_momentum is not None:
            # The model moves phi along it as each epoch begins.
            self.model.pseudo_label_momentum = self.pseudo_label_momentum
        if self.estimator is None and self.noise_rate is not None:
            table.noise_rate.assign(self.noise_rate)
        known = np.zeros(len(table)) if self.known is None else self.known
        table.lam_factor.assign(1.0 - known)
        if self.update == "epoch":
            infer = self.model.infer_scores
            self._infer = backend.compiled(infer, self.model.variables)

    def on_epoch_begin(self, epoch, logs=None):
        if epoch < self.warmup_epochs:
            # After an earlier fit, lambda may stand at what that one left.
            self.table.lam.assign(0.0)

    def on_epoch_end(self, epoch, logs=None):
        if self.update == "epoch":
            self._update_all(epoch)
        else:
            self._update_lambda(epoch)
        logs["lambda"] = float(self.table.lam.numpy())
        if self.noise_rate is not None:
            logs["noise_rate"] = float(self.table.noise_rate.numpy())
        if self.labels is not None:
            settled, decided = self.table.settled()
            counted = decided & (self.labels >= 0)
            right = (settled == self.labels)[counted]
            accuracy = float(right.mean()) if len(right) else np.nan
            logs["pseudo_label_accuracy"] = accuracy

    def _update_lambda(self, epoch):
        """Sets lambda for the next epoch from this epoch's Eq. 6 values."""
        rate = 0.0
        if epoch + 1 >= self.warmup_epochs:
            rate = self.noise_rate
            if self.estimator is not None:
                estimate = self.estimator.estimate(self.model, epoch)
                if estimate is not None:
                    self.table.noise_rate.assign(estimate.value)
                rate = float(self.table.noise_rate.numpy())
        lam = self.lam
        if rate == 0:
            lam = 0.0
        elif lam == "adaptive":
            ratios = self.table.candidate_ratio.numpy()
            lam = ops.adaptive_lambda(ratios, rate)
        self.table.lam.assign(lam)

    # Algorithm 1.

    def _update_all(self, epoch):
        """Sets lambda and all pseudo labels from one inference pass."""
        # Labels need lambda, which needs every score first: kept beside a
        # dense table, which is as large, and computed twice beside a sparse.
        ratios = np.full((self.table.num_examples,), np.nan, "float32")
        kept = []
        for index, scores, candidates in self._scored():
            ratios[index] = ops.candidate_ratio(scores, candidates)
            if self.table.is_dense:
                kept.append((index, scores, candidates))
        self.table.candidate_ratio.assign(ratios)
        self._update_lambda(epoch)
        if epoch + 1 < self.model.pseudo_label_start:
            return

        def labelled():
            for index, scores, candidates in kept or self._scored():
                labels = self.table.labels_from(index, scores, candidates)
                yield index, labels, candidates

        self.table.replace(labelled())

    def _scored(self):
        """Yields index, scores and candidates of all batches, as numpy."""
        for x, y in self.data:
            index = x["index"]
            scores = self._infer(x["image"], index)
            sets = self.model.current_candidates(index, y)
            yield tuple(map(keras.ops.convert_to_numpy, (index, scores, sets)))
