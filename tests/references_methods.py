"""The simple methods, one example and one number at a time.

The network is Flatten, Dense(tanh), linear classifier, in float64; gradients
are central differences of the total loss, so what takes no gradient is what
`total` below treats as a constant. The optimiser is SGD with momentum.

With `folds` the classifier's weights have one more axis, the head.
"""

import math

import numpy as np
import references


def probabilities(logits):
    return references.softmax([float(z) for z in logits])


def sigmoid(z):
    return 1.0 / (1.0 + math.exp(-z))


# Losses of one example: logits, weights of the labels, set.


def cross_entropy(z, w, s):
    return -sum(a * math.log(p) for a, p in zip(w, probabilities(z)))


def cc(z, w, s):
    return -math.log(sum(p for p, c in zip(probabilities(z), s) if c))


def exp(z, w, s):
    return math.exp(-sum(p for p, c in zip(probabilities(z), s) if c))


def gce(z, w, s, g=0.7):
    return sum(a * (1 - p**g) / g for a, p in zip(w, probabilities(z)))


def mse(z, w, s):
    return sum((p - a) ** 2 for a, p in zip(w, probabilities(z)))


def mae(z, w, s):
    return sum(abs(p - a) for a, p in zip(w, probabilities(z)))


def sce(z, w, s, alpha=6.0, beta=1.0):
    forward = reverse = 0.0
    for a, p in zip(w, probabilities(z)):
        p, a = max(p, 1e-7), max(a, 1e-4)
        forward -= a * math.log(p)
        reverse -= p * math.log(a)
    return alpha * forward + beta * reverse


def lwc(z, v, s, beta=1.0):
    total = 0.0
    for a, p, c in zip(v, probabilities(z), s):
        total += -a * math.log(p) if c else -beta * a * math.log(1 - p)
    return total


def lws(z, v, s, beta=1.0):
    return sum(
        a * sigmoid(-x) if c else beta * a * sigmoid(x)
        for x, a, c in zip(z, v, s)
    )


def outside_set(z, s):
    return sum(-math.log(1 - p) for p, c in zip(probabilities(z), s) if not c)


def divergence(w, z):
    return sum(
        a * (math.log(a) - math.log(p))
        for a, p in zip(w, probabilities(z))
        if a > 0
    )


LOSSES = {
    "CC": cc,
    "RC": cross_entropy,
    "PRODEN": cross_entropy,
    "LWC": lwc,
    "LWS": lws,
    "GCE": gce,
    "MSE": mse,
    "MAE": mae,
    "SCE": sce,
    "EXP": exp,
    "CRDPLL": cross_entropy,
}


def weighted(p, s, lam):
    """Eq. 3 with K = 1."""
    z = [a * (1.0 if c else lam) for a, c in zip(p, s)]
    return [a / sum(z) for a in z]


def both_sides(p, s):
    """The weights of the leveraged losses."""
    inside = sum(a for a, c in zip(p, s) if c)
    outside = sum(a for a, c in zip(p, s) if not c)
    return [a / inside if c else a / max(outside, 1e-37) for a, c in zip(p, s)]


