#!/bin/sh
# Builds the site into BUILD/site and checks it: docs/, and pages made of the headers and of the command in BUILD.
# MkDocs and what it needs (manual/site/requirements.txt) lie in a Python virtual environment of their own, below
# HAUL_SITE_VENV (~/.cache/haul/site-venv). Once that is there, no network is needed.
# Usage: scripts/site.sh BUILD
# Exit status: 1 the site has an error, 2 wrong usage, 3 MkDocs is not there and cannot be had.
set -eu

[ $# = 1 ] || { echo "usage: scripts/site.sh BUILD" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
build=$1
venv=${HAUL_SITE_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/haul/site-venv}
requirements=$root/manual/site/requirements.txt

give_up() {
  echo "haul: $1" >&2
  exit 3
}

# Changes with what is installed and with how; an environment with another stamp is made anew.
stamp() { echo "haul site 1: $(cksum < "$requirements")"; }
is_ready() { [ "$(cat "$venv/haul-stamp" 2> /dev/null)" = "$(stamp)" ]; }

. "$(dirname "$0")/venv.sh"

install_mkdocs() {
  python=$(find_python) || give_up "the site cannot be built without Python; install python3-venv"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    give_up "the site needs Python 3.11 or newer, and $python is older; build it on a newer distribution"
  make_venv "$python" "$venv" MkDocs --require-hashes -r "$requirements"
  stamp > "$venv/haul-stamp"
}

install_missing() {
  ! is_ready || return 0
  if [ "${HAUL_NO_INSTALL:-}" = 1 ]; then
    give_up "MkDocs is missing; unset HAUL_NO_INSTALL to have it installed into $venv"
  fi
  mkdir -p "$(dirname "$venv")" 2> /dev/null && [ -w "$(dirname "$venv")" ] ||
    give_up "cannot write to $(dirname "$venv"); set HAUL_SITE_VENV to a directory that you can make"
  # One at a time; whoever waited finds the work done. The lock goes with this process.
  exec 9> "$venv.lock"
  flock 9
  is_ready || install_mkdocs 9>&-
}

[ -x "$build/bin/haul" ] || { echo "haul: there is no command haul in $build; run make site, which builds it" >&2; exit 1; }
install_missing
mkdir -p "$build/site"
site=$(cd "$build/site" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bin/haul" man --markdown --out "$work/commands" > /dev/null
# (--quiet would take the warnings away that --strict counts. MkDocs's theme prints what its authors plan.)
HAUL_SITE_COMMANDS=$work/commands PYTHONDONTWRITEBYTECODE=1 NO_MKDOCS_2_WARNING=1 \
  "$venv/bin/mkdocs" build --strict --config-file "$root/manual/site/mkdocs.yml" --site-dir "$site" > "$work/log" 2>&1 ||
  { grep -v '^INFO' "$work/log" >&2; exit 1; }
"$venv/bin/python" "$root/manual/site/check_site.py" "$site"
echo "haul: the site begins at $site/index.html"
