#!/usr/bin/env bash
# haul run --mpi, haul explain --mpi and what haul info and haul top say of messages, from outside:
# with stand-ins for the launchers (what is recognised, what is set), then with every MPI that is here.
set -u
[ -n "${E2E_HAUL:-}" ] || { echo "skipped: this build has no command haul"; exit 77; }
haul=$E2E_HAUL
provider=$(dirname "$(readlink -f "$E2E_LIBRARY")")/libhaul-fi.so

work=$(mktemp -d)
running=''
cleanup() {
  [ -z "$running" ] || kill "$running" 2> /dev/null
  rm -rf "$work"
}
trap cleanup EXIT
export HAUL_PEERS_DIR=${HAUL_PEERS_DIR:-${XDG_CACHE_HOME:-${HOME:-$work}/.cache}/haul/peers}
export XDG_CACHE_HOME=$work/cache HAUL_TUNE_BACKGROUND=off HAUL_SERVICE_SOCKET=$work/none.sock
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset FI_PROVIDER FI_PROVIDER_PATH I_MPI_FABRICS HAUL_LOG_LEVEL SLURM_JOB_ID PBS_JOBID LSB_JOBID PE_HOSTFILE
failures=0

failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect STATUS TEXT COMMAND...: haul's exit status, and a text in what it prints. An error is one line.
expect() {
  local status=$1 text=$2
  shift 2
  timeout 120 "$haul" "$@" > "$work/out" 2> "$work/err"
  local found=$?
  [ $found = "$status" ] || failed "haul $*: exit status $found instead of $status: $(tail -3 "$work/err")"
  if [ "$status" = 2 ] && [ "$(grep -c . "$work/err")" != 1 ]; then failed "haul $*: not one line: $(cat "$work/err")"; fi
  grep -qF -- "$text" "$work/out" "$work/err" || failed "haul $*: says no '$text': $(cat "$work/err" "$work/out")"
}
says() { grep -qxF -- "$1" "$work/out" || failed "the setup lacks '$1': $(cat "$work/out")"; }

# ---- usage
expect 2 'say how to run' run
expect 2 'say how to run' run -- mpirun -np 2 true
expect 2 'name a command' run --mpi
expect 2 "no program 'no-such-launcher'" run --mpi -- no-such-launcher -np 2 true
expect 2 'is no MPI launcher' run --mpi -- true
expect 2 'add that' explain --pid 1
expect 2 '--pid' explain --mpi --pid many
expect 2 'excludes' explain --mpi --size 1M
expect 1 'has no endpoint' explain --mpi --pid $$
# Other programs may be running on haul.
grep -q "@haul-fabric[.]" /proc/net/unix || expect 1 'sends messages by haul' top --count 1

# ---- this machine
expect 0 'ring' explain --mpi
expect 0 '"paths"' explain --mpi --json
expect 0 '"rings"' explain --mpi --json
HAUL_FABRIC_PART_BYTES=2K expect 0 'in parts of 2 KiB' explain --mpi
HAUL_FABRIC_COPY_OUT=prefetching expect 0 '"copies_out": "prefetching"' explain --mpi --json
HAUL_FABRIC_CELL_BYTES=1K expect 0 '"cell_from_bytes": 1024' explain --mpi --json
HAUL_FABRIC_CELL_BYTES=0 expect 0 '"cell_from_bytes": 0' explain --mpi --json
HAUL_FABRIC_OWN_AHEAD=off HAUL_FABRIC_DEMOTE=off expect 0 '"owns_ahead": false' explain --mpi --json
HAUL_FABRIC_PIECE_BYTES=8K expect 0 '"piece_bytes": 8192' explain --mpi --json
HAUL_FABRIC_PIECE_BYTES=128K expect 0 '"piece_bytes": 32768' explain --mpi --json
expect 0 'Messages' info

if [ ! -e "$provider" ]; then
  mkdir "$work/bin"
  printf '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n' > "$work/bin/mpirun"
  chmod +x "$work/bin/mpirun"
  expect 1 'libfabric-dev' run --mpi -- "$work/bin/mpirun" true
  [ $failures = 0 ] || exit 1
  echo "skipped: this build has no provider; install libfabric-dev and build again"
  exit 77
fi

