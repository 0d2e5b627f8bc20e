#!/bin/bash
# bcisim from outside: help, wrong words and values, damaged traces and streams, full disks, kills.
# Nothing is left half done; every failure is one line with cause and remedy.
set -u
. "$(dirname "$0")/lib_sim.sh"

# ---- help, everywhere
expect 0 'figures' --help
for command in info run compare figures advise convert cut; do
  expect 0 "bcisim $command" "$command" --help
  expect 0 "$command" --help
done
expect 0 '--bus-bytes' compare --help
# Each scheme and each affinity is a line of its own, with what it is.
timeout 120 "$bcisim" run --help > "$work/help"
for name in traditional vector-loop rep-movs copy-engine 0-dma fast-bci perfect-granularity perfect-pipeline \
  perfect-cache C NEU NC; do
  [ "$(grep -cE "^  $name +[a-z]+.{10}" "$work/help")" = 1 ] || failed "run --help does not say what $name is"
done
expect 0 'NC   non-cacheable: ' advise --help

# ---- asked wrongly: 2
expect 2 'name a command'
expect 2 'nonsense' nonsense
expect 2 '--nonsense' --nonsense
expect 2 '--nonsense' figures --nonsense
for command in info run compare advise; do
  expect 2 '--nonsense' "$command" "$fio" --nonsense
done
expect 2 '--nonsense' convert "$fio" -o "$work/new" --nonsense
expect 2 '--nonsense' cut "$fio" -o "$work/new" --keep 5 --nonsense
for command in info run compare advise cut; do
  expect 2 'trace is required; see `bcisim --help`' "$command"
done
expect 2 'stream is required' convert
expect 2 '--output is required' convert "$fio"
expect 2 '--output is required' cut "$fio" --keep 5
expect 2 '--keep is required' cut "$fio" -o "$work/new"
expect 2 'more' info "$fio" more
expect 2 '1000000 bytes is not a power of two; choose one' run "$fio" --l2 1000000
expect 2 '3145728 bytes is not a power of two; choose one' run "$fio" --l2 3M
expect 2 'choose a power of two of ways' run "$fio" --l2-ways 3
expect 2 'choose other ways' run "$fio" --l1d-ways 0
expect 2 "'1T' is no size" run "$fio" --l2 1T
expect 2 "'-1' is no size" run "$fio" --l2 -1
expect 2 "'99999999999999999999K' is no size" run "$fio" --l2 99999999999999999999K
expect 2 'the number of MSHRs is 0; choose 1 to 250' run "$fio" --mshrs 0
expect 2 '--mshrs = -1' run "$fio" --mshrs -1
expect 2 '--width = 4294967296' run "$fio" --width 4294967296
expect 2 'choose a power of two of 16 to 1024' run "$fio" --block-bytes 48
expect 2 'a bus of nan bytes' run "$fio" --bus-bytes nan
expect 2 'choose a longer one or a faster bus' compare "$fio" --memory-cycles 3
expect 2 "'X_Y' are no affinities, source_destination; choose one of C_C, C_NEU, " run "$fio" --affinities X_Y
expect 2 "'C' are no affinities" run "$fio" --affinities NEU_C,C
expect 2 "there is no scheme 'nonsense'; choose one of traditional, vector-loop, " run "$fio" --scheme nonsense
expect 2 'slow not in {fast,stepped}' run "$fio" --model slow
expect 2 '--least-bytes' run "$fio" --least-bytes -1
expect 2 '--most-bytes' run "$fio" --most-bytes 0
for command in run compare figures advise; do
  for count in 0 abc -5 1.5 5X K ''; do
    expect 2 'is no count; write a number from 1 on' $command "$fio" --instructions "$count"
  done 2> /dev/null
  expect 2 '--threads' $command --threads 0
  expect 2 '--threads' $command --threads 1025
  expect 2 '--threads' $command --threads many
