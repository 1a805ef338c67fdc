# Sourced by scripts/train and scripts/test: defines ready_environment, which
# leaves the environment .venv of the checkout ready and sets $python to its
# interpreter.

top=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
python=$top/.venv/bin/python

# Whether the Python "$1" is of a version that this project supports and has
# the modules "$2". A command may exist and still not run (pyenv's shims).
supports() {
  "$1" -c "
import sys
import $2
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
" >/dev/null 2>&1
}

set_up_fails() {
  echo "alim_keras set-up: error: $*" >&2
  exit 6
}

ready_environment() { # [name of an extra of pyproject.toml]
  local base='' candidate
  if ! supports "$python" pip; then
    for candidate in python3 python3.13 python3.12 python3.11 python; do
      if supports "$candidate" ensurepip,venv; then
        base=$candidate
        break
      fi
    done
    [ -n "$base" ] || set_up_fails \
      "found no Python 3.11 to 3.13 with the module venv." \
      "Install one (on Debian: apt-get install python3-venv) and run again."
    echo "Making the environment $top/.venv (once; minutes and 3 GB)" >&2
    "$base" -m venv "$top/.venv" >&2 || set_up_fails \
      "python -m venv failed, see above. Remove that folder and run again."
  fi
  "$python" "$top/scripts/_environment.py" "$@" </dev/null || exit $?
}
