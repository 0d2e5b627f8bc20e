#!/bin/sh
# Builds the Python package's wheels, and tests them, each Python in a virtual environment of its own, with pinned
# versions (python/requirements.txt), below HAUL_VENVS_DIR (~/.cache/haul/python).
# Usage: scripts/python.sh wheel DIRECTORY [PYTHON...]   wheels for these interpreters, repaired and checked
#        scripts/python.sh test DIRECTORY [PYTHON...]    the same, then install each and run python/tests
#        scripts/python.sh nanobind PYTHON               print where nanobind's CMake files are, for that interpreter
# PYTHON: an interpreter's name or path (default: python3, and the newest from 3.12 on that is here, whose wheel serves all
# later ones). Exit status: 2 wrong usage, 3 no Python that could be used.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
venvs=${HAUL_VENVS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/haul/python}

give_up() {
  echo "haul: $1" >&2
  exit 3
}

usage() {
  echo usage: >&2
  sed -n '4,6s/^# Usage: *\|^#  *//p' "$0" >&2
  exit 2
}
[ $# -ge 2 ] || usage
action=$1 directory=$2
shift 2
case $action in wheel | test | nanobind) ;; *) usage ;; esac

. "$here/scripts/venv.sh"

find_pythons() {
  find_python || true
  for version in 3.15 3.14 3.13 3.12; do
    if command -v pyenv > /dev/null && found=$(pyenv prefix "$version" 2> /dev/null); then
      echo "$found/bin/python3"
      return
    elif "python$version" -c '' 2> /dev/null; then
      echo "python$version"
      return
    fi
  done
}

can_build() {
  "$1" -c 'import os, sysconfig, venv; assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' \
    2> /dev/null
}

# Prints the environment's python; makes it where it is not there, or has other versions.
environment_of() {
  where=$venvs/$("$1" -c 'import sys, sysconfig; print(sysconfig.get_config_var("SOABI"), *sys.version_info[:3], sep="-")')
  requirements=$here/python/requirements.txt
  if ! cmp -s "$requirements" "$where/haul-stamp"; then
    if [ "${HAUL_NO_INSTALL:-}" = 1 ]; then
      give_up "the packages for Python are missing; unset HAUL_NO_INSTALL to have them installed into $where"
    fi
    mkdir -p "$venvs" 2> /dev/null && [ -w "$venvs" ] ||
      give_up "cannot write to $venvs; set HAUL_VENVS_DIR to a directory that you can write to"
    make_venv "$1" "$where" "nanobind, numpy and others" -r "$requirements"
    cp "$requirements" "$where/haul-stamp"
  fi
  echo "$where/bin/python"
}

build_wheel() {
  tag=$("$1" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
  raw=$directory/$tag
  rm -rf "$raw"
  mkdir -p "$raw"
  (cd "$here" && "$1" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps \
    --config-settings=build-dir="$directory/build-$tag" -w "$raw" . > "$raw/log" 2>&1) || { tail -40 "$raw/log" >&2; exit 1; }
  # It names the libc that is needed. haul's libraries lie in the wheel, and keep their names.
  PATH=$(dirname "$1"):$PATH "$1" -m auditwheel repair --exclude 'libhaul*' -w "$directory" "$raw"/haul-*.whl > "$raw/log" 2>&1 ||
    { tail -20 "$raw/log" >&2; exit 1; }
  wheel=$(sed -n 's/^.*Fixed-up wheel written to //p' "$raw/log" | tail -1)
  [ -n "$wheel" ] || { cat "$raw/log" >&2; exit 1; }
  "$1" "$here/python/check_wheel.py" "$wheel"
}

test_wheel() {
  "$1" -m pip install -q --disable-pip-version-check --force-reinstall --no-deps "$wheel"
  (cd "$here/python/tests" && "$1" -m pytest -q -p no:cacheprovider ${PYTEST_ARGS:-})
}

if [ "$action" = nanobind ]; then
  can_build "$directory" || give_up "$directory has no headers or no venv; install python3-dev and python3-venv"
  python=$(environment_of "$directory") || exit $?
  exec "$python" -m nanobind --cmake_dir
fi

mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
[ $# -gt 0 ] || set -- $(find_pythons)
done_any=''
for interpreter in "$@"; do
  if ! can_build "$interpreter"; then
    echo "haul: left out $interpreter: it has no headers or no venv; install python3-dev and python3-venv" >&2
    continue
  fi
  python=$(environment_of "$interpreter") || exit $?
  build_wheel "$python"
  [ "$action" = wheel ] || test_wheel "$python"
  done_any=1
done
[ -n "$done_any" ] || give_up "there is no Python from 3.9 on that a package could be built for; install python3-dev and python3-venv"
