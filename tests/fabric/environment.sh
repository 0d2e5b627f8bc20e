#!/usr/bin/env bash
# The smoke part of the conformance program in each surrounding that takes something away: rights,
# system calls, memory, namespaces. Each must work, on the best path that is left.
# environment.sh [NAME...]: these surroundings alone. Exit 77: none of them can be made here.
set -uo pipefail

# Slow is no failure here: with less memory or rights, on a machine that others keep busy.
export HAUL_TEST_PATIENCE_S=${HAUL_TEST_PATIENCE_S:-120}
programs=${E2E_PROGRAMS:?run it by CTest, or set E2E_PROGRAMS to the folder of the test programs}
tests="$programs/haul_fabric_tests"
smoke='Sides/Sides.both_send*:Sides/Sides.many_in_flight*:Sides/Order.sends*:Sides/Order.atomics*'
smoke+=':Remote/Rma.every_form*basic*:Matching.*:Lifecycle.opened_and_closed*'
addresses='Av.the_addresses_of_256_endpoints'
as_root=$([ "$(id -u)" = 0 ] && echo yes || echo no)
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env -u HOME)
ran=0 failed=0

wanted() {
  [ ${#names[@]} = 0 ] && return 0
  local name
  for name in "${names[@]}"; do [ "$name" = "$1" ] && return 0; done
  return 1
}

# surrounding NAME FILTER COMMAND-PREFIX...: runs the filter's tests behind the prefix.
surrounding() {
  local name=$1 filter=$2 output
  shift 2
  wanted "$name" || return 0
  ran=$((ran + 1))
  if output=$("$@" "$tests" --gtest_brief=1 --gtest_color=no --gtest_filter="$filter" 2>&1); then
    if grep -q '^\[  PASSED  \] 0 tests' <<< "$output"; then
      echo "FAILED $name: no test ran"
      failed=$((failed + 1))
    else
      echo "ok     $name"
    fi
  else
    echo "FAILED $name"
    tail -n 30 <<< "$output"
    failed=$((failed + 1))
  fi
}

skipped() {
  wanted "$1" && echo "skip   $1: $2"
  return 0
}

names=("$@")
surrounding as_it_is "$smoke" env
surrounding many_addresses "$addresses" env
# Machines whose calibrations say otherwise than this one's.
for limits in 'EAGER_BYTES=4K' 'EAGER_BYTES=32K' 'KERNEL_BYTES=4K' 'KERNEL_BYTES=1024G'; do
  surrounding "$limits" "$smoke:Transfer.*" env "HAUL_FABRIC_$limits"
done

if "$programs/fabric_refuse" true 2> /dev/null; then
  surrounding process_vm_readv_refused "$smoke" "$programs/fabric_refuse"
else
  skipped process_vm_readv_refused "this kernel has no seccomp filters"
fi

if [ "$as_root" = no ]; then
  for name in nobody without_ptrace; do
    skipped $name "it starts as root; the tests run as an ordinary user already"
  done
elif ! "${nobody[@]}" test -r "${FI_PROVIDER_PATH:-/}" -a -x "$tests"; then
  skipped nobody "nobody may not read the build directory; build where everybody may read"
else
  surrounding nobody "$smoke" "${nobody[@]}" --
fi
if [ "$as_root" = yes ]; then
  surrounding without_ptrace "$smoke" setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace
fi

# A namespace of its own: by root at once, else with a user namespace around it where that may be.
namespaces=(unshare)
[ "$as_root" = yes ] || namespaces=(unshare --user --map-root-user)
if "${namespaces[@]}" --mount true 2> /dev/null; then
  surrounding little_dev_shm "$smoke" "${namespaces[@]}" --mount bash -c \
    'mount -t tmpfs -o size=64M tmpfs /dev/shm && exec "$@"' bash
  surrounding no_dev_shm "$smoke" "${namespaces[@]}" --mount bash -c \
    'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"' bash
else
  skipped little_dev_shm "this user may make no mount namespace"
  skipped no_dev_shm "this user may make no mount namespace"
fi
# The second process of the tests of two lives in a namespace in which it is number 1 or 2.
peers='*two_processes*:-Wait*'
if "${namespaces[@]}" --pid --fork true 2> /dev/null; then
  surrounding other_pid_namespace "$peers" \
    env "HAUL_TEST_PEER_PREFIX=${namespaces[*]} --pid --fork --kill-child --mount-proc"
else
  skipped other_pid_namespace "this user may make no namespace of processes"
fi

[ "$failed" = 0 ] || exit 1
[ "$ran" != 0 ] || exit 77
