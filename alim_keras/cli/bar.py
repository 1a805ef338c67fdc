"""A progress bar on stderr, where somebody looks at it."""

import contextlib
import sys


@contextlib.contextmanager
def bar(text):
    """Gives a function of (done, total) that draws a progress bar.

    Args:
        text: String, what goes on.

    Yields:
        The function, or None if stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    # Keras brings it along.
    from rich import console
    from rich import progress

    with progress.Progress(
        *progress.Progress.get_default_columns(),
        progress.MofNCompleteColumn(),
        console=console.Console(stderr=True),
        transient=True,
    ) as drawn:
        task = drawn.add_task(text, total=None)
        yield lambda done, total: drawn.update(
            task, completed=done, total=total
        )
