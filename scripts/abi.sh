#!/usr/bin/env bash
# The ABI of a library against its baseline, abi/NAME.abi (libhaul.so.0, libhaul-atomic.so.0).
# Usage: scripts/abi.sh update|check LIBRARY
# `update` writes the baseline: do it when a function was added, and say so in CHANGELOG.md. A change that
# breaks programs needs a new soname instead.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
action=${1:-}
library=${2:-}
if [ -z "$library" ] || [ ! -f "$library" ]; then
  echo "usage: scripts/abi.sh update|check LIBRARY" >&2
  exit 2
fi

baseline=$root/abi/$(basename "$library").abi

write_abi() {
  abidw --headers-dir "$root/include" --drop-private-types --no-corpus-path --no-comp-dir-path \
    --no-show-locs --out-file "$1" "$library"
  # Whose checkout it was is nobody's business.
  sed -i "s#path='[^']*/\(src\|include\|atomic\)/#path='\1/#" "$1"
}

case $action in
  update)
    mkdir -p "$root/abi"
    write_abi "$baseline"
    echo "abi: wrote ${baseline#"$root/"} ($(grep -c '<elf-symbol ' "$baseline") symbols)"
    ;;
  check)
    if [ ! -f "$baseline" ]; then
      echo "abi: there is no ${baseline#"$root/"}; make it: scripts/abi.sh update LIBRARY" >&2
      [ "${CI:-}" = true ] && exit 1
      exit 0
    fi
    current=$(mktemp)
    trap 'rm -f "$current"' EXIT
    write_abi "$current"
    status=0
    abidiff "$baseline" "$current" || status=$?
    if [ $((status & 3)) != 0 ]; then
      echo "abi: abidiff could not compare (exit $status); see its message above" >&2
      exit 1
    elif [ $((status & 8)) != 0 ]; then
      echo "abi: programs built against the baseline would break; undo the change, or raise the soname" >&2
      exit 1
    elif [ "$status" != 0 ]; then
      echo "abi: the ABI grew or changed; if that is wanted: scripts/abi.sh update LIBRARY, and name it in CHANGELOG.md" >&2
      exit 1
    fi
    echo "abi: as the baseline"
    ;;
  *)
    echo "usage: scripts/abi.sh update|check LIBRARY" >&2
    exit 2
    ;;
esac