done
expect 2 'is too much' run "$fio" --instructions 99999999999999999999
expect 2 '--allowed' compare "$fio" --allowed -1
expect 2 '--sites' advise "$fio" --sites 0
expect 2 'is no count' figures --sensitivity-instructions none
expect 2 'is no count' cut "$fio" -o "$work/new" --keep 0
expect 2 'is no count' cut "$fio" -o "$work/new" --skip 0 --keep 5
expect 2 '--level' cut "$fio" -o "$work/new" --keep 5 --level 23
expect 2 "'workload' says nothing; write --meta key=value" convert "$fio" -o "$work/new" --meta workload
[ ! -e "$work/new" ] || failed 'a command that was asked wrongly writes'

# ---- raw streams: a good one; then each as a file NAME, with the status's text in NAME.says
mkdir "$work/streams"
python3 - "$work/streams" << 'EOF'
import pathlib, struct, sys
folder = pathlib.Path(sys.argv[1])
magic, head = b"BCISIMRAW", b"BCISIMRAW" + struct.pack("<I", 1)
static = lambda number, address, code: struct.pack("<BIQQB", 1, number, address, address, len(code)) + code
execute = lambda number: struct.pack("<BI", 2, number)
load = struct.pack("<BQQHB", 3, 0x5008, 0x7008, 8, 0)
end = lambda count: struct.pack("<BQ", 5, count)
# mov (%rdi),%rax; then nop, again and again: more than convert reads at once.
body = static(0, 0x1000, b"\x48\x8b\x07") + static(1, 0x1003, b"\x90") + (execute(0) + load + execute(1)) * 75000
good = head + body + end(150000)
bad_tag = head + static(0, 0x1000, b"\x90") + b"\x09" + end(0)
for name, stream, says in (
    ("good", good, ""),
    ("empty", head + end(0), ""),
    ("nothing", b"", "offset 0: the stream is empty; "),
    ("magic", b"BCISIMROW" + good[9:], "offset 0: this is no stream of the tracer; "),
    ("trace", b"BCITRACE" + good[8:], "offset 0: this is no stream of the tracer; "),
    ("version", magic + struct.pack("<I", 7) + good[13:], "offset 9: the stream is of version 7, "),
    ("cut-head", good[:11], "offset 11: the stream ends too early, "),
    ("cut", good[: len(good) // 2], f"offset {len(good) // 2}: the stream ends too early, "),
    ("cut-end", good[:-1], f"offset {len(good) - 1}: the stream ends too early, "),
    ("tag", bad_tag, f"offset {len(bad_tag) - 10}: the stream is damaged, a record has the unknown tag 9; "),
    ("count", head + body + end(149999), f"offset {len(good) - 9}: the stream is damaged, it has 150000 executions "),
    ("more", good + b"\x05", f"offset {len(good) - 9}: the stream is damaged, something follows its end; "),
    ("turn", head + static(1, 0x1000, b"\x90"), "offset 13: the stream is damaged, an instruction comes with an id "),
    ("unknown", head + execute(0), "offset 13: the stream is damaged, an instruction is executed that has not "),
):
    (folder / name).write_bytes(stream)
    (folder / (name + ".says")).write_text(says)
EOF
mkdir "$work/converted"
for says in "$work"/streams/*.says; do
  stream=${says%.says}
  [ -s "$says" ] || continue
  expect 1 "$stream, $(cat "$says")" convert "$stream" -o "$work/converted/new"
  [ -z "$(names "$work/converted")" ] || failed "convert $stream leaves $(names "$work/converted")"
done
expect 1 "$work/missing: cannot be read" convert "$work/missing" -o "$work/converted/new"
expect 1 "$work: cannot be read" convert "$work" -o "$work/converted/new"
expect 1 "$work/missing" convert "$work/streams/good" --symbols "$work/missing" -o "$work/converted/new"
[ -z "$(names "$work/converted")" ] || failed "convert leaves $(names "$work/converted")"
expect 0 'instructions    150000' convert "$work/streams/good" -o "$work/converted/good.trace" --meta workload=none --json "$work/summary.json"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/summary.json" || failed 'convert --json is no JSON'
"$bcisim" convert - -o "$work/converted/piped.trace" --meta workload=none < "$work/streams/good" > /dev/null
cmp "$work/converted/good.trace" "$work/converted/piped.trace" || failed 'a stream through a pipe becomes another trace'
expect 0 'workload: none' info "$work/converted/good.trace"
expect 0 'instructions: 150000' info "$work/converted/good.trace"
expect 0 'fast-bci' run "$work/converted/good.trace"
expect 0 'nothing is copied' advise "$work/converted/good.trace"

# ---- a piece of a real trace, for what follows
mkdir "$work/traces"
piece=$work/traces/piece.trace
expect 0 "$piece: " cut "$fio" -o "$piece" --skip 300K --keep 20K
expect 0 'cut: {"kept":20' info "$piece"
expect 0 'workload: fio' info "$piece"
expect 0 '' run "$piece" --scheme fast-bci --affinities NEU_C,NC_NC --json "$work/rows.json"
python3 - "$work/rows.json" << 'EOF' || failed 'not true of run --json'
import json, sys
rows = json.load(open(sys.argv[1]))
sys.exit([row["scheme"] for row in rows] != ["traditional", "fast-bci", "fast-bci"]
         or [row["affinities"] for row in rows] != ["", "NEU_C", "NC_NC"] or rows[0]["cycles"] < 1)
EOF
if [ -s "$work/err" ] || grep -q $'\033' "$work/out"; then failed 'colour or a bar in a pipe'; fi
for threads in 1 8; do
  "$bcisim" run "$piece" "$fio" --instructions 20K --scheme fast-bci --threads $threads | grep -v instructions/s > "$work/by-$threads"
done
cmp "$work/by-1" "$work/by-8" || failed 'threads change results'

# ---- damaged traces: each as a file, with what is said of it in NAME.says
mkdir "$work/damaged"
python3 - "$piece" "$work/damaged" << 'EOF'
import pathlib, struct, sys
whole, folder = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2])
size = len(whole)
head = 64 + 4 + struct.unpack_from("<I", whole, 60)[0]  # magic, version, totals, length, metadata, checksum


def put(name, contents, says):
    (folder / name).write_bytes(contents)
    (folder / (name + ".says")).write_text(says)


def flipped(at, bit):
    return whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]


for at in (1, 8, 10, 12, 59, 63, head - 5, head - 1, head + 3, head + 8, size // 4, size // 2, size - 13, size - 1):
    put(f"cut-{at}", whole[:at], f"cut-{at}, offset {at}: the file ends too early, it was cut; ")
for at in (0, 7):
    put(f"magic-{at}", flipped(at, 0x40), "offset 0: the file is no trace of bcisim; ")
for at in (12, 20, 58, 64, head - 2, head, head + 5, head + 9, size // 3, size // 2, 2 * size // 3, size - 13, size - 1):
    for bit in (0x01, 0x80):
        put(f"flipped-{at}-{bit}", flipped(at, bit), f"flipped-{at}-{bit}, offset ")
version = struct.unpack_from("<I", whole, 8)[0]
put("version", whole[:8] + struct.pack("<I", version + 1) + whole[12:],
    f"offset 8: the trace is of version {version + 1}, this bcisim reads version {version}; convert it again")
put("longer", whole + b"\0", "something follows its end; ")
put("twice", whole + whole, "something follows its end; ")
put("empty", b"", "offset 0: the file is empty; ")
EOF
for says in "$work"/damaged/*.says; do
  expect 1 "$(cat "$says")" info "${says%.says}"
done
mkdir "$work/pieces"
for name in cut-63 empty version longer "cut-$(($(wc -c < "$piece") - 1))"; do
  trace=$work/damaged/$name
  for command in run compare advise; do
    expect 1 "$trace, offset " $command "$trace"
  done
  expect 1 "$trace, offset " cut "$trace" -o "$work/pieces/new" --keep 1G
  [ -z "$(names "$work/pieces")" ] || failed "cut $trace leaves $(names "$work/pieces")"
  mkdir "$work/bad"
  cp "$trace" "$work/bad/bad.trace"
  expect 1 "$work/bad/bad.trace, offset " figures --traces "$work/bad" --out "$work/figures" --no-plots
  rm -rf "$work/bad"
  [ ! -e "$work/figures" ] || [ -z "$(names "$work/figures")" ] || failed "figures of a damaged trace leaves $(names "$work/figures")"
done
"$bcisim" convert "$work/streams/empty" -o "$work/none.trace" > /dev/null || failed 'convert of no instructions'
expect 0 'instructions: 0' info "$work/none.trace"
for command in run compare; do
  expect 1 "$work/none.trace: has no instructions; " $command "$work/none.trace"
  expect 1 "$work: cannot be read" $command "$work"
  expect 1 "$work/missing: cannot be read" $command "$work/missing" "$piece"
  expect 1 "$work/missing: cannot be read" $command "$piece" "$work/missing"
done
for command in info advise; do
  expect 1 "$work: cannot be read" $command "$work"
  expect 1 "$work/missing: cannot be read" $command "$work/missing"
done
for skip in '' '--skip 5'; do
  # shellcheck disable=SC2086
  expect 1 "$work/none.trace: has no instructions; name a trace that has" cut "$work/none.trace" -o "$work/pieces/new" --keep 1 $skip
done
expect 1 'skip fewer' cut "$piece" -o "$work/pieces/new" --skip 1G --keep 1
expect 1 "$work: cannot be written" cut "$piece" -o "$work" --keep 1
expect 1 'cannot be written' cut "$piece" -o "$work/nowhere/new" --keep 1
[ -z "$(names "$work/pieces")" ] || failed "cut leaves $(names "$work/pieces")"
expect 0 'instructions behind 0 (all that there are), ' cut "$piece" -o "$work/all.trace" --keep 1G
mkdir "$work/no-traces"
expect 1 "no *.trace in $work/no-traces; " figures --traces "$work/no-traces" --out "$work/figures"
expect 1 "no *.trace in $work/missing; " figures --traces "$work/missing" --out "$work/figures"
expect 1 'choose another with --out' figures --traces "$work/traces" --out "$piece/figures"

# ---- a full disk: a limit of file sizes acts like one
# limited KIB ARGUMENTS...: no file may become larger; $found: the exit status. Words go through pipes.
limited() {
  local kib=$1
  shift
  {
    (
      ulimit -f "$kib"
      trap '' XFSZ
      exec timeout 120 "$bcisim" "$@"
    ) 2>&1 > /dev/null | cat > "$work/err"
    found=${PIPESTATUS[0]}
  }
  : > "$work/out"
  judge "$found" 1 'File too large' "with $kib KiB of disk: bcisim $*"
}
mkdir "$work/full"
for kib in 0 1; do
  limited $kib cut "$piece" -o "$work/full/new" --keep 20K
  grep -qF "$work/full/new: cannot be written" "$work/err" || failed "cut on a full disk says: $(cat "$work/err")"
  for command in run advise; do
    limited $kib $command "$piece" --json "$work/full/new"
    grep -qF "cannot write $work/full/new: " "$work/err" || failed "$command --json on a full disk says: $(cat "$work/err")"
  done
done
limited 0 convert "$work/streams/good" -o "$work/full/new"
limited 0 convert "$work/streams/good" -o "$work/whole.trace" --json "$work/full/new"
[ -z "$(names "$work/full")" ] || failed "a full disk keeps $(names "$work/full")"
limited 4 figures --traces "$work/traces" --out "$work/full/out" --no-plots --instructions 1K
grep -qF "cannot write $work/full/out/figures.json: " "$work/err" || failed "figures on a full disk says: $(cat "$work/err")"
[ "$(names "$work/full")" = './out ' ] || failed "a full disk keeps $(names "$work/full")"
if [ -c /dev/full ]; then
  for arguments in "info $piece" "run $piece --scheme fast-bci" "compare $piece --instructions 1K" "advise $piece --sites 1" "advise $piece --sites 1 --json -" \
    "cut $piece -o $work/full.trace --keep 10"; do
    # shellcheck disable=SC2086
    timeout 120 "$bcisim" $arguments > /dev/full 2> "$work/err"
    judge $? 1 'cannot write to standard output; is the disk full?' "bcisim $arguments > /dev/full"
  done
fi
# What is no regular file is written to, not replaced.
mkfifo "$work/full/pipe"
timeout 120 cat "$work/full/pipe" > "$work/piped.json" &
reader=$!
timeout 120 "$bcisim" run "$piece" --scheme fast-bci --json "$work/full/pipe" > /dev/null || failed 'run --json PIPE'
if [ -p "$work/full/pipe" ]; then
  wait $reader
  grep -q '"fast-bci"' "$work/piped.json" || failed 'run --json PIPE writes nothing into it'
else
  failed 'run --json PIPE replaces the pipe'
  kill $reader
fi

# ---- a folder that may not be written to
other=()
if [ "$(id -u)" = 0 ]; then
  other=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
  chmod 755 "$work" "$work/traces" "$work/streams"
fi
mkdir "$work/closed"
chmod 555 "$work/closed"
if "${other[@]}" test -x "$bcisim" -a -r "$piece" 2> /dev/null; then
  # refused TEXT ARGUMENTS...: status 1, one line with TEXT.
  refused() {
    local text=$1 found
    shift
    "${other[@]}" timeout 120 "$bcisim" "$@" > /dev/null 2> "$work/err"
    found=$?
    : > "$work/out"
    judge $found 1 "$text" "in a closed folder: bcisim $*"
  }
  refused "$work/closed/new: cannot be written (Permission denied)" cut "$piece" -o "$work/closed/new" --keep 10
  refused "$work/closed/new: cannot be written (Permission denied)" convert "$work/streams/good" -o "$work/closed/new"
  refused "cannot write $work/closed/new: Permission denied; " run "$piece" --instructions 1K --json "$work/closed/new"
  refused 'Permission denied; choose another with --out' figures --traces "$work/traces" --out "$work/closed/out" --no-plots
  refused "cannot write $work/closed/figures.json: Permission denied; " \
    figures --traces "$work/traces" --out "$work/closed" --no-plots --instructions 1K
  [ -z "$(names "$work/closed")" ] || failed "closed, yet: $(names "$work/closed")"
else
  echo 'left out: folders that may not be written to (setpriv is missing, or nobody may not read the build)'
fi
chmod 755 "$work/closed"

# ---- killed: the file is whole or not there
mkdir "$work/killed"
# killed_amid INPUT ARGUMENTS...: half of INPUT comes through a pipe; killed when a file is begun.
killed_amid() {
  local input=$1 child
  shift
  rm -f "$work/half"
  mkfifo "$work/half"
  exec 7<> "$work/half"
  "$bcisim" "$@" > /dev/null 2>&1 &
  child=$!
  head -c $(($(wc -c < "$input") / 2)) "$input" >&7
  for _ in $(seq 200); do
    [ -n "$(names "$work/killed")" ] && break
    sleep 0.05
  done
  [ -n "$(names "$work/killed")" ] || failed "$1 does not begin to write"
  kill -KILL $child
  { wait $child; } 2> /dev/null
  exec 7>&-
  [ ! -e "$work/killed/new" ] || failed "$1, killed, leaves a half"
  rm -f "$work"/killed/new.*.part
  [ -z "$(names "$work/killed")" ] || failed "$1, killed, leaves $(names "$work/killed")"
}
killed_amid "$work/streams/good" convert "$work/half" -o "$work/killed/new"
killed_amid "$fio" cut "$work/half" -o "$work/killed/new" --keep 5M
for delay in 0.1 0.2 0.4 0.6 0.8 1; do
  {
    timeout -s KILL $delay "$bcisim" figures --traces "$work/traces" --out "$work/killed/out" --no-plots --instructions 5K
  } > /dev/null 2>&1
  if [ -e "$work/killed/out/figures.json" ]; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/killed/out/figures.json" ||
      failed "figures, killed after $delay s, leaves half a file"
  fi
done
timeout 120 "$bcisim" figures --traces "$work/traces" --out "$work/killed/out" --no-plots --instructions 5K > "$work/out" 2> "$work/err" ||
  failed "figures where one was killed: $(cat "$work/err")"
[ -s "$work/killed/out/figure-2.csv" ] || failed 'figures writes no figure-2.csv'

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
