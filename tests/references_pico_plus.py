"""PiCO+'s step, one example and one number at a time; see references_pico.

A queue entry's class is `c + C` where it was unreliable.
"""

import math

import numpy as np
import references
import references_pico
import tiny


class SlowPiCOPlus(references_pico.SlowPiCO):
    """Has `reliable` and `distance`, dicts by index."""

    def __init__(self, *args):
        super().__init__(*args)
        self.reliable, self.distance = {}, {}

    def begin_epoch(self, epoch):
        self.epoch, self.reliable = epoch, {}
        if epoch >= self.model.start:
            near = sorted(self.distance, key=self.distance.get)
            for i in near[int(self.model.pure_ratio * len(near)) :]:
                self.reliable[i] = False

    def step(self, weak, strong, index, candidates):
        model, batch = self.model, len(index)
        started = self.epoch >= model.start
        weak, strong = self._pixels(weak), self._pixels(strong)
        trusted = [self.reliable.get(i, True) for i in index]
        embeddings, targets, classes = [], [], []
        for i, x in enumerate(weak):
            logits, q = self._forward(self.query, x)
            p = references.softmax(logits)
            cosines = [float(np.dot(q, m)) for m in self.prototypes]
            g = references.softmax(
                [c / model.prototype_temperature for c in cosines]
            )
            row = self._move_row(index[i], g, candidates[i])
            inside = int(np.argmax([a * s for a, s in zip(p, candidates[i])]))
            self.distance[index[i]] = -cosines[inside]
            if trusted[i]:
                targets.append(row)
                weighted = self._weighted(p, candidates[i])
                classes.append(int(np.argmax(weighted)))
            else:
                powers = [s ** (1 / model.guess_temperature) for s in g]
                targets.append(np.array(powers) / sum(powers))
                classes.append(int(np.argmax(p)))
            embeddings.append(q)
        self.prototypes = references.prototype_update(
            self.prototypes,
            [q for q, t in zip(embeddings, trusted) if t],
            [c for c, t in zip(classes, trusted) if t],
            model.prototype_momentum,
        )
        m = model.key_momentum
        for name in references_pico.KEY:
            self.key[name] = [
                m * k + (1 - m) * q
                for k, q in zip(self.key[name], self.query[name])
            ]
        keys = [self._forward(self.key, x)[1] for x in strong]
        marks = [c if t else c + tiny.CLASSES for c, t in zip(classes, trusted)]
        rest = [*zip(keys, marks), *self.queue]
        positives = self._positives(embeddings, marks, rest)
        mixing = [self._mixing(i, index) for i in range(batch)]

        def losses(parameters):
            parts = {name: [] for name in ("cls", "guess", "mix")}
            queries = []
            for i in range(batch):
                logits, q = self._forward(parameters, weak[i])
                queries.append(q)
                part = parts["cls" if trusted[i] else "guess"]
                part.append(self._label_loss(targets[i], logits))
                other, a = mixing[i]
                x = a * weak[i] + (1 - a) * weak[other]
                logits, _ = self._forward(parameters, x)
                target = a * targets[i] + (1 - a) * targets[other]
                parts["mix"].append(self._label_loss(target, logits))
            found = {
                name: sum(part) / max(len(part), 1)
                for name, part in parts.items()
            }
            found["mix"] *= started
            entries = [*queries, *(entry for entry, _ in rest)]
            for name in ("cont", "relaxed"):
                total = 0.0
                for i, (mine, weight, others) in enumerate(positives[name]):
                    total += weight * self._info(entries, i, mine, others)
                found[name] = total / batch
            return found

        def total(parameters, decay=model.weight_decay):
            found = losses(parameters)
            squares = sum(
                float(np.sum(part**2))
                for parts in parameters.values()
                for part in parts
            )
            return (
                (model.cls_weight if started else 1.0) * found["cls"]
                + model.unreliable_weight * found["guess"]
                + model.mixup_weight * found["mix"]
                + found["cont"]
                + (model.unreliable_weight if started else 0.0)
                * found["relaxed"]
                + 0.5 * decay * squares
            )

        logs = {f"{name}_loss": v for name, v in losses(self.query).items()}
        logs["loss"] = total(self.query, decay=0.0)
        logs["outside"] = float(
            np.mean(
                [
                    1.0 - candidates[i][int(np.argmax(targets[i]))]
                    for i in range(batch)
                ]
            )
        )
        self._descend(total)
        self.queue = [*self.queue, *zip(keys, marks)][-model.queue_size :]
        return logs

    def _move_row(self, index, score, candidates):
        phi = self.phi
        self.phi = phi if self.epoch >= self.model.start else 1.0
        row = super()._move_row(index, score, candidates)
        self.phi = phi
        return row

    def _positives(self, queries, marks, rest):
        """For either loss, a triple for each anchor.

        The places of its positives, its weight, and the places of all
        entries in the denominator.
        """
        model, batch = self.model, len(queries)
        entries = [*zip(queries, marks), *rest]
        everything = range(len(entries))
        found = {"cont": [], "relaxed": []}
        for i, mark in enumerate(marks):
            trusted = mark < tiny.CLASSES
            others = [j for j in everything if j != i]
            same = [
                j
                for j in others
                if entries[j][1] >= 0
                and entries[j][1] % tiny.CLASSES == mark % tiny.CLASSES
            ]
            found["relaxed"].append((same, 1.0, others))
            if self.epoch < model.start:
                others = [i + batch, *range(2 * batch, len(entries))]
                mine, weight = [i + batch], model.contrastive_weight
            elif trusted:
                mine = [j for j in same if entries[j][1] < tiny.CLASSES]
                weight = model.contrastive_weight
            else:
                mine, weight = [], model.unreliable_weight
                if self.epoch >= model.knn_start:
                    near = sorted(
                        everything,
                        key=lambda j: -float(np.dot(queries[i], entries[j][0])),
                    )
                    mine = near[: model.num_neighbours]
                mine = sorted({*mine, i + batch} - {i})
            if model.start <= self.epoch < model.knn_start:
                weight = 1.0
            found["cont"].append((mine, weight, others))
        return found

    def _info(self, entries, i, mine, others):
        logits = [
            float(np.dot(entries[i], entry)) / self.model.temperature
            for entry in entries
        ]
        total = math.log(sum(math.exp(logits[j]) for j in others))
        return sum(total - logits[j] for j in mine) / len(mine)
