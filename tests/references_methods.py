"""Steps of the methods with ALIM, in numpy and float64.

The networks are Flatten, Dense(tanh), then a linear classifier, and for PiCO
and its relatives also Dense(relu), Dense, unit length. Gradients are central
differences of the total loss, so what takes no gradient is what that loss
treats as a constant. The optimiser is SGD with momentum and coupled weight
decay.
"""

import numpy as np
import references
from references import cross_entropy
from scipy import stats
from scipy.special import expit
from scipy.special import softmax


def symmetric(z, p, w, s):
    p, w = np.maximum(p, 1e-7), np.maximum(w, 1e-4)
    return -(6.0 * w * np.log(p) + p * np.log(w)).sum(-1)


def likelihood(z, p, w, s):
    return cross_entropy(w, z)


# Losses from logits, probabilities, weights of the labels, and sets.
LOSSES = {
    "CC": lambda z, p, w, s: -np.log((p * s).sum(-1)),
    "EXP": lambda z, p, w, s: np.exp(-(p * s).sum(-1)),
    "GCE": lambda z, p, w, s: (w * (1 - p**0.7) / 0.7).sum(-1),
    "MSE": lambda z, p, w, s: ((p - w) ** 2).sum(-1),
    "MAE": lambda z, p, w, s: abs(p - w).sum(-1),
    "SCE": symmetric,
    "LWC": lambda z, p, w, s: -(w * np.log(np.where(s, p, 1 - p))).sum(-1),
    "LWS": lambda z, p, w, s: (w * expit(np.where(s, -z, z))).sum(-1),
}


def divided(part):
    """Rows divided by their sums, if these are not zero."""
    return part / np.maximum(part.sum(axis=-1, keepdims=True), 1e-37)


class Slow:
    """Weights, table and settings; attributes are named for what they hold."""

    norm, scale_factor = "scale", 1.0

    def __init__(self, model, learning_rate, momentum):
        self.model, self.name = model, type(model).__name__
        self.parameters = arrays(model.trainable_variables)
        self.velocity = [np.zeros_like(p) for p in self.parameters]
        self.learning_rate, self.momentum = learning_rate, momentum
        self.table = np.zeros((model.num_examples, model.num_classes))
        self.ratio = np.full(model.num_examples, np.nan)
        self.lam, self.phi, self.epoch = 0.0, 0.0, 0

    def pixels(self, images):
        mean, std = np.asarray(self.model.mean), np.asarray(self.model.std)
        return ((np.float64(images) / 255 - mean) / std).reshape(
            len(images), -1
        )

    def features(self, x):
        return np.tanh(x @ self.parameters[0] + self.parameters[1])

    def logits(self, x):
        return self.features(x) @ self.parameters[2] + self.parameters[3]

    def label_loss(self, z, w, s):
        loss = LOSSES.get(self.name, likelihood)
        return loss(z, softmax(z, axis=-1), w, s)

    def rows(self, index, sets):
        rows = self.table[index]
        return np.where(rows.any(axis=1, keepdims=True), rows, divided(sets))

    def move_rows(self, index, scores, sets):
        labels = references.pseudo_labels(
            scores, sets, self.lam, self.norm, self.scale_factor
        )
        moves = self.epoch + 1 >= self.model.pseudo_label_start
        phi = self.phi if moves else 1.0
        self.table[index] = phi * self.rows(index, sets) + (1 - phi) * labels
        self.ratio[index] = references.candidate_ratio(scores, sets)
        return self.table[index]

    def mixing(self, index):
        """The partner of each example, and the larger share, as a column."""
        other = np.arange(len(index)) ^ 1
        other[other == len(index)] = 0
        keys = self.model.seed, self.epoch
        u = [references.draw(*keys, int(i), 0, "mixup") for i in index]
        alpha = self.model.mixup_alpha
        share = stats.beta.ppf(u, alpha, alpha)[:, None]
        return other, np.maximum(share, 1 - share)

    def gradients(self, loss, step=1e-6):
        for part in self.parameters:
            gradient = np.zeros_like(part)
            for place in np.ndindex(*part.shape):
                kept, values = part[place], []
                for sign in (1, -1):
                    part[place] = kept + sign * step
                    values.append(loss())
                part[place] = kept
                gradient[place] = (values[0] - values[1]) / (2 * step)
            yield gradient

    def descend(self, gradients):
        self.velocity = [
            self.momentum * v
            - self.learning_rate * (g + self.model.weight_decay * p)
            for v, g, p in zip(self.velocity, gradients, self.parameters)
        ]
        self.parameters = [
            p + v for p, v in zip(self.parameters, self.velocity)
        ]


