"""PiCO with ALIM, one example and one number at a time.

The order of a step is that of the authors' code: forward of the weak views
with the old prototypes, pseudo labels, prototypes, moving average of the key
encoder, keys of the strong views, contrast, queue, mixup. Gradients are
central differences in float64, so what takes no gradient is what the total
loss below treats as a constant.

The network is Flatten, Dense(tanh) | linear classifier | Dense(relu), Dense,
unit length; the optimiser is SGD with momentum and coupled weight decay.
"""

import math

import numpy as np
import references
from scipy import stats

QUERY = ("body", "classifier", "hidden", "out")
KEY = ("body", "hidden", "out")


class SlowPiCO:
    """State and one step; attributes are named for what they hold."""

    def __init__(self, model, learning_rate, momentum):
        def arrays(layer):
            return [v.numpy().astype("float64") for v in layer.weights]

        query = model.projection.layers
        key = model.key_encoder.layers
        self.query = {
            "body": arrays(model.backbone),
            "classifier": arrays(model.classifier),
            "hidden": arrays(query[0]),
            "out": arrays(query[1]),
        }
        self.key = {
            "body": arrays(key[0]),
            "hidden": arrays(key[1].layers[0]),
            "out": arrays(key[1].layers[1]),
        }
        self.velocity = {
            name: [np.zeros_like(part) for part in parts]
            for name, parts in self.query.items()
        }
        self.model = model
        self.learning_rate, self.momentum = learning_rate, momentum
        self.table = {}
        self.ratio = {}
        self.prototypes = model.prototypes.means.numpy().astype("float64")
        self.queue = list(
            zip(model.queue.embeddings.numpy(), model.queue.labels.numpy())
        )
        self.lam, self.phi, self.epoch = 0.0, 0.0, 0
        self.norm, self.scale_factor = "onehot", 1.0

    def step(self, weak, strong, index, candidates, weight=None):
        """Returns the losses of one training step, after changing all state."""
        model, batch = self.model, len(index)
        weight = np.ones(batch) if weight is None else np.float64(weight)
        weak, strong = self._pixels(weak), self._pixels(strong)
        probabilities, embeddings = [], []
        for x in weak:
            logits, embedding = self._forward(self.query, x)
            probabilities.append(references.softmax(logits))
            embeddings.append(embedding)

        targets = []
        for i in range(batch):
            score = probabilities[i]
            if model.scores_from == "prototypes":
                cosines = [
                    float(np.dot(embeddings[i], m)) for m in self.prototypes
                ]
                score = references.softmax(
                    [c / model.prototype_temperature for c in cosines]
                )
            targets.append(self._move_row(index[i], score, candidates[i]))

        classes = [
            int(np.argmax(self._weighted(probabilities[i], candidates[i])))
            for i in range(batch)
        ]
        self.prototypes = references.prototype_update(
            self.prototypes, embeddings, classes, model.prototype_momentum
        )
        m = model.key_momentum
        for name in KEY:
            self.key[name] = [
                m * k + (1 - m) * q
                for k, q in zip(self.key[name], self.query[name])
            ]
        keys = [self._forward(self.key, x)[1] for x in strong]
        memory = [*zip(keys, classes), *self.queue]
        mixing = [self._mixing(i, index) for i in range(batch)]

        def losses(parameters):
            cls, mix, queries = [], [], []
            for i in range(batch):
                logits, embedding = self._forward(parameters, weak[i])
                queries.append(embedding)
                cls.append(self._label_loss(targets[i], logits))
                other, a = mixing[i]
                logits, _ = self._forward(
                    parameters, a * weak[i] + (1 - a) * weak[other]
                )
                mix.append(
                    self._mixed_loss(targets[i], targets[other], a, logits)
                )
            cont = self._contrast(queries, classes, memory)
            return [
                sum(w * loss for w, loss in zip(weight, part)) / batch
                for part in (cls, cont, mix)
            ]

        def total(parameters):
            cls, cont, mix = losses(parameters)
            decay = sum(
                float(np.sum(part**2))
                for parts in parameters.values()
                for part in parts
            )
            return (
                cls
                + model.contrastive_weight * cont
                + model.mixup_weight * mix
                + 0.5 * model.weight_decay * decay
            )

        cls, cont, mix = losses(self.query)
        self._descend(total)
        self.queue = [*self.queue, *zip(keys, classes)][-model.queue_size :]
        return {
            "cls_loss": cls,
            "cont_loss": cont,
            "mix_loss": mix,
            "loss": cls
            + model.contrastive_weight * cont
            + model.mixup_weight * mix,
            "outside": float(
                np.mean(
                    [
                        1.0 - candidates[i][int(np.argmax(targets[i]))]
                        for i in range(batch)
                    ]
                )
            ),
        }

    def _pixels(self, images):
        mean, std = np.asarray(self.model.mean), np.asarray(self.model.std)
        scaled = (np.asarray(images, "float64") / 255.0 - mean) / std
        return scaled.reshape(len(images), -1)

    def _forward(self, parameters, x):
        features = np.tanh(_dense(parameters["body"], x))
        logits = None
        if "classifier" in parameters:
            logits = _dense(parameters["classifier"], features)
        hidden = np.maximum(_dense(parameters["hidden"], features), 0.0)
        out = _dense(parameters["out"], hidden)
        return logits, np.array(references.unit(out))

    def _label_loss(self, target, logits):
        return references.cross_entropy([target], [logits])[0]

    def _mixed_loss(self, target, other, a, logits):
        return self._label_loss(a * target + (1 - a) * other, logits)

    def _weighted(self, score, candidates):
        weights = [1.0 if inside else self.lam for inside in candidates]
        return weights * score

    def _move_row(self, index, score, candidates):
        size = sum(candidates)
        row = self.table.get(index, np.array([c / size for c in candidates]))
        label = references.pseudo_labels(
            [score], [candidates], self.lam, self.norm, self.scale_factor
        )[0]
        if self.epoch + 1 >= self.model.pseudo_label_start:
            row = self.phi * row + (1 - self.phi) * label
        self.table[index] = row
        self.ratio[index] = references.candidate_ratio([score], [candidates])[0]
        return row

    def _mixing(self, i, index):
        other = i + 1 if i % 2 == 0 else i - 1
        other = 0 if other == len(index) else other
        u = references.draw(
            self.model.seed, self.epoch, int(index[i]), 0, "mixup"
        )
        alpha = self.model.mixup_alpha
        a = float(stats.beta.ppf(u, alpha, alpha))
        return other, max(a, 1 - a)

    def _contrast(self, queries, classes, memory):
        out = []
        entries = [*zip(queries, classes), *memory]
        for i, query in enumerate(queries):
            logits = [
                float(np.dot(query, entry)) / self.model.temperature
                for entry, _ in entries
            ]
            total = sum(math.exp(z) for j, z in enumerate(logits) if j != i)
            terms = [
                math.log(total) - logits[j]
                for j, (_, label) in enumerate(entries)
                if j != i and label == classes[i]
            ]
            out.append(sum(terms) / len(terms))
        return out

    def _descend(self, total, step=1e-6):
        moves = {}
        for name, parts in self.query.items():
            moves[name] = []
            for place, part in enumerate(parts):
                gradient = np.zeros_like(part)
                for where in np.ndindex(*part.shape):
                    kept = part[where]
                    part[where] = kept + step
                    up = total(self.query)
                    part[where] = kept - step
                    down = total(self.query)
                    part[where] = kept
                    gradient[where] = (up - down) / (2 * step)
                moves[name].append(
                    self.momentum * self.velocity[name][place]
                    - self.learning_rate * gradient
                )
        self.velocity = moves
        for name, parts in self.query.items():
            self.query[name] = [p + v for p, v in zip(parts, moves[name])]


def _dense(weights, x):
    kernel, bias = weights
    return x @ kernel + bias
