"""ALIM inside your own Keras program: own backbone, own arrays, `model.fit`.

    python examples/embed.py --epochs=40

Learns handwritten digits from noisy candidate sets, saves, loads and serves
the classifier. Everything here is plain Keras but for the model, the data
set and one callback.
"""

import argparse
import os
import tempfile

import keras
import numpy as np
from sklearn.datasets import load_digits

import alim_keras


def noisy_candidates(labels, num_classes, ambiguity, noise_rate, seed=0):
    """Stands for your own labels: a multi-hot array, a set per image."""
    return alim_keras.data.simulate_candidates(
        labels,
        num_classes,
        ambiguity=ambiguity,
        noise_level=noise_rate,
        seed=seed,
    ).dense()


def my_backbone():
    """Any Keras model from an image to a vector will do."""
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
        ]
    )


def main(epochs=40):
    """Trains, evaluates, exports; returns the test accuracy."""
    digits = load_digits()
    images = (digits.images[..., None] * 255 / 16).astype("uint8")
    train, test = slice(0, 1437), slice(1437, None)
    candidates = noisy_candidates(
        digits.target[train], 10, ambiguity=0.3, noise_rate=0.3
    )

    keras.utils.set_random_seed(0)
    model = alim_keras.PiCO(
        my_backbone(),
        num_classes=10,
        num_examples=len(candidates),
        mean=0.305,
        std=0.376,
        queue_size=1024,
        weight_decay=1e-3,
    )
    model.compile(
        optimizer=keras.optimizers.SGD(
            keras.optimizers.schedules.CosineDecay(0.03, epochs * 22),
            momentum=0.9,
        ),
        metrics=[alim_keras.metrics.CandidateAccuracy()],
    )
    history = model.fit(
        alim_keras.data.train_dataset(images[train], candidates, 64),
        validation_data=alim_keras.data.eval_dataset(
            images[test], digits.target[test], num_classes=10
        ),
        epochs=epochs,
        verbose=2,
        callbacks=[
            alim_keras.callbacks.ALIM(
                noise_rate=0.3,
                warmup_epochs=max(1, epochs // 8),
                labels=digits.target[train],  # Only for a log; leave it out.
            ),
            keras.callbacks.TerminateOnNaN(),
        ],
    ).history

    settled = model.pseudo_labels.numpy().argmax(axis=1)
    outside = ~candidates[np.arange(len(settled)), settled]
    print(f"{outside.mean():.1%} of the images were labelled outside their set")

    with tempfile.TemporaryDirectory() as folder:
        model.save(os.path.join(folder, "model.keras"))
        again = keras.models.load_model(os.path.join(folder, "model.keras"))
        same = np.allclose(
            again.predict(images[test], verbose=0),
            model.predict(images[test], verbose=0),
            atol=1e-6,
        )
        print(f"saved and loaded, same predictions: {same}")
        model.export(
            os.path.join(folder, "saved_model"),
            class_names=[str(name) for name in digits.target_names],
        )
    return history["val_candidate_accuracy"][-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    print(f"test accuracy {main(parser.parse_args().epochs):.3f}")
