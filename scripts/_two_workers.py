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
# Seconds for a worker to notice that the other is gone.
PATIENCE = 60


def free_address():
    """Returns a loopback address with a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


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
    """Returns the exit codes, in the order in which the workers ended."""
    codes, left, failed = [], list(workers), None
    stopped = 0
    while left:
        for worker in [w for w in left if w.poll() is not None]:
            left.remove(worker)
            codes.append(worker.returncode)
            if worker.returncode and failed is None:
                failed = time.monotonic()
        late = failed is not None and time.monotonic() - failed
        if left and late and late > PATIENCE * (stopped + 1):
            # Once kindly, then not.
            stop(left, signal.SIGKILL if stopped else signal.SIGTERM)
            stopped += 1
        time.sleep(0.1)
    return codes


def main():
    flags = sys.argv[1:]
    address = free_address()
    cores = sorted(os.sched_getaffinity(0))
    workers = [start(flags, i, address, cores) for i in range(WORKERS)]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stop(workers, number))
    readers = [
        threading.Thread(target=copy_lines, args=(worker, i))
        for i, worker in enumerate(workers)
    ]
    for reader in readers:
        reader.start()
    codes = wait(workers)
    for reader in readers:
        reader.join()
    bad = [code for code in codes if code]
    if not bad:
        return 0
    return bad[0] if bad[0] > 0 else LACKS


if __name__ == "__main__":
    sys.exit(main())