def arrays(variables):
    return [v.numpy().astype("float64") for v in variables]


class SlowMethod(Slow):
    """A simple method. With folds the classifier has one more axis: heads."""

    def __init__(self, *args):
        super().__init__(*args)
        self.fold = self.model.fold.numpy() if self.model.folds else None
        self.leveraged = self.name in ("LWC", "LWS")

    def heads(self, x):
        """Logits `(B, K, C)`; without folds there is one head."""
        *_, top, bias = self.parameters
        logits = np.tensordot(self.features(x), top, 1) + bias
        return logits.reshape(len(x), -1, self.model.num_classes)

    def own(self, x, index):
        """Probabilities of the head that never saw an example."""
        head = 0 if self.fold is None else self.fold[index]
        return softmax(self.heads(x)[np.arange(len(x)), head], axis=1)

    def mean(self, losses, *indices):
        """Over the heads that may learn from all of these examples."""
        allowed = np.ones_like(losses)
        for index in indices if self.model.folds else ():
            allowed[np.arange(len(index)), self.fold[index]] = 0
        return ((losses * allowed).sum(axis=1) / allowed.sum(axis=1)).mean()

    def rows(self, index, sets):
        return super().rows(
            index, np.ones_like(sets) if self.leveraged else sets
        )

    def step(self, x, candidates, progress=0.0):
        """Returns the total loss, after changing weights and rows."""
        index, sets = x["index"], np.float64(candidates)
        views = [self.pixels(x[name]) for name in ("weak", "strong", "strong2")]
        rows, s = self.rows(index, sets)[:, None], sets[:, None]
        other, share = self.mixing(index)
        mixed = share * views[0] + (1 - share) * views[0][other]

        def total():
            z = self.heads(views[0])
            if self.name == "CRDPLL":
                entropy = cross_entropy(rows, np.log(np.maximum(rows, 1e-300)))
                found = sum(
                    cross_entropy(rows, self.heads(view)) - entropy
                    for view in views
                )
                rest = (1 - s) * np.log(1 - softmax(z, axis=-1))
                found = min(2 * progress, 1.0) * found - rest.sum(-1)
            else:
                found = self.label_loss(z, rows, s)
            value = self.mean(found, index)
            if self.model.mixup_weight:
                z = self.heads(mixed)
                found = share * self.label_loss(z, rows, s)
                found += (1 - share) * self.label_loss(z, rows[other], s[other])
                mix = self.mean(found, index, index[other])
                value += self.model.mixup_weight * mix
            return value

        value, gradients = total(), [*self.gradients(total, 1e-5)]
        for gradient in gradients[2:] if self.model.folds else ():
            # Each head moves as if it were alone.
            gradient *= self.model.folds
        if self.model.refresh_when == "after_step":
            self.descend(gradients)
        used = views if self.name == "CRDPLL" else views[:1]
        p = np.prod([self.own(view, index) for view in used], axis=0)
        p = p ** (1 / len(used))
        if self.leveraged:
            self.table[index] = divided(p * sets) + divided(p * (1 - sets))
        elif self.model.keeps_pseudo_labels:
            self.move_rows(index, p, sets)
        if self.model.refresh_when != "after_step":
            self.descend(gradients)
        return value


