#!/usr/bin/env bash
# The engine nic in a guest on an emulated card whose cable returns to it: devices/nic/guest/run.py says in one line
# what is missing or wrong, and leaves nothing behind. With QEMU and a guest that was made before (`make nic-guest`;
# E2E_NIC_GUEST names another folder) a part of its tests there, too; without, exit 77 after the rest.
set -uo pipefail
command -v python3 > /dev/null || { echo "skipped: python3 is missing; install it"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
guest=${E2E_NIC_GUEST:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/haul/nic-guest}
export TMPDIR=$work/tmp PYTHONDONTWRITEBYTECODE=1
mkdir "$TMPDIR" "$work/empty" "$work/bin"
here=$E2E_SOURCE/devices/nic/guest
shared=$E2E_SOURCE/scripts/guests
python=$(python3 -c 'import sys; print(sys.executable)')
run=("$python" "$here/run.py" --build "$E2E_BUILD")
failures=0
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# refuses STATUS TEXT ARGUMENTS...: of run.py, with $path as PATH.
path=$PATH
refuses() {
  local status=$1 text=$2 got=0
  shift 2
  timeout 120 env PATH="$path" "${run[@]}" "$@" > /dev/null 2> "$work/err" < /dev/null || got=$?
  [ "$got" = "$status" ] || failed "run.py $*: exit status $got instead of $status: $(cat "$work/err")"
  [ "$(wc -l < "$work/err")" = 1 ] || failed "run.py $*: not one line: $(cat "$work/err")"
  grep -qF -- "run.py: $text" "$work/err" || failed "run.py $* says no '$text': $(cat "$work/err")"
  [ -z "$(find "$TMPDIR" -mindepth 1)" ] || failed "run.py $* leaves $(find "$TMPDIR" -mindepth 1)"
}

refuses 2 'unrecognized arguments: --nonsense' --nonsense
refuses 2 "argument --card: invalid choice: 'ne2000'" --card ne2000
refuses 1 "No step's name holds 'nonsense'" --only nonsense
path=$work/empty
refuses 1 'qemu-system-x86_64 is missing; install the package qemu-system-x86.' --quick
path=$PATH

# ---- with what stands for QEMU and for the guest
eval "$(grep '^stamp=' "$here/make_guest.sh")"
if [ -r /usr/share/keyrings/debian-archive-keyring.gpg ]; then
  mkdir "$work/guest"
  echo "$stamp" > "$work/guest/stamp"
  touch "$work/guest/vmlinuz" "$work/guest/initrd"
  for tool in mmdebstrap cpio; do printf '#!/bin/sh\nexit 1\n' > "$work/bin/$tool"; done
  printf '#!/bin/sh\necho "stand-in: cannot run" >&2\nexit 3\n' > "$work/bin/qemu-system-x86_64"
  chmod 755 "$work/bin"/*
  path=$work/bin:$PATH
  if [ -e "$E2E_BUILD/lib/libhaul-nic.so" ]; then
    refuses 1 'QEMU ended with status 3 (stand-in: cannot run)' --quick --guest "$work/guest"
    printf '#!/bin/sh\necho "HAUL: error no network card came up"\nexec sleep 100\n' > "$work/bin/qemu-system-x86_64"
    refuses 1 'The guest gave up: no network card came up.' --quick --guest "$work/guest"
  fi
  refuses 1 "$work/nothing/tests/" --quick --guest "$work/guest" --build "$work/nothing"
  path=$PATH
fi

# ---- for real
reason=
if [ -n "${E2E_SANITIZE:-}" ]; then
  reason='it is too slow with sanitizers'
elif [ ! -e "$E2E_BUILD/lib/libhaul-nic.so" ]; then
  reason='haul was built without the engine nic'
elif ! command -v qemu-system-x86_64 > /dev/null; then
  reason='qemu-system-x86_64 is missing; install qemu-system-x86'
elif [ ! -f "$guest/stamp" ] || [ "$(cat "$guest/stamp")" != "$stamp" ]; then
  reason='no guest was made; run `make nic-guest`'
fi
if [ -n "$reason" ]; then
  [ "$failures" = 0 ] || exit 1
  echo "skipped: $reason"
  exit 77
fi
timeout 280 "${run[@]}" --quick --guest "$guest" < /dev/null || failed "the guest's tests: status $?"
[ -z "$(find "$TMPDIR" -mindepth 1)" ] || failed "run.py leaves $(find "$TMPDIR" -mindepth 1)"
[ "$failures" = 0 ] && echo "all passed"
exit $((failures != 0))