# ---- recognition and setup, with stand-ins that say what launchers say
stand_in() { # NAME TEXT [OMPI_INFO]
  mkdir -p "$work/$1"
  printf '#!/bin/sh\ncat << END\n%s\nEND\n' "$2" > "$work/$1/mpirun"
  printf '#!/bin/sh\necho "%s"\n' "${3:-mca:mtl:ofi:version}" > "$work/$1/ompi_info"
  chmod +x "$work/$1/mpirun" "$work/$1/ompi_info"
}
stand_in ompi4 'mpirun (Open MPI) 4.0.7'
stand_in debian 'mpirun.openmpi (OpenRTE) 4.1.4'
stand_in ompi5 'mpirun (Open MPI) 5.1.0'
stand_in mpich "HYDRA build details:
    Version:                                 4.2.1
    Configure options:                       --with-device=ch4:ofi"
stand_in intel 'Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307 (id: d82b3071db)'
setup() { expect 0 'FI_PROVIDER_PATH=' run --mpi --dry-run -- "$@"; }
directory=$(dirname "$provider")
for name in ompi4 debian; do
  setup "$work/$name/mpirun" -np 2 ./a
  says "  OMPI_MCA_pml=cm \\"
  says "  OMPI_MCA_mtl_ofi_provider_include=haul \\"
  says "  FI_PROVIDER_PATH=$directory \\"
  says "  $work/$name/mpirun -np 2 ./a"
done
setup "$work/ompi5/mpirun" --hostfile hosts './a program' -- --x
says "  OMPI_MCA_opal_common_ofi_provider_include=haul \\"
grep -q -- "-x FI_PROVIDER_PATH .*--hostfile hosts './a program' -- --x\$" "$work/out" ||
  failed "other hosts are not told: $(cat "$work/out")"
FI_PROVIDER_PATH=/elsewhere setup "$work/mpich/mpirun" -n 2 ./a '[1,2]'
says "  FI_PROVIDER=haul \\"
says "  MPIR_CVAR_NOLOCAL=1 \\"
says "  FI_PROVIDER_PATH=$directory:/elsewhere \\"
says "  $work/mpich/mpirun -n 2 ./a '[1,2]'"
FI_PROVIDER_PATH=/elsewhere PATH=$work/intel:$PATH setup mpirun -n 2 ./a
says "  I_MPI_FABRICS=ofi \\"
says "  FI_PROVIDER_PATH=$directory \\"
says "  mpirun -n 2 ./a"
LD_PRELOAD='' expect 0 'FI_PROVIDER_PATH=' run --mpi --alloc-mem --dry-run -- "$work/ompi5/mpirun" -np 2 -H a,b ./a
says "  LD_PRELOAD=$directory/libhaul-mpi.so \\"
grep -q -- '-x LD_PRELOAD .*-H' "$work/out" || failed "other hosts are not told of the preload: $(cat "$work/out")"
LD_PRELOAD=/lib/other.so expect 0 'FI_PROVIDER_PATH=' run --mpi --memory=shared --dry-run -- "$work/mpich/mpirun" -n 2 ./a
says "  LD_PRELOAD=$directory/libhaul-malloc.so:$directory/libhaul-mpi.so:/lib/other.so \\"
expect 2 'go with --mpi' run --transparent --report --strict -- true
expect 2 '--json' run --mpi --report --json
expect 1 'no-such-dir' run --mpi --report --json "$work/no-such-dir/x.json" -- "$work/mpich/mpirun" -n 2 ./a
expect 2 'private' run --mpi --memory=public --dry-run -- "$work/mpich/mpirun" -n 2 ./a
# Also without the two dashes.
expect 0 'I_MPI_FABRICS=ofi' run --mpi --dry-run "$work/intel/mpirun" -n 2 ./a
expect 2 'keeps haul out' run --mpi -- "$work/ompi4/mpirun" --mca pml ob1 -np 2 ./a
expect 2 'keeps haul out' run --mpi -- "$work/mpich/mpirun" -genv FI_PROVIDER tcp -n 2 ./a
stand_in old 'mpirun (Open MPI) 3.1.3'
expect 2 'too old' run --mpi -- "$work/old/mpirun" ./a
stand_in older 'Intel(R) MPI Library for Linux* OS, Version 2018 Update 4 Build 20180823'
expect 2 'too old' run --mpi -- "$work/older/mpirun" ./a
stand_in ucx "HYDRA build details:
    Version:                                 4.0.2
    Configure options:                       --with-device=ch4:ucx"
