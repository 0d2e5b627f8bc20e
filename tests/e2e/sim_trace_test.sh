#!/bin/bash
# The tracer: its parts compile; sim/trace/record.py says in one line what is missing or wrong, and leaves
# nothing behind. With QEMU and a guest that was made before (`make -C sim guest`; E2E_SIM_GUEST names
# another folder), a short real recording too, and one whose QEMU is killed; without, exit 77 after the rest.
set -u
bcisim=$E2E_BUILD/bin/bcisim
[ -x "$bcisim" ] || { echo "skipped: this build has no bcisim; install what scripts/packages.txt lists for it"; exit 77; }
for tool in python3 make cc; do
  command -v $tool > /dev/null || { echo "skipped: $tool is missing; install it"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
guest=${E2E_SIM_GUEST:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/haul/sim}
export XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp PYTHONDONTWRITEBYTECODE=1
mkdir "$TMPDIR" "$work/out"
failures=0
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
left_out() { echo "left out: $1"; }

# A python that needs nothing of PATH.
python=$(python3 -c 'import sys; print(sys.executable)')
record=("$python" "$E2E_SOURCE/sim/trace/record.py" -o "$work/out" --tools "$work/tools" --bcisim "$bcisim")

# judge FOUND STATUS TEXT WHAT: the status; one line with TEXT; no file and no folder left.
judge() {
  [ "$1" = "$2" ] || failed "$4: exit status $1 instead of $2: $(cat "$work/err")"
  [ "$(wc -l < "$work/err")" = 1 ] || failed "$4: not one line: $(cat "$work/err")"
  grep -q '^record.py: ' "$work/err" || failed "$4: no 'record.py: ' in front: $(cat "$work/err")"
  grep -qF -- "$3" "$work/err" || failed "$4: says no '$3': $(cat "$work/err")"
  [ -z "$(find "$work/out" "$TMPDIR" -mindepth 1)" ] || failed "$4: leaves $(find "$work/out" "$TMPDIR" -mindepth 1)"
}

# refuses STATUS TEXT ARGUMENTS...: of record.py, with $path as PATH.
path=$PATH
refuses() {
  local status=$1 text=$2
  shift 2
  timeout 120 env PATH="$path" "${record[@]}" "$@" > /dev/null 2> "$work/err" < /dev/null
  judge $? "$status" "$text" "record.py $*"
}

# stand_in NAME: a program in $work/bin, its text from standard input.
mkdir "$work/bin" "$work/empty"
stand_in() { cat > "$work/bin/$1" && chmod 755 "$work/bin/$1"; }

# ---- asked wrongly
refuses 2 'name a workload, or --list'
refuses 2 "invalid choice: 'nonsense'" nonsense
for count in abc inf nan '' 5X; do
  refuses 2 "'$count' is no number of instructions; write 100000 or 20M" fio -n "$count"
done
refuses 2 '--nonsense' fio --nonsense
"${record[@]}" --list > "$work/list" || failed 'record.py --list'
grep -q '^fio: .*; traces fio$' "$work/list" || failed "record.py --list says $(cat "$work/list")"
grep -q '^iperf: .*; traces iperf-sender, iperf-receiver$' "$work/list" || failed "record.py --list says $(cat "$work/list")"
touch "$work/out/fio.trace"
"${record[@]}" fio --missing -n 1 || failed 'record.py --missing records what is there'
rm "$work/out/fio.trace"

# ---- what is missing: QEMU, the tracer, the converter, what makes the guest
path=$work/empty
refuses 1 'qemu-system-x86_64 is missing; install the package qemu-system-x86.' fio -n 1M
stand_in qemu-system-x86_64 << 'EOF'
#!/bin/sh
echo "stand-in: cannot run" >&2
exit 3
EOF
path=$work/bin:$PATH
refuses 1 "$work/tools/libbcisim_tracer.so is missing; run \`make -C sim tracer\`, or name --tools." fio -n 1M
make -C "$E2E_SOURCE/sim" --no-print-directory tracer TOOLS="$work/tools" > "$work/make" 2>&1 || failed "the tracer: $(cat "$work/make")"
[ ! -s "$work/make" ] || failed "the tracer compiles with warnings: $(cat "$work/make")"
nm -D --defined-only "$work/tools/libbcisim_tracer.so" | grep -q ' qemu_plugin_install$' || failed 'the tracer is no plugin'
"$work/tools/mark" || failed 'the mark does not run'
refuses 1 'There must be at least one instruction to record' fio -n 0
refuses 1 'There must be at least one instruction to record' fio -n -5
refuses 1 'fewer than no instructions to skip' fio --skip -5
refuses 1 "The converter $work/bcisim is missing; build it, or name --bcisim or --convert." fio --bcisim "$work/bcisim"
mkdir "$work/a,b"
cp "$work/tools"/* "$work/a,b/"
refuses 1 'no path with a comma' fio --tools "$work/a,b"
# make_guest.sh says a line, too.
for tool in sh dirname sha256sum cut cat sed; do ln -s "$(command -v $tool)" "$work/empty/$tool"; done
cp "$work/bin/qemu-system-x86_64" "$work/empty/"
timeout 60 env PATH="$work/empty" "${record[@]}" fio --guest "$work/guest" > /dev/null 2> "$work/err"
[ $? = 1 ] || failed 'without mmdebstrap record.py does not fail'
if grep -q '^make_guest.sh: ' "$work/err"; then
  grep -q '^make_guest.sh: .* is missing; install the package .*\.$' "$work/err" || failed "make_guest.sh says $(cat "$work/err")"
  [ ! -e "$work/guest" ] || failed 'make_guest.sh begins before it has what it needs'
fi
grep -q '^record.py: The guest could not be made' "$work/err" || failed "without a guest record.py says $(cat "$work/err")"

# ---- a stand-in for QEMU and for the guest: it fails; it is killed
# As make_guest.sh of another checkout knows what it has made: $stamp.
here=$work/elsewhere/sim/trace/guest
shared=$here/../../../scripts/guests
mkdir -p "$here" "$work/elsewhere/scripts"
cp "$E2E_SOURCE/sim/trace/guest"/* "$here"
cp -r "$E2E_SOURCE/scripts/guests" "$work/elsewhere/scripts"
eval "$(grep '^stamp=' "$here/make_guest.sh")"
if [ -r /usr/share/keyrings/debian-archive-keyring.gpg ]; then
  for tool in mmdebstrap mke2fs cpio; do echo 'exit 1' | stand_in $tool; done
  mkdir "$work/guest"
  echo "$stamp" > "$work/guest/stamp"
  echo 'kernel=none' > "$work/guest/versions"
  touch "$work/guest/vmlinuz" "$work/guest/initrd" "$work/guest/root.ext4"
  refuses 1 'QEMU ended while fio was booting (with code 3: stand-in: cannot run' fio -n 1M --guest "$work/guest"
  refuses 1 'QEMU ended while iperf-' iperf -n 1M --guest "$work/guest"
  refuses 1 'The recording failed: ' fio -n 1M --guest "$work/guest" -o "$work/err/out"
  stand_in qemu-system-x86_64 << EOF
#!/bin/sh
echo \$\$ > "$work/qemu.pid"
exec sleep 1000
EOF
  # while_booting SIGNAL: sends it to QEMU (qemu) or to record.py, once QEMU runs.
  while_booting() {
    local who=$1 signal=$2 recorder qemu
    rm -f "$work/qemu.pid"
    PATH=$path "${record[@]}" fio -n 1M --guest "$work/guest" > /dev/null 2> "$work/err" < /dev/null &
    recorder=$!
    for _ in $(seq 200); do
      [ -s "$work/qemu.pid" ] && break
      sleep 0.05
    done
    qemu=$(cat "$work/qemu.pid")
    sleep 0.2
    if [ "$who" = qemu ]; then kill -"$signal" "$qemu"; else kill -"$signal" $recorder; fi
    { wait $recorder; } 2> /dev/null
    found=$?
    for _ in $(seq 100); do
      [ -e "/proc/$qemu" ] || break
      sleep 0.05
    done
    [ ! -e "/proc/$qemu" ] || failed "QEMU outlives record.py and SIG$signal"
  }
  while_booting qemu KILL
  judge $found 1 'QEMU ended while fio was booting (by signal 9); run it again.' 'record.py with a killed QEMU'
  while_booting recorder TERM
  judge $found 143 'Interrupted; nothing was written.' 'record.py after SIGTERM'
  while_booting recorder KILL
  [ $found = 137 ] || failed "record.py, killed, has status $found"
  rm -rf "$TMPDIR"/bcisim-*
  [ -z "$(find "$work/out" -mindepth 1)" ] || failed "record.py, killed, leaves $(find "$work/out" -mindepth 1)"
else
  left_out 'QEMU that fails or is killed, by a stand-in (install debian-archive-keyring)'
fi

# ---- for real
path=$PATH
reason=
if [ -n "${E2E_SANITIZE:-}" ]; then
  reason='it is too slow with sanitizers'
elif ! command -v qemu-system-x86_64 > /dev/null; then
  reason='install qemu-system-x86'
else
  for tool in mmdebstrap mke2fs cpio; do
    PATH=$PATH:/usr/sbin:/sbin command -v $tool > /dev/null || reason="$tool is missing"
  done
  if [ ! -f "$guest/stamp" ] || [ "$(cat "$guest/stamp")" != "$stamp" ]; then
    reason="no guest of this make_guest.sh in $guest; run \`make -C sim guest\`"
  fi
fi
if [ -n "$reason" ]; then
  [ $failures = 0 ] || exit 1
  echo "skipped: all else passed, but no real recording was made: $reason"
  exit 77
fi

timeout 240 "${record[@]}" fio -n 1M --skip 100K --guest "$guest" > "$work/said" 2> "$work/err" < /dev/null ||
  failed "recording fio: $(cat "$work/err")"
[ "$(cd "$work/out" && echo *)" = fio.trace ] || failed "a recording leaves $(ls -A "$work/out")"
grep -q "^$work/out/fio.trace: 1[0-9]* instructions in [0-9.]* s$" "$work/said" || failed "record.py says $(cat "$work/said")"
"$bcisim" info "$work/out/fio.trace" > "$work/info" 2> "$work/err" || failed "info of what was recorded: $(cat "$work/err")"
for line in 'workload: fio' 'role: machine' 'instructions: [0-9]{6,7}, [1-9][0-9]\.[0-9] % in the kernel, .*' 'from_user +[1-9].*' \
  'loads: [1-9].*, stores: [1-9].*' 'kernel: [1-9].*'; do
  grep -qE "^$line" "$work/info" || failed "info of what was recorded says no '$line': $(cat "$work/info")"
done
"$bcisim" run "$work/out/fio.trace" --scheme fast-bci > /dev/null 2> "$work/err" || failed "run of what was recorded: $(cat "$work/err")"
[ -z "$(find "$TMPDIR" -mindepth 1)" ] || failed "a recording leaves $(find "$TMPDIR" -mindepth 1)"
rm -f "$work/out/fio.trace"

# Killed amid the trace.
stand_in qemu-system-x86_64 << EOF
#!/bin/sh
echo \$\$ > "$work/qemu.pid"
exec "$(command -v qemu-system-x86_64)" "\$@"
EOF
PATH=$work/bin:$PATH "${record[@]}" fio -n 1G --guest "$guest" > /dev/null 2> "$work/err" < /dev/null &
recorder=$!
part=
for _ in $(seq 1200); do
  part=$(find "$work/out" -name '*.part' -size +0)
  if [ -n "$part" ] || [ ! -e "/proc/$recorder" ]; then break; fi
  sleep 0.1
done
if [ -z "$part" ]; then
  failed "the recording wrote nothing in two minutes: $(cat "$work/err")"
  kill $recorder
else
  kill -KILL "$(cat "$work/qemu.pid")"
fi
wait $recorder
judge $? 1 '(by signal 9); run it again.' 'record.py with QEMU killed amid the trace'

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
