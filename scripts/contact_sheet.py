"""Draws real images beside their weak and strong views.

    python scripts/contact_sheet.py --out docs/images/views.png

The images are scikit-learn's own: handwritten digits and two photographs.
"""

import argparse
import os
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")

import keras
import matplotlib.pyplot as plt
import numpy as np
from sklearn import datasets

# The checkout need not be installed.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from alim_keras.augment import Views  # noqa: E402

EPOCHS = 4


def photograph(number, size, corner, side):
    """A square of one of scikit-learn's photographs, at `size` pixels."""
    top, left = corner
    image = datasets.load_sample_images().images[number]
    image = image[top : top + side, left : left + side]
    image = keras.ops.image.resize(
        image.astype("float32"), (size, size), antialias=True
    )
    return keras.ops.convert_to_numpy(image).round().astype("uint8")


def digit(number):
    """One of scikit-learn's handwritten digits, from [0, 16] to [0, 255]."""
    image = datasets.load_digits().images[number]
    return (image * (255 / 16)).round().astype("uint8")[..., None]


def rows():
    """Returns a caption, an image and the views' settings for each row."""
    flower, temple = (1, (30, 160), 390), (0, (0, 30), 427)
    number, corner, side = temple
    yield "temple\n128x128", photograph(number, 128, corner, side), {}
    yield "temple\n32x32", photograph(number, 32, corner, side), {}
    number, corner, side = flower
    yield "flower\n128x128", photograph(number, 128, corner, side), {}
    yield "flower\n32x32", photograph(number, 32, corner, side), {}
    # A mirrored digit is no digit.
    yield "digit\n8x8", digit(7), {"flip": 0.0}
    yield "digit\n8x8", digit(19), {"flip": 0.0}


def pictures(image, settings, index):
    """Returns the image, then its weak and its strong views."""
    views = Views(**settings)
    batch, index = image[None], np.array([index])
    result = [image]
    for view in (views.weak, views.strong):
        for epoch in range(EPOCHS):
            drawn = keras.ops.convert_to_numpy(view(batch, epoch, index))
            result.append(drawn[0].round().clip(0, 255).astype("uint8"))
    return result


def draw(path):
    """Writes the contact sheet to `path`."""
    table = list(rows())
    titles = ["original"]
    titles += [f"weak\nepoch {epoch}" for epoch in range(EPOCHS)]
    titles += [f"strong\nepoch {epoch}" for epoch in range(EPOCHS)]
    # A narrow empty column parts the originals, weak and strong views.
    widths = [1, 0.12, *[1] * EPOCHS, 0.12, *[1] * EPOCHS]
    columns = [0, *range(2, 2 + EPOCHS), *range(3 + EPOCHS, 3 + 2 * EPOCHS)]
    figure, axes = plt.subplots(
        len(table),
        len(widths),
        figsize=(sum(widths) * 1.1 + 0.7, len(table) * 1.1 + 0.5),
        width_ratios=widths,
        layout="constrained",
    )
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0, hspace=0)
    for axis in axes.flat:
        axis.axis("off")
    for row, (caption, image, settings) in enumerate(table):
        drawn = pictures(image, settings, index=row)
        for column, picture in zip(columns, drawn, strict=True):
            axis = axes[row, column]
            axis.imshow(
                picture.squeeze(),
                cmap="gray",
                vmin=0,
                vmax=255,
                interpolation="nearest",
            )
        axes[row, 0].text(
            -0.12,
            0.5,
            caption,
            transform=axes[row, 0].transAxes,
            ha="right",
            va="center",
            fontsize=8,
        )
    for column, title in zip(columns, titles, strict=True):
        axes[0, column].set_title(title, fontsize=9)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.part")
    figure.savefig(partial, dpi=110, format="png", metadata={"Software": None})
    plt.close(figure)
    os.replace(partial, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="docs/images/views.png")
    arguments = parser.parse_args()
    draw(arguments.out)
    print(f"Wrote {arguments.out}")


if __name__ == "__main__":
    main()
