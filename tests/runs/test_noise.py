"""The noise rate that a run is told: flags, files, resume."""

import json

import pytest
from comparing import assert_same_run
from comparing import metrics
from comparing import results

from alim_keras import callbacks
from alim_keras import noise_rate
from alim_keras.cli import train_flags
from alim_keras.data import CandidateSets
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.runs import cross_fit
from alim_keras.runs import loading
from alim_keras.runs import noise
from alim_keras.runs.folder import RunFolder

# As tests/runs/conftest.py.
SMOKE = (
    "--preset=smoke --train_size=96 --batch_size=32 --progress=none "
    "--holdout=0.1 --seed=3"
).split()
FLAGS = ("--epochs=3", "--warmup_epochs=1")


class _Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def run_json(folder):
    return json.loads((folder / "run.json").read_text())


@pytest.fixture(scope="module")
def by_cv(run_train, tmp_path_factory):
    """An uninterrupted run with cv's estimate."""
    folder = tmp_path_factory.mktemp("noise") / "cv"
    assert run_train(folder, *FLAGS, "--noise_rate=auto") == 0
    return folder


def cut_off(monkeypatch, after):
    """Ends the process as epoch `after` ends, before it is saved."""
    original = callbacks.RunCheckpoint.on_epoch_end

    def on_epoch_end(self, epoch, logs=None):
        if epoch == after:
            raise _Killed
        original(self, epoch, logs)

    monkeypatch.setattr(callbacks.RunCheckpoint, "on_epoch_end", on_epoch_end)


def test_auto_with_few_held_out_takes_cv_once(
    by_cv, run_train, tmp_path, monkeypatch, capsys
):
    """A run cut off goes on with the stored estimate, and ends the same."""
    kept = json.loads((by_cv / "noise_rate.json").read_text())
    value = kept["estimate"]["value"]
    assert kept["estimate"]["method"] == "cv"
    found = results(by_cv)
    assert found["noise_rate"] == value
    assert found["noise_rate_estimate"] == kept["estimate"]
    assert kept["realised"] == found["realised_noise"]
    assert run_json(by_cv)["noise_rate"] == kept["estimate"]
    logged = [float(row["noise_rate"]) for row in metrics(by_cv)]
    assert logged == pytest.approx([value] * 3, abs=1e-6)

    folder = tmp_path / "cut"
    with monkeypatch.context() as patch:
        cut_off(patch, 1)
        with pytest.raises(_Killed):
            run_train(folder, *FLAGS, "--noise_rate=auto")
    out = capsys.readouterr().out
    assert "--noise_rate=auto takes cv: 10 held-out sets are too few" in out
    (line,) = [line for line in out.splitlines() if "95 % interval" in line]
    assert line.startswith(f"Noise rate {value:.3f} (95 % interval")
    assert " by cv: " in line and "Realised: 0.333" in line

    monkeypatch.setattr(cross_fit.CrossFit, "__call__", None)
    assert run_train(folder, *FLAGS, "--noise_rate=auto") == 0
    assert f"Noise rate {value:.3f}" in capsys.readouterr().out
    assert_same_run(by_cv, folder)


def prepared(folder, *flags):
    """What a run tells ALIM, without the run."""
    settings = train_flags.COMMAND.parse([*SMOKE, *FLAGS, *flags])
    training = loading.training_data(settings)
    folder = RunFolder(folder)
    told = noise.prepare(settings, folder, training)
    return told, noise.final(settings, folder, training)


def test_cv_of_another_wish_is_not_taken(tmp_path, monkeypatch):
    """Killed before the first epoch, the folder may begin another run."""
    asked = []

    def cv(fit_predict, candidates, seed, groups):
        asked.append(seed)
        # One for each that is trained on; digits has no twins.
        assert len(set(groups.tolist())) == len(groups) == 86
        assert candidates.shape == (86, 10)
        return noise_rate.Estimate(seed / 10, 0.0, 1.0, "cv", "it was told so.")

    monkeypatch.setattr(noise_rate, "cv", cv)
    for seed in (3, 3, 4, 4):
        told, final = prepared(tmp_path, "--noise_rate=cv", f"--seed={seed}")
        assert told == final.value == seed / 10
    assert asked == [3, 4]
    # Other candidate sets, under the same settings.
    sets = tmp_path / "sets.npz"
    given = ("--noise_rate=cv", f"--candidates_file={sets}")
    for level in (0.1, 0.2):
        settings = train_flags.COMMAND.parse([*SMOKE, f"--noise_level={level}"])
        loading.training_data(settings).candidates.save(sets)
        prepared(tmp_path, *given)
    assert asked == [3, 4, 3, 3]


