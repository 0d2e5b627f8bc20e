#!/bin/bash
# haul bench mpi, nas, mpi-kernels and mpi-overlap, small, with one MPI: the rows that others read, the choices, the errors. And
# the benchmarks' own checks: a library that damages a message must not go unnoticed.
set -u
[ -n "${E2E_HAUL:-}" ] || { echo "skipped: this build has no command haul"; exit 77; }
[ -z "${E2E_SANITIZE:-}" ] || { echo "skipped: MPI's launchers do not load sanitizers"; exit 77; }
haul=$E2E_HAUL
peers=$E2E_SOURCE/scripts/peers.sh
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
command -v cc > /dev/null || { echo "skipped: there is no compiler cc"; exit 77; }
mpi=$(sh "$peers" list | head -n 1)
[ -n "$mpi" ] || { echo "skipped: there is no MPI; scripts/peers.sh installs some"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work/tmp HAUL_TUNE_BACKGROUND=off HAUL_MOVER_LEASE=off
mkdir "$TMPDIR"
failures=0

failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# bench ARGUMENTS...: runs it into rows.json.
bench() {
  timeout 240 "$haul" bench "$@" --mpi "$mpi" --quick --json "$work/rows.json" > "$work/out" 2> "$work/err" ||
    failed "haul bench $*: $(tail -n 1 "$work/err")"
}

# holds EXPRESSION: true of the document d and its rows r. (Figures are rounded to three places: on a machine that is busy
# enough a bandwidth is 0, and a share of the time is 1.)
holds() {
  python3 - "$work/rows.json" "$1" << 'END' || failed "not true of the rows: $1"
import json, sys
d = json.load(open(sys.argv[1]))
if not eval(f"({sys.argv[2]})", {"d": d, "r": d["rows"]}):
    print(*d["rows"], sep="\n")
    sys.exit(1)
END
}

# refused STATUS TEXT ARGUMENTS...: one line that holds TEXT.
refused() {
  local status=$1 text=$2
  shift 2
  timeout 120 "$haul" bench "$@" > "$work/out" 2> "$work/err"
  local found=$?
  [ $found = "$status" ] || failed "haul bench $*: exit status $found instead of $status"
  grep -qF -- "$text" "$work/err" || failed "haul bench $*: says no '$text': $(cat "$work/err")"
}

refused 2 "--mpi" mpi --mpi lam
refused 2 "--test" mpi --test pong
refused 2 "mpi-kernels has no test pingpong; --test takes transpose, halo" mpi-kernels --test pingpong
refused 2 "hide has no tests" hide --test pingpong
refused 2 "--buffers" mpi --buffers cold
refused 2 "--ranks" mpi --ranks 1
refused 1 "2, 4, 8" nas --mpi "$mpi" --ranks 3
refused 1 "2, 4, 8" mpi-kernels --mpi "$mpi" --ranks 6
refused 1 "powers of two" mpi-kernels --mpi "$mpi" --sizes 100K
HAUL_PEERS_DIR=$work/none refused 1 "make bench-peers" mpi --mpi intel

bench mpi --test pingpong,rate --buffers reused,fresh --sizes 100,8K
holds 'd["suite"] == "mpi" and {x["mpi"] for x in r} == {"'"$mpi"'"}'
holds '{(x["test"], x["buffers"], x["size_bytes"]) for x in r if x["transport"] == "native"} ==
  {(t, b, s) for t in ("pingpong", "rate") for b in ("reused", "fresh") for s in (100, 8192)}'
holds 'all(x["median_us"] > 0 and x["ranks"] == 2 and x["rounds"] == 3 for x in r)'
holds 'all(abs(x["gbps"] - g) < 0.5 * g + 0.001 for x in r for g in [x["size_bytes"] / x["median_us"] * 1e-3])'
holds 'all(x["ratio_to_native"] > 0 for x in r if x["transport"] != "native")'
holds 'all(x["placement"] in ("near", "far", "mixed", "none") for x in r)'
if [ -e "$(dirname "$E2E_LIBRARY")/libhaul-fi.so" ]; then
  holds 'any(x["transport"] == "haul" for x in r)'
  bench mpi-schemes --test pingpong --sizes 64K
  holds '{(x["scheme"], x["mover"]) for x in r if x["transport"] == "haul"} ==
    {("SCNI", "caller"), ("MCNI", "thread"), ("MCNI", "service")}'
  bench mpi-schemes --test pingpong --sizes 64K --engine cpu,uring
  holds '{(x["scheme"], x["mover"], x["engine"]) for x in r if x["transport"] == "haul"} == {("SCNI", "caller", "cpu"),
    ("MCNI", "thread", "cpu"), ("SCI", "caller", "uring"), ("MCI", "thread", "uring")}'
  holds 'all("no hardware" in x["label"] for x in r if x["engine"] == "uring") and all(x["median_us"] > 0 for x in r)'
  bench mpi-pinning --sizes 64K
  holds '[(x["scheme"], x["engine"], x["registration"]) for x in r] ==
    [("SCI", "uring", "blocking"), ("SCI", "uring", "overlapped"), ("SCNI", "cpu", "none")]'
  holds 'all(x["label"] == "no hardware" for x in r if x["engine"] == "uring") and all(x["ratio_to_first"] > 0 for x in r[1:])'
  bench mpi-matching
  holds '{(x["test"], x["entries"]) for x in r if x["transport"] == "haul"} ==
    {(t, n) for t in ("posted", "unexpected") for n in (1, 16, 1000)}'
  holds 'all(x["median_ns"] > 0 and x["ratio_to_one"] > 0 and x["rounds"] == 3 for x in r)'
