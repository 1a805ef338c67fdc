"""Python's garbage collection, kept out of the threads of tf.data."""

import contextlib
import gc
import threading

_lock = threading.Lock()
_inside = 0
_was_enabled = False


@contextlib.contextmanager
def paused():
    """Pauses the cyclic garbage collection while a batch is being made.

    It may come up in any thread, and an iterator that was left half read and
    is part of a cycle is then destroyed there. Its destructor waits for its
    batches, and for ever if this thread is to make one of them. While a batch
    is made there is nothing to collect that could not wait.
    """
    global _inside, _was_enabled
    with _lock:
        if not _inside:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _was_enabled:
                gc.enable()
