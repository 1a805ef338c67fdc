"""Several views of one kind, each with random numbers of its own."""


def make_views(views, names, draw):
    """Returns the named views of a batch, a dict.

    Args:
        views: A `Views` or `AutoAugmentViews`.
        names: Names such as `"weak"`, `"strong"`, `"strong2"`: the kind, and
            any number that tells it from others of its kind. The name is the
            stream of its random numbers.
        draw: Triple: images, epoch and index, as for `Views.weak`.
    """
    kinds = {name: name.rstrip("0123456789") for name in names}
    return {
        name: getattr(views, kind)(*draw, stream=name)
        for name, kind in kinds.items()
    }
