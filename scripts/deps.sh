#!/bin/sh
# Installs the Debian packages of one group (scripts/packages.txt) that are missing, and nothing else.
# Usage: scripts/deps.sh run|test|ci|all
# HAUL_NO_INSTALL=1: name the missing packages and exit 2 instead.
set -eu

group=${1:-}
case $group in
  run) groups='run' ;;
  test) groups='run test' ;;
  ci) groups='run test ci' ;;
  all) groups='run test ci all' ;;
  *) echo "usage: scripts/deps.sh run|test|ci|all" >&2; exit 2 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
wanted=$(while read -r name its_group _; do
  case " $groups " in *" ${its_group:-none} "*) echo "$name" ;; esac
done < "$here/packages.txt")
wanted=$(echo $wanted)

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "haul: this is not Debian, so install by hand what these Debian packages hold: $wanted" >&2
  exit 0
fi

missing=''
for name in $wanted; do
  dpkg-query -W -f '${db:Status-Status}\n' "$name" 2> /dev/null | grep -qx installed ||
    missing="$missing $name"
done
missing=${missing# }
[ -n "$missing" ] || exit 0

if [ "${HAUL_NO_INSTALL:-}" = 1 ]; then
  echo "haul: missing packages: $missing (install them: apt-get install --no-install-recommends $missing)" >&2
  exit 2
fi

as_root=''
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "haul: cannot install packages without root or sudo; ask an administrator to run: apt-get install --no-install-recommends $missing" >&2
    exit 1
  fi
  as_root=sudo
fi

echo "haul: installing $missing" >&2
export DEBIAN_FRONTEND=noninteractive
# Lists may be missing or old: refresh them once, only now that something is wanted.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
  echo "haul: apt-get update failed; trying with the package lists that are here" >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o Dpkg::Use-Pty=0 $missing < /dev/null || {
  echo "haul: apt-get could not install: $missing; see its message above" >&2
  exit 1
}
