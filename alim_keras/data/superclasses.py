"""The 20 superclasses of CIFAR-100, joined to a data set by class name."""

import numpy as np

from alim_keras.errors import ConfigError
from alim_keras.errors import first_five

# Source: Krizhevsky, "Learning multiple layers of features from tiny
# images", 2009, and the data set's page.
CIFAR100_SUPERCLASSES = {
    name: tuple(members.split())
    for name, members in (
        line.split(": ")
        for line in """\
aquatic_mammals: beaver dolphin otter seal whale
fish: aquarium_fish flatfish ray shark trout
flowers: orchid poppy rose sunflower tulip
food_containers: bottle bowl can cup plate
fruit_and_vegetables: apple mushroom orange pear sweet_pepper
household_electrical_devices: clock keyboard lamp telephone television
household_furniture: bed chair couch table wardrobe
insects: bee beetle butterfly caterpillar cockroach
large_carnivores: bear leopard lion tiger wolf
large_man-made_outdoor_things: bridge castle house road skyscraper
large_natural_outdoor_scenes: cloud forest mountain plain sea
large_omnivores_and_herbivores: camel cattle chimpanzee elephant kangaroo
medium_mammals: fox porcupine possum raccoon skunk
non-insect_invertebrates: crab lobster snail spider worm
people: baby boy girl man woman
reptiles: crocodile dinosaur lizard snake turtle
small_mammals: hamster mouse rabbit shrew squirrel
trees: maple_tree oak_tree palm_tree pine_tree willow_tree
vehicles_1: bicycle bus motorcycle pickup_truck train
vehicles_2: lawn_mower rocket streetcar tank tractor
""".splitlines()
    )
}


def superclasses_of(class_names, table=None):
    """Returns the superclass number of every class, joined by name.

    Case, blanks and hyphens do not matter, nor does the order of classes.

    Args:
        class_names: Strings `(num_classes,)`.
        table: Dict from superclass to the names of its classes. Defaults to
            `CIFAR100_SUPERCLASSES`.

    Returns:
        Integers `(num_classes,)`: the place of each class's superclass in
        the table.

    Raises:
        ConfigError: A class is in no superclass of the table.

    Example:

    >>> superclasses_of(["whale", "Maple tree", "beaver"]).tolist()
    [0, 17, 0]
    """
    table = CIFAR100_SUPERCLASSES if table is None else table
    number = {
        _plain(name): place
        for place, members in enumerate(table.values())
        for name in members
    }
    unknown = [name for name in class_names if _plain(name) not in number]
    if unknown:
        raise ConfigError(
            f"{len(unknown)} of {len(class_names)} classes belong to no "
            f"superclass of the table: {first_five(unknown)}; the superclass "
            "protocol needs the class names of CIFAR-100"
        )
    return np.array([number[_plain(name)] for name in class_names], np.int64)


def _plain(name):
    return str(name).strip().lower().replace(" ", "_").replace("-", "_")
