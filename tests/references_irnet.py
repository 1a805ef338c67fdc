"""IRNet's step, one example and one number at a time; see references_pico."""

import math

import numpy as np
import references
import references_pico


class SlowIRNet(references_pico.SlowPiCO):
    """Has `sets`, the candidate sets that a step met or enlarged, by index."""

    def __init__(self, *args):
        super().__init__(*args)
        self.sets = {}

    def step(self, weak, strong, weak2, index, candidates):
        sets = [
            self.sets.get(i, list(row)) for i, row in zip(index, candidates)
        ]
        parameters, prototypes = dict(self.query), self.prototypes
        losses = super().step(weak, strong, index, sets)
        losses["corrected"] = 0.0
        first, second = self._pixels(weak), self._pixels(weak2)
        for i, example in enumerate(index):
            g = self._scores(parameters, prototypes, first[i])
            h = self._scores(parameters, self.prototypes, second[i])
            label = self._missing(g, sets[i])
            if label is None or label != self._missing(h, sets[i]):
                continue
            row = np.array(self.table[example])
            row[label] = g[label]
            self.table[example] = row / row.sum()
            self.sets[example] = list(sets[i])
            self.sets[example][label] = 1.0
            losses["corrected"] += 1.0
        return losses

    def _scores(self, parameters, prototypes, x):
        _, embedding = self._forward(parameters, x)
        cosines = [float(np.dot(embedding, m)) for m in prototypes]
        return references.softmax(
            [c / self.model.prototype_temperature for c in cosines]
        )

    def _missing(self, scores, candidates):
        """The label that leads all candidates by more than tau, or None."""
        best, label = -1.0, None
        for c, inside in enumerate(candidates):
            if not inside and scores[c] > best:
                best, label = scores[c], c
        rival = max(s for s, inside in zip(scores, candidates) if inside)
        return label if best > rival + self.model.tau else None

    def _mixed_loss(self, target, other, a, logits):
        # Not linear in the targets.
        own = self._label_loss(target, logits)
        return a * own + (1 - a) * self._label_loss(other, logits)

    def _label_loss(self, target, logits):
        if self.model.label_loss == "ce":
            return super()._label_loss(target, logits)
        target = [max(t, 1e-4) for t in target]
        reverse = -sum(
            p * math.log(t) for p, t in zip(references.softmax(logits), target)
        )
        return 6.0 * super()._label_loss(target, logits) + reverse
