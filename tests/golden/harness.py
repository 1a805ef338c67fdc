"""The only adapter between the golden tests and the package.

The tests see commands, exit codes, files and the sets read from a table.
`own_labels` has to follow when the package moves, and nothing else.
"""

import contextlib
import io
import json
import os
import pathlib
import runpy
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# A check of a table of three pictures takes these beside the table's own.
SMALL = ("--batch_size=1", "--width=8", "--holdout=0")


def start(*arguments, path=(), **options):
    """Starts Python; the package is on its path, after the folders `path`."""
    places = [*map(str, path), str(REPOSITORY)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    env |= {"TF_CPP_MIN_LOG_LEVEL": "3", "MPLBACKEND": "Agg"}
    env.pop("KERAS_BACKEND", None)
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        **options,
    )


def run(command, *argv, **options):
    """Runs a command in a process; returns its code, stdout and stderr."""
    process = start("-m", f"alim_keras.{command}", *argv, **options)
    out, err = process.communicate()
    return process.returncode, out, err


def run_many(calls, cwd):
    """Runs many commands, one after the other, in one process.

    `calls` is a list of lists, the command and its arguments. Returns a list of
    (exit code, stdout, stderr).
    """
    return [tuple(one) for one in _work({"calls": calls}, cwd)]


def read_tables(tables, cwd, blocked=()):
    """Checks many tables in one process, and reads the sound ones.

    `tables` is a list of lists, the path of the table and its flags; `blocked`
    are names of packages that cannot be imported there. Returns a list of
    dicts: `code`, `out` and `err` of the check; if the code is 0 also
    `class_names`, `sets` (id to names), `known` (id to name) and `test` (how
    many items test).
    """
    return _work({"tables": tables}, cwd, blocked)


def _work(wish, cwd, blocked=()):
    process = start(__file__, cwd=cwd, stdin=subprocess.PIPE)
    wish["blocked"] = list(blocked)
    out, err = process.communicate(json.dumps(wish, default=str))
    if process.returncode:
        raise RuntimeError(f"The worker ended with {process.returncode}: {err}")
    return json.loads(out.splitlines()[-1])


def _call(command, *argv):
    """Runs a command as `python -m` would, in this process."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = [command, *argv]
    # Another command may have imported it; runpy would warn.
    sys.modules.pop(f"alim_keras.{command}", None)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module(f"alim_keras.{command}", run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


def own_labels(path, flags):
    """Reads a table as a training would."""
    from alim_keras import train
    from alim_keras.app import load

    line = train.COMMAND.parse([f"--dataset={path}", *flags])
    found = load.table_set(line.config)
    names = list(found.class_names)
    ids = [str(one) for one in found.ids]
    known = [-1] * len(ids) if found.known is None else found.known
    return {
        "class_names": names,
        "sets": {
            one: sorted(n for n, inside in zip(names, row) if inside)
            for one, row in zip(ids, found.sets.dense(), strict=True)
        },
        "known": {
            one: names[k] for one, k in zip(ids, known, strict=True) if k >= 0
        },
        "test": len(found.test_images),
    }


def _table(path, *flags):
    code, out, err = _call("check", f"--dataset={path}", *flags, *SMALL)
    found = {"code": code, "out": out, "err": err}
    if code == 0:
        with contextlib.redirect_stderr(io.StringIO()):
            found |= own_labels(path, flags)
    return found


def _main():
    wish = json.load(sys.stdin)
    for name in wish["blocked"]:
        sys.modules[name] = None
    done = [_call(*one) for one in wish.get("calls", ())]
    done += [_table(*one) for one in wish.get("tables", ())]
    print(json.dumps(done))


if __name__ == "__main__":
    _main()
