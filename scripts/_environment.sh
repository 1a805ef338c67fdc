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
  if [ -e "$top/.venv" ] && ! [ -e "$top/.venv/.unfinished" ]; then
    supports "$python" sys || set_up_fails \
      "$top/.venv holds no Python 3.11 to 3.13 that runs." \
      "Remove that folder and run again."
    base=$python
  else
    for candidate in python3 python3.13 python3.12 python3.11 python; do
      if supports "$candidate" ensurepip,venv; then
        base=$candidate
        break
      fi
    done
    [ -n "$base" ] || set_up_fails \
      "found no Python 3.11 to 3.13 with the module venv." \
      "Install one (on Debian: apt-get install python3-venv) and run again."
  fi
  "$base" "$top/scripts/_environment.py" "--extra=${1-}" </dev/null || exit $?
}
