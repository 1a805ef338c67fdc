"""Installs what this checkout needs into its environment, if it is not there.

    .venv/bin/python scripts/_environment.py [EXTRA]

Called by scripts/train and scripts/test; uses the standard library only. A
stamp in .venv holds the requirements that are installed. It is written last,
so the next call takes up what was interrupted. Ends with 6 if pip fails.
"""

import pathlib
import subprocess
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent
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


def main(extra=None):
    stamp, wanted = TOP / ".venv" / ".installed", requirements(extra)
    kept = stamp.read_text().splitlines() if stamp.exists() else []
    if set(wanted) <= set(kept):
        return 0
    pip = [sys.executable, "-m", "pip", "install", "--progress-bar=off"]
    command = [*pip, "--disable-pip-version-check", *wanted]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        print(
            "alim_keras set-up: error: pip install failed, see above. Mend "
            "that (network, disk space) and run the same command again.",
            file=sys.stderr,
        )
        return LACKS
    stamp.write_text("\n".join({*kept, *wanted}))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