else
  grep -q 'libhaul-fi.so' "$work/err" || failed 'the missing provider is not named'
fi

bench nas --class S --ranks 2
holds '{(x["kernel"], x["class"], x["ranks"]) for x in r} == {(k, "S", 2) for k in ("is", "ft", "cg", "mg")}'
holds 'all(x["verified"] and x["seconds"] > 0 and x["mops"] > 0 and 0 <= x["comm_share"] <= 1 for x in r)'
holds 'any(x["comm_share"] > 0 for x in r)'
bench mpi-kernels --test halo --sizes 32K --ranks 2
holds '{(x["test"], x["form"], x["size_bytes"], x["message_bytes"]) for x in r} ==
  {("halo", "2d-1", 32768, 512), ("halo", "3d-2", 32768, 4096)}'
holds 'all(x["median_us"] > 0 and 0 <= x["comm_share"] <= 1 for x in r)'
bench mpi-overlap --test nbc --sizes 64K
holds '{x["transport"] for x in r} <= {"haul", "native"} and all(x["label"] == ("" if x["cpus"] > 2 else "no free core") for x in r)'
holds 'all(0 <= x[s + "_overlap_ratio"] <= 1 and x[s + "_pure_us"] > 0 and x[s + "_cpu_us"] > 0 for x in r for s in ("sender", "receiver"))'
[ -z "$(ls "$TMPDIR")" ] || failed "left behind: $(ls "$TMPDIR")"

