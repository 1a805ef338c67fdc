"""Makes the environment .venv of this checkout, or finds it ready.

    python scripts/_environment.py [--extra=NAME]

Called by scripts/train and scripts/test with a Python of a supported version;
uses the standard library only. Ends with 0 when the environment is ready,
with 6 and one line on stderr when it cannot be made. A stamp in .venv says
which requirements are installed; it is written last, so whatever interrupts
the work, the next call takes it up again.
"""

import argparse
import fcntl
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent
VENV = TOP / ".venv"
PYTHON = VENV / "bin" / "python"
# Present while a new environment is being made: what is there may be half.
UNFINISHED = VENV / ".unfinished"
LACKS = 6


def requirements(extra):
    """Returns the requirement lines to install, with those of an extra."""
    text = (TOP / "requirements.txt").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if extra:
        project = tomllib.loads(
            (TOP / "pyproject.toml").read_text(encoding="utf-8")
        )
        lines.extend(project["project"]["optional-dependencies"][extra])
    return lines


def key_of(lines):
    """Returns what the stamp holds when these lines are installed."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = "\n".join((version, *sorted(lines)))
    return hashlib.sha256(text.encode()).hexdigest()


def stamp_of(extra):
    return VENV / f".installed-{extra or 'train'}"


def is_ready(extra):
    stamp = stamp_of(extra)
    return (
        not UNFINISHED.exists()
        and PYTHON.exists()
        and stamp.exists()
        and stamp.read_text() == key_of(requirements(extra))
    )


def run(command, what, lock):
    """Runs a command with its output on stderr, or ends with one line."""
    # The child holds the lock too: should this process be killed, the next
    # one waits until the child has stopped writing.
    result = subprocess.run(
        command, stdout=sys.stderr, check=False, pass_fds=(lock.fileno(),)
    )
    if result.returncode:
        fail(
            f"{what} failed with {result.returncode}, see above. Mend that "
            "(network, disk space) and run the same command again."
        )


def fail(line):
    print(f"alim_keras set-up: error: {line}", file=sys.stderr)
    sys.exit(LACKS)


def install(extra, lock):
    """Makes .venv if there is none, and installs into it."""
    lines = requirements(extra)
    if UNFINISHED.exists():
        shutil.rmtree(VENV)
    if not VENV.exists():
        print(
            f"Making the environment {VENV} (once; a few minutes and about "
            "3 GB)",
            file=sys.stderr,
        )
        VENV.mkdir()
        UNFINISHED.touch()
        run([sys.executable, "-m", "venv", str(VENV)], "python -m venv", lock)
    # An extra brings the plain requirements with it.
    installed = {extra, ""}
    for name in installed:
        stamp_of(name).unlink(missing_ok=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--progress-bar=off"]
    run([*pip, "--disable-pip-version-check", *lines], "pip install", lock)
    UNFINISHED.unlink(missing_ok=True)
    for name in installed:
        partial = VENV / ".installed-partial"
        partial.write_text(key_of(requirements(name)))
        partial.replace(stamp_of(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", default="")
    extra = parser.parse_args().extra
    if is_ready(extra):
        return
    # The script itself is the lock: it is there before .venv is, and the
    # system lets go of it when the holder ends, however it ends.
    with open(__file__, "rb+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another set-up of .venv", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready(extra):
            install(extra, lock)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        fail(f"{error.strerror}: {error.filename or VENV}.")