class SlowMethod:
    """State and one step of a simple method; see the module."""

    def __init__(self, model, learning_rate, momentum):
        self.model, self.name = model, type(model).__name__
        self.parameters = [
            v.numpy().astype("float64") for v in model.trainable_variables
        ]
        self.velocity = [np.zeros_like(p) for p in self.parameters]
        self.learning_rate, self.momentum = learning_rate, momentum
        self.rows, self.lam = {}, 0.0
        self.fold = model.fold.numpy() if model.folds else None

    def heads(self, *index):
        """The heads that may learn from an image of these examples."""
        if self.fold is None:
            return [None]
        seen = {self.fold[i] for i in index}
        return [k for k in range(self.model.folds) if k not in seen]

    def own(self, index):
        """The head that never saw an example."""
        return None if self.fold is None else self.fold[index]

    def logits(self, parameters, image, head=None):
        kernel, bias, top, top_bias = parameters
        if head is not None:
            top, top_bias = top[:, head], top_bias[head]
        hidden = np.tanh(np.ravel(image) / 255.0 @ kernel + bias)
        return hidden @ top + top_bias

    def targets(self, index, s):
        leveraged = self.name in ("LWC", "LWS")
        start = [1 / len(s) if leveraged else c / sum(s) for c in s]
        return self.rows.get(int(index), start)

    def step(self, x, candidates, progress=0.0):
        """Returns the total loss, after changing weights and rows."""
        # A float32 among them would spoil the differences.
        candidates = np.float64(candidates)
        rows = [self.targets(i, s) for i, s in zip(x["index"], candidates)]

        def total(parameters):
            return sum(
                self._loss(parameters, x, i, rows, candidates, progress)
                for i in range(len(rows))
            ) / len(rows)

        before = self.parameters
        value = total(before)
        gradients = self._gradients(total, before)
        if self.fold is not None:
            # Each head moves as if it were alone.
            for gradient in gradients[2:]:
                gradient *= self.model.folds
        self.velocity = [
            self.momentum * v - self.learning_rate * g
            for v, g in zip(self.velocity, gradients)
        ]
        self.parameters = [p + v for p, v in zip(before, self.velocity)]
        late = self.model.refresh_when == "after_step"
        self._update(self.parameters if late else before, x, candidates)
        return value

    def _loss(self, parameters, x, i, rows, candidates, progress):
        heads = self.heads(x["index"][i])
        value = np.mean(
            [
                self._own_loss(parameters, x, i, rows, candidates, progress, k)
                for k in heads
            ]
        )
        if self.model.mixup_weight:
            j, a = self._mixing(x["index"], i)
            mixed = a * np.float64(x["weak"][i])
            mixed = mixed + (1 - a) * np.float64(x["weak"][j])
            heads = self.heads(x["index"][i], x["index"][j])
            loss, losses = LOSSES[self.name], []
            for k in heads:
                z = self.logits(parameters, mixed, k)
                losses.append(
                    a * loss(z, rows[i], candidates[i])
                    + (1 - a) * loss(z, rows[j], candidates[j])
                )
            value += self.model.mixup_weight * np.mean(losses)
        return value

    def _own_loss(self, parameters, x, i, rows, candidates, progress, head):
        z = self.logits(parameters, x["weak"][i], head)
        w, s = rows[i], candidates[i]
        if self.name != "CRDPLL":
            return LOSSES[self.name](z, w, s)
        views = [z] + [
            self.logits(parameters, x[name][i], head)
            for name in ("strong", "strong2")
        ]
        ramp = min(progress / 0.5, 1.0)
        return ramp * sum(divergence(w, v) for v in views) + outside_set(z, s)

    def _mixing(self, index, i):
        from scipy import stats

        j = i ^ 1 if (i ^ 1) < len(index) else 0
        u = references.draw(self.model.seed, 0, int(index[i]), 0, "mixup")
        alpha = self.model.mixup_alpha
        b = stats.beta.ppf(u, alpha, alpha)
        return j, max(b, 1 - b)

    def _update(self, parameters, x, candidates):
        if not self.model.keeps_pseudo_labels and self.name[:2] != "LW":
            return
        for i, index in enumerate(x["index"]):
            own = self.own(index)
            p = probabilities(self.logits(parameters, x["weak"][i], own))
            if self.name == "CRDPLL":
                views = [
                    probabilities(self.logits(parameters, x[name][i], own))
                    for name in ("weak", "strong", "strong2")
                ]
                p = [(a * b * c) ** (1 / 3) for a, b, c in zip(*views)]
            s = candidates[i]
            if self.name[:2] == "LW":
                self.rows[int(index)] = both_sides(p, s)
            else:
                self.rows[int(index)] = weighted(p, s, self.lam)

    def _gradients(self, function, parameters, step=1e-5):
        found = []
        for k, part in enumerate(parameters):
            gradient = np.zeros_like(part)
            for place in np.ndindex(*part.shape):
                values = []
                for sign in (1, -1):
                    moved = part.copy()
                    moved[place] += sign * step
                    values.append(
                        function([*parameters[:k], moved, *parameters[k + 1 :]])
                    )
                gradient[place] = (values[0] - values[1]) / (2 * step)
            found.append(gradient)
        return found