class SlowPiCO(Slow):
    """The order of a step is that of the authors' code.

    Forward of the weak views with the old prototypes, pseudo labels,
    prototypes, moving average of the key encoder, keys of the strong views,
    contrast, queue, mixup.
    """

    norm = "onehot"

    def __init__(self, model, *args):
        super().__init__(model, *args)
        self.key = arrays(model.key_encoder.weights)
        self.prototypes, self.queue, self.labels = arrays(
            [model.prototypes.means, model.queue.embeddings, model.queue.labels]
        )

    @property
    def query(self):
        """What the key encoder follows: all but the classifier."""
        return self.parameters[:2] + self.parameters[4:]

    def encode(self, x, parts):
        kernel, bias, hidden, hidden_bias, out, out_bias = parts
        x = np.tanh(x @ kernel + bias)
        x = np.maximum(x @ hidden + hidden_bias, 0.0)
        return references.unit(x @ out + out_bias)

    def step(self, weak, strong, index, candidates, weight=1.0):
        """Returns the losses of one training step, after changing all state."""
        model, sets = self.model, np.float64(candidates)
        weak, strong = self.pixels(weak), self.pixels(strong)
        p, q = softmax(self.logits(weak), axis=1), self.encode(weak, self.query)
        cosines = q @ self.prototypes.T
        targets, classes, marks = self.settle(p, cosines, index, sets)
        known = marks < model.num_classes
        self.prototypes = references.prototype_update(
            self.prototypes, q[known], classes[known], model.prototype_momentum
        )
        m = model.key_momentum
        self.key = [m * k + (1 - m) * v for k, v in zip(self.key, self.query)]
        keys = self.encode(strong, self.key)
        memory = np.concatenate([keys, self.queue])
        labels = np.concatenate([marks, marks, self.labels])
        similarities = q @ np.concatenate([q, memory]).T
        contrasts = self.contrasts(similarities, marks, labels)
        other, share = self.mixing(index)
        mixed, share = share * weak + (1 - share) * weak[other], share[:, 0]

        def losses():
            z, found = self.logits(weak), self.encode(weak, self.query)
            similarities = found @ np.concatenate([found, memory]).T
            rows = {"cls": self.label_loss(z, targets, sets)}
            for name, (_, mask, each) in contrasts.items():
                rows[name] = each * references.supervised_contrastive(
                    mask, similarities, model.temperature
                )
            z = self.logits(mixed)
            rows["mix"] = share * self.label_loss(z, targets, sets)
            rows["mix"] += (1 - share) * self.label_loss(
                z, targets[other], sets[other]
            )
            return self.parts(
                {name: weight * row for name, row in rows.items()}, known
            )

        weights = {name: weight for name, (weight, *_) in contrasts.items()}
        weights |= {"mix": model.mixup_weight, **self.class_weights()}

        def total():
            found = losses()
            return sum(weights[name] * value for name, value in found.items())

        logs = {f"{name}_loss": value for name, value in losses().items()}
        logs["loss"] = total()
        best = sets[np.arange(len(sets)), targets.argmax(axis=1)]
        logs["outside"] = 1 - best.mean()
        self.descend(list(self.gradients(total)))
        self.queue = np.concatenate([self.queue, keys])[-model.queue_size :]
        self.labels = np.append(self.labels, marks)[-model.queue_size :]
        return logs

    def settle(self, p, cosines, index, sets):
        """Returns targets, classes, and the labels that the queue takes."""
        scores = p
        if self.model.scores_from == "prototypes":
            scores = softmax(cosines / self.model.prototype_temperature, axis=1)
        targets = self.move_rows(index, scores, sets)
        classes = (p * (sets + self.lam * (1 - sets))).argmax(axis=1)
        return targets, classes, classes

    def contrasts(self, similarities, marks, labels):
        """By name: weight, mask of all entries, and weight of each anchor."""
        mask = 1.0 * (marks[:, None] == labels)
        np.fill_diagonal(mask, -1)
        return {"cont": (self.model.contrastive_weight, mask, 1.0)}

    def class_weights(self):
        return {"cls": 1.0}

    def parts(self, rows, known):
        return {name: row.mean() for name, row in rows.items()}


