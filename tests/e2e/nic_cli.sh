#!/usr/bin/env bash
# haul nic: makes, shows and removes looped ports; its refusals say what to do.
set -euo pipefail
[ -n "${E2E_HAUL:-}" ] || { echo "skipped: this build has no command haul"; exit 77; }
haul=$E2E_HAUL
name=haul-nic-cli-$$
fail() { echo "FAIL: $*" >&2; exit 1; }
refused() {  # STATUS PATTERN ARGUMENTS...
  local status=$1 pattern=$2 said got=0
  shift 2
  said=$("$haul" nic "$@" 2>&1) || got=$?
  [ "$got" = "$status" ] || fail "haul nic $* ended with $got: $said"
  grep -qE "$pattern" <<< "$said" || fail "haul nic $* said: $said"
}

refused 1 "haul nic setup" status --netns "$name"
refused 2 "no namespace's name" status --netns ../x
refused 2 "." setup --pairs 0
refused 2 "." dance
said=$("$haul" nic --help)
grep -q teardown <<< "$said" || fail "no help"
said=$("$haul" nic teardown --netns "$name")
grep -q "nothing to remove" <<< "$said" || fail "teardown of nothing: $said"

if [ "$(id -u)" != 0 ]; then
  refused 1 "root" setup --netns "$name"
  echo "skipped: the rest takes root"
  exit 77
fi
command -v ip > /dev/null || { echo "skipped: ip is missing; install iproute2"; exit 77; }

trap '"$haul" nic teardown --netns "$name" > /dev/null' EXIT
said=$("$haul" nic setup --netns "$name" --pairs 2)
grep -q "2 pairs" <<< "$said" || fail "setup: $said"
refused 1 "teardown" setup --netns "$name"
said=$("$haul" nic status --netns "$name")
grep -q "^2 pairs" <<< "$said" || fail "status: $said"
if command -v setpriv > /dev/null; then
  said=$(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
    "$haul" nic status --netns "$name" 2>&1) && fail "nobody may use it: $said"
  grep -q "CAP_NET_RAW" <<< "$said" || fail "to nobody it said: $said"
fi
said=$("$haul" nic teardown --netns "$name")
grep -q "removed" <<< "$said" || fail "teardown: $said"
[ ! -e "/run/netns/$name" ] || fail "teardown left the namespace"