# ---- a library that damages what arrives: every benchmark must say so and fail
cat > "$work/damage.c" << 'END'
// Receives as MPI does, and then changes a byte: DAMAGE=checked in the middle of the second message,
// which is one of those checked whole; DAMAGE=timed at the front of all from the eighth.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
// DAMAGE_WAIT=n: a bit in the middle of what the n-th wait ends (of doubles: in an exponent); from the n-th on if n is
// negative.
enum { SLOTS = 64 };
static struct {
  MPI_Request* request;
  unsigned char* middle;
} posted[SLOTS];
int MPI_Irecv(void* at, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  int bytes = 0, slot = 0;
  PMPI_Type_size(type, &bytes);
  while (slot < SLOTS - 1 && posted[slot].request != NULL) slot++;
  posted[slot].request = request;
  posted[slot].middle = (unsigned char*)at + count / 2 * bytes + (bytes > 1 ? 6 : 0);
  return PMPI_Irecv(at, count, type, from, tag, comm, request);
}
static void damage(int count, const MPI_Request* requests) {
  static int calls;
  const char* text = getenv("DAMAGE_WAIT");
  const int when = text != NULL ? atoi(text) : 0;
  unsigned char* middle = NULL;
  for (int i = 0; i < SLOTS; i++) {
    if (posted[i].request < requests || posted[i].request >= requests + count) continue;
    middle = posted[i].middle;
    posted[i].request = NULL;
  }
  if (middle == NULL) return;
  calls++;
  if (calls == when || (when < 0 && calls >= -when)) *middle ^= 0x10;
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const int code = PMPI_Wait(request, status);
  damage(1, request);
  return code;
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const int code = PMPI_Waitall(count, requests, statuses);
  damage(count, requests);
  return code;
}
int MPI_Recv(void* at, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  static int calls;
  const char* when = getenv("DAMAGE");
  const int code = PMPI_Recv(at, count, type, from, tag, comm, status);
  if (count > 0) calls++;
  if (when == NULL) return code;
  if (count > 0 && calls == 2 && strcmp(when, "checked") == 0) ((unsigned char*)at)[count / 2] ^= 1;
  if (count > 0 && calls >= 8 && strcmp(when, "timed") == 0) *(unsigned char*)at ^= 1;
  return code;
}
int MPI_Bcast(void* at, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  static int calls;
  const int code = PMPI_Bcast(at, count, type, root, comm);
  if (getenv("DAMAGE") != NULL && type == MPI_BYTE && ++calls == 2) ((unsigned char*)at)[count / 2] ^= 1;
  return code;
}
int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static int calls;
  const int code = PMPI_Allreduce(out, in, count, type, op, comm);
  if (getenv("DAMAGE") != NULL && type == MPI_UINT64_T && ++calls == 2) ((unsigned char*)in)[count / 2 * 8 + 3] ^= 1;
  return code;
}
// Of doubles: the exponent of one.
int MPI_Alltoall(const void* out, int n, MPI_Datatype a, void* in, int m, MPI_Datatype b, MPI_Comm comm) {
  static int calls;
  const int code = PMPI_Alltoall(out, n, a, in, m, b, comm);
  if (n > 1 && ++calls == 5) ((unsigned char*)in)[m / 2 * 8 + 6] ^= 0x10;
  return code;
}
int MPI_Alltoallv(const void* out, const int* n, const int* at, MPI_Datatype a, void* in, const int* m,
                  const int* to, MPI_Datatype b, MPI_Comm comm) {
  static int calls;
  const int code = PMPI_Alltoallv(out, n, at, a, in, m, to, b, comm);
  if (++calls == 11) ((int*)in)[m[0] / 2] ^= 1;  // in the last ranking
  return code;
}
END
variables=$(sh "$peers" env "$mpi")
eval "$variables"
# damaged NAME FILES -- ARGUMENTS: compiled with the library above it must fail and say why.
damaged() {
  local name=$1 files=() file
  shift
  while [ "$1" != -- ]; do
    files+=("$E2E_SOURCE/bench/messages/mpi/$1")
    shift
  done
  shift
  eval "set -- $MPI_ENV $MPI_CROWD_ENV $MPI_NATIVE_ENV -- $MPI_LAUNCH $MPI_CROWD_ARGS $MPI_NATIVE_ARGS -n 2 '$work/$name' \"\$@\""
  local settings=()
  while [ "$1" != -- ]; do
    settings+=("$1")
    shift
  done
  shift
  [ -x "$work/$name" ] || env "${settings[@]}" $MPI_CC -std=gnu11 -O2 -I "$E2E_SOURCE" -o "$work/$name" "${files[@]}" "$work/damage.c" -lm ||
    { failed "$name does not compile"; return; }
  if env "${settings[@]}" timeout 60 "$@" < /dev/null > "$work/out" 2>&1; then failed "$name does not notice damage"; fi
  grep -aq 'error: ' "$work/out" || failed "$name fails, and not by its check: $(tail -n 2 "$work/out")"
}
for kind in reused rewritten fresh off-cache; do
  export DAMAGE=checked
  damaged messages bench.c buffers.c common.c content.c exchange.c -- pingpong $kind 4096 '' 1000000 2000 early
  export DAMAGE=timed
  damaged messages bench.c buffers.c common.c content.c exchange.c -- pingpong $kind 4096 '' 1000000 2000 early
done
export DAMAGE=checked
damaged messages bench.c buffers.c common.c content.c exchange.c -- bcast reused 4096 '' 1000000 2000 early
damaged messages bench.c buffers.c common.c content.c exchange.c -- allreduce reused 4096 '' 1000000 2000 early
damaged matching matching.c common.c -- 10 '' 1000 early
unset DAMAGE
damaged is nas_is.c nas.c common.c timed.c -- S '' early
damaged ft nas_ft.c nas.c common.c timed.c -- S '' early
# Both methods mend a single error.
export DAMAGE_WAIT=-30
damaged cg nas_cg.c nas.c common.c timed.c -- S '' early
damaged mg nas_mg.c nas.c common.c timed.c -- S '' early
# In the checks of each way, and in a step.
for call in 1 7; do
  export DAMAGE_WAIT=$call
  damaged spectral spectral.c kernel.c common.c timed.c -- exchange 4096 '' 1000 early
done
for call in 1 7; do
  export DAMAGE_WAIT=$call
  damaged halo halo.c kernel.c common.c timed.c -- 3d-2 4096 '' 1000 early
done
export DAMAGE_WAIT=2
damaged overlap overlap.c common.c content.c -- nbc 4096 '' 1000 early
damaged overlap overlap.c common.c content.c -- stream 4096 '' 1000 early

[ $failures = 0 ] && echo "haul bench mpi with $mpi: ok"
exit $((failures > 0))
