import os
import random
import signal
import subprocess
import time

import pytest
from comparing import assert_same_run
from comparing import checkpoint
from comparing import metrics

from alim_keras import callbacks


class _Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def _start(spawn, folder, *flags):
    command = [spawn.python, "-m", "alim_keras.train", *spawn.smoke]
    return subprocess.Popen(
        [*command, f"--run_dir={folder}", *flags],
        env={**os.environ, **spawn.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite in the background hands an ignored SIGINT down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize("where", ["MetricsLog", "RunCheckpoint", "Progress"])
def test_a_run_cut_off_in_any_callback_ends_like_an_uninterrupted_one(
    where, run_train, finished_run, tmp_path, monkeypatch
):
    """The three moments: before, within and after the epoch's writing."""
    cut = getattr(callbacks, where)
    original = cut.on_epoch_end

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1 and where == "RunCheckpoint":
            # The weights are written, the state that names them is not.
            monkeypatch.setattr(
                "alim_keras.callbacks.run_checkpoint.write_atomically",
                _raise_killed,
            )
        original(self, epoch, logs)
        if epoch == 1:
            raise _Killed

    flags = ("--epochs=3", "--select=aa")
    with monkeypatch.context():
        monkeypatch.setattr(cut, "on_epoch_end", on_epoch_end)
        with pytest.raises(_Killed):
            run_train(tmp_path / "cut", *flags)
        monkeypatch.undo()
    assert run_train(tmp_path / "cut", *flags) == 0
    assert_same_run(finished_run, tmp_path / "cut")


def _raise_killed(*_):
    raise _Killed


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_nothing(spawn, tmp_path):
    flags = ("--epochs=150", "--select=cr", "--norm=scale", "--progress=line")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = _start(spawn, whole, *flags)
    assert process.communicate()[1] == "" and process.returncode == 0

    draw = random.Random(5)
    kills = 0
    while kills < 10:
        process = _start(spawn, killed, *flags)
        # While it traces the step, or after one to three epochs more and
        # somewhere in the next: told by lines, for machines differ in speed.
        epochs = draw.randrange(4)
        for line in process.stdout:
            started = line.startswith("Run folder")
            if epochs == 0 and started:
                break
            if line.startswith("epoch"):
                epochs -= 1
                if epochs == 0:
                    break
        time.sleep(draw.uniform(0.0, 3.0 if started else 0.5))
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        kills += 1
    done = len(metrics(killed)) if (killed / "metrics.csv").exists() else 0
    assert 0 < done < 150
    process = _start(spawn, killed, *flags)
    assert process.communicate()[1] == "" and process.returncode == 0
    assert len(metrics(killed)) == 150
    assert_same_run(whole, killed)


def test_interrupt_ends_with_130_and_the_same_command_goes_on(spawn, tmp_path):
    folder = tmp_path / "run"
    flags = ("--epochs=200", "--progress=line")
    process = _start(spawn, folder, *flags)
    for line in process.stdout:
        if line.startswith("epoch 2/"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(err.strip().splitlines()) == 1
    assert "same command" in err
    assert len(checkpoint(folder)) > 40
    # The line is printed as the second epoch ends, before it is saved.
    assert 1 <= len(metrics(folder)) < 200
    assert not (folder / "results.json").exists()


def test_a_finished_run_does_nothing(run_train, finished_run, capsys):
    before = checkpoint(finished_run).keys(), metrics(finished_run)
    stamp = (finished_run / "results.json").stat().st_mtime_ns
    assert run_train(finished_run, "--epochs=3", "--select=aa") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert (checkpoint(finished_run).keys(), metrics(finished_run)) == before
    assert (finished_run / "results.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    "flag", ["--epochs=4", "--seed=4", "--norm=scale", "--ambiguity=0.2"]
)
def test_other_settings_on_the_same_folder_are_refused(
    flag, run_train, finished_run, lines
):
    code = run_train(finished_run, "--epochs=3", "--select=aa", flag)
    (line,) = lines()
    assert code == 5
    assert flag in line and "--run_dir" in line


def test_other_candidate_sets_are_refused(run_train, tmp_path, lines):
    folder = tmp_path / "run"
    sets = tmp_path / "sets.npz"
    other = tmp_path / "other.npz"
    flags = ("--epochs=1", f"--candidates_file={sets}", "--noise_rate=0.3")
    save = ("--epochs=1", f"--save_candidates={sets}")
    assert run_train(tmp_path / "first", *save) == 0
    assert run_train(folder, *flags) == 0
    (folder / "results.json").unlink()
    sets.rename(other)
    save = ("--epochs=1", "--ambiguity=0.2", f"--save_candidates={sets}")
    assert run_train(tmp_path / "second", *save) == 0
    lines()
    assert run_train(folder, *flags) == 5
    (line,) = lines()
    assert "candidate sets" in line and str(folder) in line


def test_a_second_process_on_the_folder_is_refused(
    run_train, finished_run, lines
):
    from alim_keras.runs.folder import RunFolder

    with RunFolder(finished_run).lock():
        assert run_train(finished_run, "--epochs=3", "--select=aa") == 5
    (line,) = lines()
    assert "Another process" in line


def test_a_broken_state_file_is_named(run_train, tmp_path, lines):
    folder = tmp_path / "run"
    assert run_train(folder, "--epochs=1") == 0
    (folder / "results.json").unlink()
    (folder / "checkpoints" / "state.json").write_text("{")
    assert run_train(folder, "--epochs=1") == 5
    (line,) = lines()
    assert "state.json" in line
