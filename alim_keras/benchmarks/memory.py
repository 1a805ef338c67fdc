"""How much memory was in use at most, in bytes."""

import re
import resource
import sys

from alim_keras.backend import timing


def peaks():
    """Returns a dict: `host` (this process), and `device` (None on a CPU)."""
    return {"host": _host_peak(), "device": timing.peak_device_memory()}


def _host_peak():
    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            found = re.search(r"VmHWM:\s*(\d+) kB", file.read())
        if found:
            return int(found[1]) * 1024
    except OSError:
        pass  # Not Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts in bytes, others in KiB.
    return peak if sys.platform == "darwin" else peak * 1024
