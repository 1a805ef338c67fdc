"""The exit code of every kind of failure, and its one line."""

import numpy as np
import pytest
from golden import harness
from golden.conftest import SMOKE

COMMANDS = "train check audit review predict export compare benchmark".split()
# Name, code, words of the line, command and flags. RUN is a finished run.
CALLS = [
    *[(f"help of {one}", 0, one, f"{one} --help") for one in COMMANDS],
    ("unknown flag", 2, "--epoch --epochs", "train --epoch=3"),
    ("no such choice", 2, "--norm onehot scale", "train --norm=twohot"),
    ("nan", 2, "--ambiguity nan", "train --ambiguity=nan"),
    ("infinite", 2, "--learning_rate inf", "train --learning_rate=inf"),
    ("out of range", 2, "--noise_level 1.5", "train --noise_level=1.5"),
    ("no number", 2, "--batch_size x", "train --batch_size=x"),
    ("no epoch", 2, "--epochs 0", "train --epochs=0"),
    ("lambda of 2", 2, "--lam 2", "train --lam=2"),
    ("stray word", 2, "cifar100", "train cifar100"),
    ("unknown preset", 2, "cifar11 cifar10", "train --preset=cifar11"),
    ("no flagfile", 2, "no.flags", "train --flagfile=no.flags"),
    ("unknown backend", 2, "nosuch jax", "train --backend=nosuch"),
    ("unknown method", 2, "nosuch pico", "train --method=nosuch"),
    ("unknown network", 2, "nosuch", "train --network=nosuch"),
    ("unknown data", 2, "nosuch", "check --dataset=nosuch --nodownload"),
    ("no run given", 2, "RUN", "audit"),
    ("large batch", 2, "--batch_size 4000", "train SMOKE --batch_size=4000"),
    ("no table", 3, "no.csv", "check --dataset=no.csv"),
    ("no sets", 3, "no.npz", "check --candidates_file=no.npz"),
    ("empty sets", 3, "0.npz empty", "check --candidates_file=0.npz"),
    ("data not here", 3, "cifar10", "train --dataset=cifar10 NONE"),
    ("nothing to predict", 3, "no.png", "predict RUN no.png"),
    ("unread", 2, "--test_labels", "check --candidates_file=p --test_labels=t"),
    ("sets by place", 3, "p.npy", "check --candidates_file=p.npy"),
    ("audit of no run", 5, "no_run", "audit no_run"),
    ("prediction of no run", 5, "no_run", "predict no_run p"),
    ("export of no run", 5, "no_run", "export no_run"),
    ("another seed", 5, "--seed=2 --run_dir", "train DONE --seed=2"),
    ("another norm", 5, "--norm=onehot", "train DONE --norm=onehot"),
    ("fewer epochs", 5, "--epochs=5", "train DONE --epochs=5"),
    ("non-finite", 4, "epoch 1", "train SMOKE HOT"),
    ("finished", 0, "", "train DONE"),
]


@pytest.fixture(scope="module")
def done(smoke, tmp_path_factory):
    """Returns code, stdout and stderr by name, and the run's stamps."""
    run, _ = smoke
    home = tmp_path_factory.mktemp("codes")
    (home / "0.npz").write_text("")
    np.save(home / "p.npy", np.eye(10, dtype=bool)[np.arange(1797) % 10])
    words = {
        "RUN": [str(run)],
        "SMOKE": [*SMOKE, "--run_dir=new"],
        "DONE": [*SMOKE, f"--run_dir={run}"],
        "NONE": ["--nodownload", f"--data_dir={home}"],
        "HOT": ["--learning_rate=1e25", "--lr_schedule=constant"],
    }
    before = _stamps(run)
    calls = [
        [part for word in line.split() for part in words.get(word, [word])]
        for _, _, _, line in CALLS
    ]
    found = harness.run_many(calls, home)
    names = [name for name, *_ in CALLS]
    return dict(zip(names, found)), before, _stamps(run), home


def _stamps(run):
    return {
        path.name: path.stat().st_mtime_ns
        for path in run.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("name, code, words, line", CALLS)
def test_exit_code(done, name, code, words, line):
    found, out, err = done[0][name]
    assert found == code, err
    if code == 0:
        assert out.strip() and not err
        assert not words or out.startswith(f"python -m alim_keras.{words}")
        return
    (message,) = err.splitlines()
    assert ": error: " in message
    for word in words.split():
        assert word in message


def test_what_a_finished_run_and_one_that_blew_up_leave(done):
    found, before, after, home = done
    assert "nothing to do" in found["finished"][1]
    assert before == after
    assert not (home / "new" / "results.json").exists()
    assert not (home / "new" / "checkpoints" / "state.json").exists()


def test_a_package_that_is_missing_ends_with_6(tmp_path):
    stub = tmp_path / "without" / "jax"
    stub.mkdir(parents=True)
    text = 'raise ModuleNotFoundError("No module named jax", name="jax")\n'
    (stub / "__init__.py").write_text(text)
    flags = [*SMOKE, "--backend=jax", "--run_dir=run"]
    where = {"path": [stub.parent], "cwd": tmp_path}
    code, _, err = harness.run("train", *flags, **where)
    assert code == 6
    (line,) = err.splitlines()
    assert "jax" in line and "pip install" in line