class SlowIRNet(SlowPiCO):
    """Has `sets`, the candidate sets that a step met or enlarged, by index."""

    def __init__(self, *args):
        super().__init__(*args)
        self.name = {"sce": "SCE", "ce": "CE"}[self.model.label_loss]
        self.sets = {}

    def step(self, weak, strong, weak2, index, candidates):
        pairs = zip(index, candidates)
        sets = np.array([self.sets.get(i, row) for i, row in pairs])
        query = self.query
        first = self.scores(weak, query)
        logs = super().step(weak, strong, index, sets)
        # The prototypes have moved; the weights are those of the step.
        scores = zip(first, self.scores(weak2, query))
        logs["corrected"] = 0.0
        for example, row, (g, h) in zip(index, sets, scores):
            label = self.missing(g, row)
            if label is None or label != self.missing(h, row):
                continue
            self.table[example, label] = g[label]
            self.table[example] = divided(self.table[example])
            self.sets[example] = row + np.eye(len(row))[label]
            logs["corrected"] += 1.0
        return logs

    def scores(self, images, query):
        cosines = self.encode(self.pixels(images), query) @ self.prototypes.T
        return softmax(cosines / self.model.prototype_temperature, axis=1)

    def missing(self, scores, candidates):
        """The label that leads all candidates by more than tau, or None."""
        outside = np.where(candidates > 0, -1, scores)
        rival = scores[candidates > 0].max() + self.model.tau
        return outside.argmax() if outside.max() > rival else None


class SlowPiCOPlus(SlowPiCO):
    """Has `reliable` and `distance`, by example.

    A queue entry's class is `c + C` where it was unreliable.
    """

    def __init__(self, model, *args):
        super().__init__(model, *args)
        self.reliable = np.ones(model.num_examples, bool)
        self.distance = np.full(model.num_examples, np.nan)

    def begin_epoch(self, epoch):
        self.epoch, self.reliable[:] = epoch, True
        if epoch >= self.model.start:
            near = np.argsort(self.distance, kind="stable")
            near = near[: np.isfinite(self.distance).sum()]
            far = near[int(self.model.pure_ratio * len(near)) :]
            self.reliable[far] = False

    @property
    def started(self):
        return self.epoch >= self.model.start

    def settle(self, p, cosines, index, sets):
        phi, self.phi = self.phi, self.phi if self.started else 1.0
        targets, classes, _ = super().settle(p, cosines, index, sets)
        self.phi = phi
        inside = (p * sets).argmax(axis=1)
        self.distance[index] = -cosines[np.arange(len(sets)), inside]
        trusted = self.reliable[index]
        guess = cosines / self.model.prototype_temperature
        guess = softmax(guess / self.model.guess_temperature, axis=1)
        targets = np.where(trusted[:, None], targets, guess)
        classes = np.where(trusted, classes, p.argmax(axis=1))
        others = classes + self.model.num_classes
        return targets, classes, np.where(trusted, classes, others)

    def contrasts(self, similarities, marks, labels):
        model, size, c = self.model, len(marks), self.model.num_classes
        trusted, place = marks < c, np.arange(len(marks))
        relaxed = 1.0 * (
            marks[:, None] % c == np.where(labels < 0, c, labels % c)
        )
        strict = 1.0 * (marks[:, None] == labels)
        each = np.where(
            trusted, model.contrastive_weight, model.unreliable_weight
        )
        if not self.started:
            strict[:] = 0
            strict[:, : 2 * size] = -1
            each = np.full(size, model.contrastive_weight)
        else:
            strict[~trusted] = 0
        if self.epoch >= model.knn_start:
            near = np.argsort(-similarities[~trusted], axis=1)
            near = near[:, : model.num_neighbours]
            strict[np.flatnonzero(~trusted)[:, None], near] = 1
        elif self.started:
            each = np.ones(size)
        strict[place, place + size] = 1
        for mask in (strict, relaxed):
            np.fill_diagonal(mask, -1)
        weight = model.unreliable_weight if self.started else 0.0
        return {"cont": (1.0, strict, each), "relaxed": (weight, relaxed, 1.0)}

    def class_weights(self):
        weight = self.model.cls_weight if self.started else 1.0
        return {"cls": weight, "guess": self.model.unreliable_weight}

    def parts(self, rows, known):
        cls = rows.pop("cls")
        found = super().parts(rows, known)
        found["mix"] *= self.started
        for name, mine in (("cls", known), ("guess", ~known)):
            found[name] = cls[mine].sum() / max(mine.sum(), 1)
        return found
