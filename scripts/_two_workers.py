"""Starts two worker processes of `alim_keras.train`; see scripts/two_workers.

Uses the standard library only. Ends with 0 when both did, else with the exit
code of the first worker that failed (6 if it was killed).
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

WORKERS = 2
LACKS = 6
# Seconds in which a worker notices that the other is gone, and reports it.
PATIENCE = 30


def start(flags, index, address, cores):
    """Starts one worker, on cores of its own where there are enough."""
    os.sched_setaffinity(0, cores[index::WORKERS] or cores)
    command = [sys.executable, "-u", "-P", "-m", "alim_keras.train"]
    worker = subprocess.Popen(
        [*command, "--backend=jax", "--distribute=multi_worker", *flags],
        env={
            **os.environ,
            "JAX_COORDINATOR_ADDRESS": address,
            "JAX_NUM_PROCESSES": str(WORKERS),
            "JAX_PROCESS_ID": str(index),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # Ctrl-C reaches the workers through this process only.
        start_new_session=True,
    )
    os.sched_setaffinity(0, cores)
    return worker


def copy_lines(worker, index):
    for line in worker.stdout:
        print(f"[worker {index}] {line}", end="", flush=True)


def stop(workers, number):
    for worker in workers:
        if worker.poll() is None:
            worker.send_signal(number)


def wait(workers):
    """Waits for all; returns the exit code of the first that failed, or 0."""
    code, signals = 0, [signal.SIGTERM, signal.SIGKILL]
    while any(worker.poll() is None for worker in workers):
        failed = [worker for worker in workers if worker.returncode]
        if failed and not code:
            code, deadline = failed[0].returncode, time.monotonic() + PATIENCE
        if failed and signals and time.monotonic() > deadline:
            stop(workers, signals.pop(0))
            deadline += PATIENCE
        time.sleep(0.1)
    return code or next((w.returncode for w in workers if w.returncode), 0)


def main():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    cores = sorted(os.sched_getaffinity(0))
    flags = sys.argv[1:]
    workers = [start(flags, i, address, cores) for i in range(WORKERS)]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stop(workers, number))
    readers = [
        threading.Thread(target=copy_lines, args=(worker, i))
        for i, worker in enumerate(workers)
    ]
    for reader in readers:
        reader.start()
    code = wait(workers)
    for reader in readers:
        reader.join()
    return code if code >= 0 else LACKS


if __name__ == "__main__":
    sys.exit(main())