expect 1 'ch4:ucx' run --mpi -- "$work/ucx/mpirun" ./a
stand_in bare 'mpirun (Open MPI) 4.1.4' 'mca:mtl:psm2:version'
expect 1 'without libfabric' run --mpi -- "$work/bare/mpirun" ./a
[ "$(PATH=$work/bare:$PATH "$haul" info | grep -c 'not ready: Open MPI 4.1.4')" = 1 ] ||
  failed 'info does not say that an MPI lacks libfabric'

# ---- the MPIs that are here
cat > "$work/rounds.c" << 'END'
/* Ranks send round a ring, messages of each size, and check them. With a second argument they then
   wait until that file is gone. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int most = 1 << 20, right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  char *out = malloc(most), *in = malloc(most);
  for (int bytes = 1; bytes <= most; bytes *= 4) {
    memset(out, rank + bytes % 251, bytes);
    MPI_Sendrecv(out, bytes, MPI_CHAR, right, 7, in, bytes, MPI_CHAR, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++)
      if (in[i] != (char)(left + bytes % 251)) MPI_Abort(MPI_COMM_WORLD, 9);
  }
  if (argc > 1) {
    FILE* file = rank == 0 ? fopen(argv[1], "w") : NULL;
    if (rank == 0 && file == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    if (file != NULL) { fprintf(file, "%d\n", (int)getpid()); fclose(file); }
    MPI_Barrier(MPI_COMM_WORLD);
    do {
      int flag;
      MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      usleep(10000);
    } while (access(argv[1], F_OK) == 0);
  }
  MPI_Finalize();
  if (rank == 0) printf("rounds are complete\n");
  return 0;
}
END

# Buffers of MPI_Alloc_mem(): the path shows whose they were. What is too short for haul is the MPI's.
cat > "$work/alloc.c" << 'END'
#include <mpi.h>
#include <stdio.h>
enum { bytes = 3000000, small = 100 };
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char *big = NULL, *little = NULL;
  for (int round = 0; round < 10; ++round) {
    MPI_Alloc_mem(bytes, MPI_INFO_NULL, &big);
    MPI_Alloc_mem(small, MPI_INFO_NULL, &little);
    for (int i = 0; i < bytes; ++i) big[i] = rank == 0 ? (unsigned char)(i * 7 + round) : 0;
    for (int i = 0; i < small; ++i) little[i] = (unsigned char)rank;
    if (rank == 0) MPI_Send(big, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(big, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(little, small, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < bytes; ++i) wrong += rank < 2 && big[i] != (unsigned char)(i * 7 + round);
    for (int i = 0; i < small; ++i) wrong += little[i] != 0;
    wrong += MPI_Free_mem(little) != MPI_SUCCESS;
    wrong += MPI_Free_mem(big) != MPI_SUCCESS;
  }
  MPI_Finalize();
  if (rank == 1 && wrong == 0) printf("all is right\n");
  return wrong != 0;
}
END

# The same by malloc(), with a child that writes what it has inherited.
sed -e 's/MPI_Alloc_mem(\([a-z]*\), MPI_INFO_NULL, &\([a-z]*\))/\2 = malloc(\1)/' -e 's/wrong += MPI_Free_mem(\(.*\)) .*;/free(\1);/' \
  -e 's/^#include <stdio.h>/#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys\/wait.h>\n#include <unistd.h>/' \
  -e 's/^    if (rank == 0) MPI_Send/    const pid_t child = fork();\n    if (child == 0) {\n      memset(big, 1, bytes);\n      _exit(0);\n    }\n    waitpid(child, NULL, 0);\n&/' \
  "$work/alloc.c" > "$work/malloc.c"
grep -q 'big = malloc(bytes)' "$work/malloc.c" && grep -q 'fork()' "$work/malloc.c" && ! grep -q MPI_Free "$work/malloc.c" ||
  failed "malloc.c is not what it should be"

cat > "$work/window.c" << 'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { most = 1000000 };
static int attribute(MPI_Win win, int key) {
  void* value = NULL;
  int found = 0;
  MPI_Win_get_attr(win, key, &value, &found);
  return found ? *(int*)value : -1;
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  unsigned char *own = malloc(most), *base = NULL;
  for (int round = 0; round < 12; ++round) {
    // Rank 1's part is small, or nothing.
    const int bytes = rank == 0 ? most : round % 2 * 100;
    MPI_Win win, other;
    wrong += MPI_Win_allocate(bytes, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) != MPI_SUCCESS;
    MPI_Win_create(own, most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    wrong += attribute(win, MPI_WIN_CREATE_FLAVOR) != MPI_WIN_FLAVOR_ALLOCATE;
    wrong += attribute(other, MPI_WIN_CREATE_FLAVOR) != MPI_WIN_FLAVOR_CREATE;
    wrong += attribute(win, MPI_WIN_DISP_UNIT) != 2;
    for (int i = 0; i < most; ++i) own[i] = (unsigned char)(i * 5 + rank + round);
    for (int i = 0; i < bytes; ++i) base[i] = (unsigned char)(i * 3 + round);
    MPI_Win_fence(0, win);
    if (rank == 1) MPI_Get(own, most / 2, MPI_BYTE, 0, 0, most / 2, MPI_BYTE, win);
    if (rank == 1) MPI_Put(own + most / 2, most / 2, MPI_BYTE, 0, most / 4, most / 2, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < most; ++i)
      if (rank == 1) wrong += own[i] != (unsigned char)(i < most / 2 ? i * 3 + round : i * 5 + 1 + round);
    for (int i = 0; i < bytes; ++i)
      if (rank == 0) wrong += base[i] != (unsigned char)(i < most / 2 ? i * 3 + round : i * 5 + 1 + round);
    MPI_Win_free(&other);
    MPI_Win_free(&win);
    wrong += win != MPI_WIN_NULL;
  }
  free(own);
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 1 && all == 0) printf("all is right\n");
  return all != 0;
}
END

# Messages from and into memory of each kind. The report has to know them apart.
cat > "$work/kinds.c" << 'END'
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { bytes = 1 << 20, less = 300000, block = 100000, rounds = 10 };
static char field[bytes];
static int rank, wrong;
static void exchange(char* memory, int size, int tag) {
  for (int i = 0; i < rounds; ++i) {
    memset(memory, rank == 0 ? i + tag : 0, size);
    if (rank == 0) MPI_Send(memory, size, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(memory, size, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < size; ++k) wrong += rank < 2 && memory[k] != i + tag;
  }
}
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char here[less];
  exchange(field, bytes, 1);
  exchange(here, less, 2);
  char* large = malloc(bytes);
  exchange(large, bytes, 3);
  free(large);
  char* small = malloc(block);
  exchange(small, block, 4);
  free(small);
  const int fd = open(argv[1], O_RDONLY);
  char* file = mmap(NULL, less, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  exchange(file, less, 5);
  MPI_Finalize();
  if (rank == 1 && wrong == 0) printf("all is right\n");
  return wrong != 0;
}
END
head -c 300000 /dev/zero > "$work/a file"

# Messages that can come while nobody calls the MPI.
cat > "$work/apart.c" << 'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, bytes = 4 << 20;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* memory = malloc(bytes);
  memset(memory, rank, bytes);
  for (int i = 0; i < 10; ++i) {
    MPI_Request request;
    if (rank == 0) MPI_Isend(memory, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    else MPI_Irecv(memory, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    usleep(30000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  if (rank == 1) printf("all is there\n");
  return 0;
}
END

until_true() {
  for _ in $(seq 300); do "$@" && return 0; sleep 0.1; done
  return 1
}
has_line() { [ -s "$1" ]; }
gone() { ! pgrep -f "$1" > /dev/null; }

count=0
"$haul" info --json > "$work/info.json" || failed 'info --json'
launchers=$(python3 -c '
import json, sys
for mpi in json.load(open(sys.argv[1]))["messages"]["mpis"]:
    if mpi["ready"]: print(mpi["launcher"])' "$work/info.json" 2> /dev/null)
for launcher in $launchers; do
  bin=$(dirname "$launcher")
  program=$work/rounds$count
  for compiler in "$bin/haul-mpicc" "$bin/mpicc${launcher#"${launcher%.openmpi}"}" "$bin/mpicc"; do
    [ -x "$compiler" ] && "$compiler" "$work/rounds.c" -o "$program" 2> /dev/null && break
  done
  [ -x "$program" ] || { echo "left out: nothing compiles for $launcher"; continue; }
  count=$((count + 1))
  spread=''
  case $("$launcher" --version 2>&1) in
    *'(Open MPI) 5'*) spread='--map-by :OVERSUBSCRIBE --bind-to none' ;;
    *'Open MPI'* | *OpenRTE*) spread='--oversubscribe --bind-to none' ;;
  esac
  # shellcheck disable=SC2086 # words
  command=("$launcher" $spread -n 2 "$program")
  expect 0 'rounds are complete' run --mpi -- "${command[@]}"
  expect 0 'message size' run --mpi --report --strict --json "$work/report.json" -- "${command[@]}"
  python3 - "$work/report.json" << 'END' || failed "$launcher: the report is wrong: $(cat "$work/report.json")"
import json, sys
d = json.load(open(sys.argv[1]))
sizes = {s["from_bytes"]: s["messages"] for s in d["sizes"]}
assert d["exit_status"] == 0 and d["endpoints"] >= 2 and d["incomplete_endpoints"] == 0, d
assert all(sizes.get(4 ** i, 0) >= 2 for i in range(4, 11)), sizes
assert d["bytes"] >= 2 * sum(4 ** i for i in range(11)), d["bytes"]
assert sum(p["messages"] for p in d["paths"]) == d["messages"] == sum(sizes.values())
assert d["received_messages"] == d["messages"], d
assert any(p["ring"] for p in d["pairs"]), d["pairs"]
END
  for memory in alloc window malloc; do for allocation in '' --alloc-mem --memory=shared; do
    case $memory$allocation in malloc | malloc--alloc-mem | window--memory=shared) continue ;; esac
    "$compiler" "$work/$memory.c" -o "$program.$memory" || failed "$launcher: $memory.c does not compile"
    # shellcheck disable=SC2086
    expect 0 'all is right' run --mpi $allocation --json "$work/report.json" -- "$launcher" $spread -n 2 "$program.$memory"
    mapped=$(python3 -c '
import json, sys
print(sum(p["messages"] for p in json.load(open(sys.argv[1]))["paths"] if p["path"] == "mapped"))' "$work/report.json")
    # The first may leave before the other side has mapped anything. Open MPI's windows need no messages.
    least=5
    [ -n "$allocation" ] || least=0
    [ "$memory" != window ] || [ -z "$spread" ] || least=0
    if [ $least = 0 ]; then [ "$mapped" = 0 ]; else [ "$mapped" -ge $least ]; fi ||
      failed "$launcher, $memory.c: $mapped messages were mapped with '$allocation': $(cat "$work/report.json")"
  done; done
  "$compiler" "$work/kinds.c" -o "$program.kinds" || failed "$launcher: kinds.c does not compile"
  for memory in private shared; do
    # shellcheck disable=SC2086
    expect 0 'all is right' run --mpi --report --memory=$memory --json "$work/report.json" -- "$launcher" $spread -n 2 "$program.kinds" "$work/a file"
    cp "$work/err" "$work/said"
    python3 - "$work/report.json" "$(basename "$program.kinds")" $memory << 'END' || failed "$launcher: the report on $memory memory is wrong: $(cat "$work/said" "$work/report.json")"
import json, sys
d = json.load(open(sys.argv[1]))
shared = sys.argv[3] == "shared"
found = {(m["rank"], m["kind"], m["name"]): m for m in d["unmapped_memory"]}
for rank, way in ((0, "sent_messages"), (1, "received_messages")):
    for kind, name, bytes in (("static", sys.argv[2], 1 << 20), ("stack", "", 300000), ("file", "a file", 300000)):
        m = found[rank, kind, name]
        assert m[way] == 10 and m["bytes"] == 10 * bytes and m["largest_bytes"] == bytes, m
        assert int(m["end"], 16) - int(m["begin"], 16) == bytes, m
        assert "ALLOCATABLE" in m["remedy"] and ("run with --memory=shared" in m["remedy"]) != shared, m
    # Whether a block of 100000 bytes lies in the heap is malloc's affair.
    blocks = sum(m[way] for (r, kind, _), m in found.items() if r == rank and kind in ("heap", "anonymous"))
    assert blocks == (0 if shared else 20), found
large = {}
for row in d["large_messages"]: large[row["path"]] = large.get(row["path"], 0) + row["messages"]
assert sum(large.values()) == 50 and large.get("mapped", 0) == (20 if shared else 0), large
assert all(row["median_ns"] > 0 for row in d["large_messages"] if row["path"] != "eager"), d["large_messages"]
assert not d["calibrated"], d
END
    for text in "static data of $(basename "$program.kinds")" 'the stack' 'a mapped file (a file)' 'haul tune'; do
      grep -qF -- "$text" "$work/said" || failed "$launcher: the report does not say '$text': $(cat "$work/said")"
    done
    grep -q 'run with --memory=shared' "$work/said"
    [ $? = $([ $memory = private ]; echo $?) ] || failed "$launcher: the remedy for $memory memory is wrong: $(cat "$work/said")"
  done
  if [ $count = 1 ]; then
    export XDG_CACHE_HOME=$work/tuned
    # (A busy machine refuses to be measured.)
    # shellcheck disable=SC2086
    timeout 60 "$haul" tune > "$work/out" 2>&1 &&
      expect 0 "(estimated by this machine's" run --mpi --report --memory=shared -- "$launcher" $spread -n 2 "$program.kinds" "$work/a file"
    export XDG_CACHE_HOME=$work/cache
    # Whether haul's thread gets its turn is the scheduler's affair, ten times in a row hardly.
    "$compiler" "$work/apart.c" -o "$program.apart" || failed "$launcher: apart.c does not compile"
    # shellcheck disable=SC2086
    apart() { # on|off
      HAUL_FABRIC_OVERLAP=$1 expect 0 'all is there' run --mpi --report -- "$launcher" $spread -n 2 "$program.apart"
      grep -q 'arrived while their rank computed' "$work/err"
    }
    for _ in 1 2 3 4 5 6 7 8 9 10; do apart on && break; done
    grep -q 'arrived while their rank computed' "$work/err" || failed "$launcher: no message arrives beside its rank: $(cat "$work/err")"
    apart off && failed "$launcher: messages arrive beside their rank without a thread"
  fi
  expect 0 'ring' explain --mpi -- "${command[@]}"
  expect 1 'no rank' run --mpi --strict -- "$launcher" -n 1 true
  # shellcheck disable=SC2086
  timeout 60 "$haul" run --mpi --report -- "$launcher" $spread -n 2 "$program" /no/such/dir/file > "$work/out" 2>&1 &&
    failed "$launcher: a failing program's status is lost"

  # While it runs.
  rm -f "$work/waits"
  "$haul" run --mpi --report -- "${command[@]}" "$work/waits" > "$work/out" 2> "$work/err" &
  running=$!
  if until_true has_line "$work/waits"; then
    pid=$(cat "$work/waits")
    timeout 20 "$haul" top --count 2 --interval 0.1 > "$work/top" 2>&1 || failed "$launcher: top: $(cat "$work/top")"
    grep -q "^ *$pid " "$work/top" || failed "$launcher: top does not show $pid: $(cat "$work/top")"
    timeout 20 "$haul" explain --mpi --pid "$pid" > "$work/pairs" 2>&1 || failed "$launcher: explain: $(cat "$work/pairs")"
    grep -q 'eager' "$work/pairs" || failed "$launcher: explain --pid shows no path: $(cat "$work/pairs")"
    rm "$work/waits"
    wait "$running" || failed "$launcher: the job ends with $?: $(cat "$work/err")"
    grep -q 'endpoints sent' "$work/err" || failed "$launcher: no report: $(cat "$work/err")"
  else
    failed "$launcher: the job does not begin: $(cat "$work/err")"
    kill "$running" 2> /dev/null
  fi

  # A rank that is killed has told what it did before.
  rm -f "$work/waits"
  "$haul" run --mpi --report -- "${command[@]}" "$work/waits" > "$work/out" 2> "$work/err" &
  running=$!
  if until_true has_line "$work/waits"; then
    sleep 2.5 # it tells every second
    kill -KILL "$(cat "$work/waits")"
    wait "$running" && failed "$launcher: a job whose rank was killed counts as good"
    grep -q 'without a last word' "$work/err" || failed "$launcher: a killed rank is not missed: $(cat "$work/err")"
    grep -Eq 'endpoints sent [1-9]' "$work/err" || failed "$launcher: what was sent before is lost: $(cat "$work/err")"
  else
    failed "$launcher: the job that is to be killed does not begin: $(cat "$work/err")"
    kill "$running" 2> /dev/null
  fi
  running=''

  # A signal ends all of it. (Intel's mpirun is a script that does not pass it on.)
  rm -f "$work/waits"
  [ ! -x "$bin/mpiexec.hydra" ] || command[0]=$bin/mpiexec.hydra
  "$haul" run --mpi --report -- "${command[@]}" "$work/waits" > "$work/out" 2> "$work/err" &
  running=$!
  until_true has_line "$work/waits" || failed "$launcher: the job does not begin again"
  kill -TERM "$running"
  wait "$running"
  [ $? != 0 ] || failed "$launcher: a job that was ended counts as good"
  running=''
  until_true gone "$program" || failed "$launcher: ranks survive: $(pgrep -af "$program")"
done
[ $failures = 0 ] || exit 1
echo "all passed, with $count MPIs"
