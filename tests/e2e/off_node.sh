#!/usr/bin/env bash
# Messages between nodes: two network namespaces joined by veth, every MPI that is here across them,
# ranks of both kinds of neighbours, receives from any source.
# OFF_NODE_PROVIDER=NAME: another libfabric provider than haul.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
provider=${OFF_NODE_PROVIDER:-haul}
directory=$(dirname "$(readlink -f "$E2E_LIBRARY")")
if [ "$provider" = haul ] && [ ! -e "$directory/libhaul-fi.so" ]; then
  echo "skipped: this build has no libfabric provider; install libfabric-dev"; exit 77
fi
# shellcheck source=tests/e2e/lib_nodes.sh
. "$here/lib_nodes.sh"
work=$(mktemp -d)
trap 'end_nodes; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1  # where a crashed rank may leave a trace
peers=$("$root/scripts/peers.sh" list)
[ -n "$peers" ] || { echo "skipped: there is no MPI here; install openmpi-bin and libopenmpi-dev"; exit 77; }
make_nodes "$work" || exit $?
unset FI_PROVIDER FI_PROVIDER_PATH HAUL_FABRIC_OFFNODE
limit_s=${OFF_NODE_LIMIT_S:-120}
failures=0

# Ranks are dealt in turn, so that a rank's neighbours are on the other node and the next but one on its own.
words_of() {
  case $1 in
    openmpi4) launch_words="--mca plm_rsh_agent $NODE_AGENT --mca oob_tcp_if_include $NODE_INTERFACE
      --mca btl_tcp_if_include $NODE_INTERFACE --host $NODE_A:4,$NODE_B:4 --map-by node" ;;
    openmpi5) launch_words="--prtemca plm_ssh_agent $NODE_AGENT --prtemca oob_tcp_if_include $NODE_INTERFACE
      --prtemca prte_if_include $NODE_INTERFACE --host $NODE_A:4,$NODE_B:4 --map-by node" ;;
    mpich5 | intel) launch_words="-launcher ssh -launcher-exec $NODE_AGENT -iface $NODE_INTERFACE
      -hosts $NODE_A,$NODE_B -ppn 1" ;;
  esac
}
# How a launcher hands variables to other nodes.
export_words() {
  case $1 in
    openmpi4 | openmpi5) for assignment in "${@:2}"; do printf -- '-x\n%s\n' "$assignment"; done ;;
    *) for assignment in "${@:2}"; do printf -- '-genv\n%s\n%s\n' "${assignment%%=*}" "${assignment#*=}"; done ;;
  esac
}

# Cases that an MPI fails across nodes on its own transports too.
left_out_words() {
  case $1-$2 in
    openmpi4-nodes) echo -window ;; # pml cm has no windows between nodes
    openmpi4-pt2pt) echo -persistent_buffered ;;
  esac
}

# run MPI PROGRAM RANKS [CARRIER [VARIABLE=VALUE...]]
run() {
  local mpi=$1 program=$2 ranks=$3 carrier=${4:-}
  local what="$mpi, $program, $ranks ranks on 2 nodes${carrier:+ by $carrier}${5:+, ${*:5}}"
  local -a launch args crowd_args variables exports environment
  eval "environment=($MPI_ENV)" "launch=($MPI_LAUNCH)" "args=($MPI_OFI_ARGS)" "variables=($MPI_OFI_ENV $MPI_CROWD_ENV)"
  eval "crowd_args=($MPI_CROWD_ARGS)"
  case $mpi in openmpi*) crowd_args=(--bind-to none) ;; esac
  variables+=(HAUL_TEST_NODES=2 HAUL_TUNE_BACKGROUND=off ${carrier:+"HAUL_FABRIC_OFFNODE=$carrier"} "${@:5}")
  mapfile -t exports < <(export_words "$mpi" "${variables[@]}")
  words_of "$mpi"
  # shellcheck disable=SC2046,SC2086 # words
  on_node $NODE_A timeout -k 5 "$limit_s" env "${environment[@]}" "${variables[@]}" "${launch[@]}" $launch_words \
    "${crowd_args[@]}" "${args[@]}" "${exports[@]}" -n "$ranks" "$work/$mpi-$program" $(left_out_words "$mpi" "$program") > "$work/out" 2>&1 < /dev/null
  local status=$?
  if [ $status = 0 ] && grep -q '^passed' "$work/out" && ! grep -q '^skip any_source' "$work/out"; then
    echo "ok: $what"
    return
  fi
  echo "FAILED: $what: exit status $status"
  tail -n 25 "$work/out"
  failures=$((failures + 1))
}

for mpi in ${OFF_NODE_MPI:-$peers}; do
  eval "$(PROVIDER=$provider DIR=$([ "$provider" != haul ] || echo "$directory") "$root/scripts/peers.sh" env "$mpi")"
  eval "compiler=($MPI_CC)"
  for program in nodes pt2pt; do
    "${compiler[@]}" -std=c11 -D_GNU_SOURCE -O1 -pthread -w -o "$work/$mpi-$program" \
      "$root/tests/mpi/$program.c" "$root/tests/mpi/harness.c" || exit 1
  done
  run "$mpi" nodes 2
  run "$mpi" nodes 5
  run "$mpi" pt2pt 3
  # Carriers by name; Debian's libfabric has this provider, and nothing hides it.
  if [ "$provider-$mpi" = haul-openmpi4 ]; then
    run "$mpi" nodes 4 socket
    run "$mpi" nodes 4 'tcp;ofi_rxm'
    # Memory is registered, and stays so, as with a provider that pins it.
    run "$mpi" nodes 4 'tcp;ofi_rxm' HAUL_FABRIC_REGISTER=always
    run "$mpi" pt2pt 3 'tcp;ofi_rxm' HAUL_FABRIC_REGISTER=always
  fi
done
[ $failures = 0 ]
