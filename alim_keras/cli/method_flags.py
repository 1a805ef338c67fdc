"""Flags of the methods, and of ALIM."""


def define_alim(group):
    """Defines the flags of the ALIM callback."""
    group.choice(
        "norm",
        None,
        ("onehot", "scale"),
        "How a weighted prediction becomes a pseudo label: its largest entry, "
        "or all of it to the power 1/K. Without it: as the method does.",
    )
    group.number(
        "scale_factor",
        1.0,
        "K of --norm=scale, exponent 1/K.",
        low=0,
        low_open=True,
    )
    group.number(
        "lam",
        "adaptive",
        "Weight of the labels outside the set: a number, adaptive (the "
        "quantile of the candidate ratio at the noise rate), or instance (in "
        "closed form for each example). 0 is the method without ALIM.",
        low=0,
        high=1,
        words=("adaptive", "instance"),
    )
    group.switch(
        "lam_per_class",
        False,
        "Take the quantile of --lam=adaptive within the examples that share a "
        "likeliest class outside their sets.",
    )
    group.noise_rate(
        "noise_rate",
        None,
        "The noise rate that ALIM is told: a number; oracle (the simulated "
        "--noise_level); or an estimate: em or gmm (from the held-out part, "
        "as epochs end), cv (from three short trainings before), "
        "annotated (from the true labels of --known_labels) or "
        "annotated:FILE (from those of a file of its own); or auto, which "
        "takes annotated, em or cv. Without it: oracle for simulated sets, "
        "auto for those of a file.",
    )
    group.whole(
        "warmup_epochs",
        15,
        "e0: epochs before labels outside the set get weight.",
        low=0,
    )
    group.choice(
        "update",
        "step",
        ("step", "epoch"),
        "When pseudo labels are recomputed: in every step (the authors' code) "
        "or after every epoch (Algorithm 1 of the paper).",
    )
    group.choice(
        "scores",
        "method",
        ("method", "classifier", "prototypes"),
        "The P of Eq. 3 and 6: the classifier's (paper), the prototypes' "
        "(authors' code), or what the method chooses.",
    )
    group.number(
        "pseudo_label_momentum_start",
        None,
        "phi of the pseudo labels' moving average, at the start. Without it: "
        "the method's own, for pico 0.95 to 0.8.",
        low=0,
        high=1,
    )
    group.number(
        "pseudo_label_momentum_end",
        None,
        "phi at the end. Without it: what it is at the start.",
        low=0,
        high=1,
    )


def define_method(group):
    """Defines the flags of the methods."""
    group.text(
        "method",
        "pico",
        "The partial-label method: cc, rc, proden, lwc, lws, gce, mse, mae, "
        "sce, exp, pico, crdpll, irnet, pico_plus, or FILE.py:Class for one of "
        "your own.",
    )
    group.text(
        "method_options",
        None,
        "Arguments of the method that have no flag: name=value,name=value. "
        "Without it: the method's own.",
    )
    group.number(
        "mixup_weight",
        None,
        "Weight of the mixup loss, with any method. Without it: the method's "
        "own, 1 for pico and 0 for most.",
        low=0,
    )
    group.number(
        "logit_adjustment",
        0.0,
        "tau: adds tau x log of each class's share among the pseudo labels to "
        "the logits of the loss, for data in which some classes are rare.",
        low=0,
    )
    group.number(
        "mixup_alpha",
        4.0,
        "The mixup coefficient is drawn from Beta(alpha, alpha).",
        low=0,
        low_open=True,
    )
    group.number(
        "contrastive_weight", 0.5, "Weight of the contrastive loss.", low=0
    )
    group.number(
        "temperature",
        0.07,
        "tau of the contrastive loss.",
        low=0,
        low_open=True,
    )
    group.number(
        "prototype_temperature",
        None,
        "Temperature of the prototypes' softmax. Without it: the method's "
        "own, for pico 0.07.",
        low=0,
        low_open=True,
    )
    group.number(
        "prototype_momentum",
        0.99,
        "Moving average of the prototypes.",
        low=0,
        high=1,
    )
    group.whole(
        "prototype_start",
        1,
        "First epoch, from 1, that updates the pseudo labels.",
        low=1,
    )
    group.number(
        "key_momentum",
        0.999,
        "Moving average of the key encoder.",
        low=0,
        high=1,
    )
    group.whole(
        "queue_size", 1024, "Embeddings kept for the contrastive loss.", low=1
    )
    group.whole("embedding_dim", 128, "Width of an embedding.", low=1)