@pytest.mark.parametrize(
    "name", ["em", pytest.param("gmm", marks=pytest.mark.slow)]
)
def test_a_run_with_held_out_estimates_ends_the_same_when_cut_off(
    name, run_train, tmp_path, monkeypatch
):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    flags = (*FLAGS, f"--noise_rate={name}", "--holdout=0.3")
    assert run_train(whole, *flags) == 0
    with monkeypatch.context() as patch:
        cut_off(patch, 1)
        with pytest.raises(_Killed):
            run_train(cut, *flags)
    assert run_train(cut, *flags) == 0
    assert_same_run(whole, cut)
    files = [
        json.loads((f / "noise_rate.json").read_text()) for f in (whole, cut)
    ]
    assert files[0]["estimate"] == files[1]["estimate"]
    found = results(whole)
    assert found["noise_rate"] == files[0]["estimate"]["value"]
    last = float(metrics(whole)[-1]["noise_rate"])
    assert last == pytest.approx(found["noise_rate"], abs=1e-6)
    assert run_json(whole)["noise_rate"] is None


def test_annotated_and_the_default_for_sets_of_a_file(
    tmp_path, monkeypatch, capsys
):
    # A file of sets without a word about how noisy they are.
    path = tmp_path / "sets.npz"
    found = loading.training_data(train_flags.COMMAND.parse(SMOKE)).candidates
    CandidateSets(found.ids, found.sets, found.class_names).save(path)
    given = f"--candidates_file={path}"
    labels = tmp_path / "true.csv"
    # Two inside their sets and one outside: 1 of 3.
    rows = ["id,label"]
    for row, inside in ((0, True), (1, True), (2, False)):
        name = found.class_names[int((found.sets[row] == inside).argmax())]
        rows.append(f"{found.ids[row]},{name}")
    labels.write_text("\n".join(rows) + "\n")
    flag = f"--noise_rate=annotated:{labels}"
    told, final = prepared(tmp_path / "annotated", given, flag)
    assert told == final.value == pytest.approx(1 / 3)
    assert final.details["labels"] == 3
    out = capsys.readouterr().out
    assert "Noise rate 0.333" in out and "by annotated: 1 of 3" in out
    assert "Realised: 0.333 (uses true labels)" in out

    # A file that grew counts, unless the run has begun.
    labels.write_text("\n".join(rows[:3]) + "\n")
    assert prepared(tmp_path / "annotated", given, flag)[0] == 0.0
    labels.write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(callbacks.RunCheckpoint, "exists", lambda self: True)
    assert prepared(tmp_path / "annotated", given, flag)[0] == 0.0
    monkeypatch.undo()
    labels.write_text("id,label\nnobody,0\n")
    with pytest.raises(DataError, match=r"'nobody' \(line 2\)"):
        prepared(tmp_path / "bad", given, flag)

    # Told nothing, it estimates; with a fixed lambda it need not.
    estimate = noise_rate.Estimate(0.125, 0.1, 0.2, "cv", "it was told so.")
    monkeypatch.setattr(noise_rate, "cv", lambda *_, **options: estimate)
    assert prepared(tmp_path / "auto", given)[0] == 0.125
    assert "takes cv" in capsys.readouterr().out
    assert prepared(tmp_path / "fixed", given, "--lam=0.5") == (None, None)
    with pytest.raises(ConfigError, match="--noise_rate=auto"):
        prepared(tmp_path / "oracle", given, "--noise_rate=oracle")
    # Simulated sets are known, and a number is a number.
    assert prepared(tmp_path / "known") == (0.3, 0.3)
    assert prepared(tmp_path / "number", "--noise_rate=0.25") == (0.25, 0.25)


def test_auto_with_many_held_out_takes_em(tmp_path, monkeypatch):
    monkeypatch.setattr(noise_rate.auto, "ENOUGH", 10)
    told, final = prepared(tmp_path, "--noise_rate=auto")
    assert final is None
    assert told.estimator.estimator is noise_rate.em


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--noise_rate=em", "--holdout=0"], ["--holdout=0.1"]),
        (["--noise_rate=1.5"], ["[0, 1]", "annotated[:FILE]"]),
        (["--noise_rate=autos"], ["Did you mean auto"]),
    ],
)
def test_what_cannot_be_estimated_is_said_in_one_line(
    flags, words, run_train, tmp_path, lines
):
    assert run_train(tmp_path / "run", *FLAGS, *flags) == 2
    (line,) = lines()
    for word in words:
        assert word in line
