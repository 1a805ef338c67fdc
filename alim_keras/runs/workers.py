"""What many processes must agree on before they train together."""

import numpy as np

from alim_keras import backend
from alim_keras.errors import CheckpointError
from alim_keras.errors import ConfigError
from alim_keras.errors import DataError
from alim_keras.runs.folder import fingerprint


def check_agreement(settings, folder, candidates):
    """Raises, on every worker, unless all are set to do the same run.

    Args:
        settings: Dict of every flag's value.
        folder: The `RunFolder`; it must lie where all workers see it.
        candidates: The `CandidateSets`.
    """
    mine = (
        int(fingerprint(settings), 16),
        int(candidates.content_hash[:7], 16),
        folder.finished_epochs(),
    )
    all_of_them = backend.gather_processes(list(mine))
    for column, raise_for in enumerate((_settings, _data, _epochs)):
        found = all_of_them[:, column]
        others = np.flatnonzero(found != found[0])
        if len(others):
            raise_for(folder, others[0], found)


def _settings(folder, worker, found):
    del folder, found
    raise ConfigError(
        f"Worker {worker} was started with other settings than worker 0. "
        "Give all workers the same flags and the same version."
    )


def _data(folder, worker, found):
    del folder, found
    raise DataError(
        f"Worker {worker} has other images or candidate sets than worker 0. "
        "Give all workers the same data."
    )


def _epochs(folder, worker, found):
    raise CheckpointError(
        "All workers must see the same --run_dir, on a file system they "
        f"share. Received: {found[0]} finished epochs in {folder.path} for "
        f"worker 0, {found[worker]} for worker {worker}"
    )
