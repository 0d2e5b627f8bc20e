#!/usr/bin/env bash
# What libhaul.so.0 and libhaul-atomic.so.0 promise to the process that loads them: they export haul_* alone,
# versioned; they need libc alone; they run nothing when loaded; they cannot be unloaded under a thread's feet.
# Usage: scripts/check_symbols.sh LIBRARY [HEADER]   (HEADER: include/haul/haul.h, or atomic.h by the library's name)
set -euo pipefail

library=$1
name=$(basename "$library")
case $name in libhaul-atomic.*) header=atomic.h ;; *) header=haul.h ;; esac
header=${2:-$(dirname "$0")/../include/haul/$header}
export LC_ALL=C
errors=0
complain() {
  echo "symbols: $1" >&2
  errors=$((errors + 1))
}

exported=$(nm -D --defined-only --with-symbol-versions "$library" | awk '$2 != "A" { print $3 }')
foreign=$(grep -vE '^haul_[a-z0-9_]+@@?HAUL_[A-Z0-9_.]+$' <<< "$exported" || true)
[ -z "$foreign" ] || complain "exports more than versioned haul_* names, mend its version script: $(head -5 <<< "$foreign" | tr '\n' ' ')"

# Every function of the header exists, and none exists beside it (HAUL_PRIVATE names are not in the header).
declared=$(grep -oE '^HAUL_API .*' "$header" | grep -oE '\bhaul_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
case $name in
  libhaul-atomic.*)
    public=$(sed -n 's/@@*HAUL_ATOMIC_[0-9].*//p' <<< "$exported" | sort -u)
    # Two functions of haul.h are in this library as well, by libhaul's version.
    shared=$(sed -n 's/@@*HAUL_[0-9].*//p' <<< "$exported" | sort -u | tr '\n' ' ')
    [ "$shared" = "haul_last_error haul_strerror " ] || complain "shares '$shared' with libhaul.so.0, not haul_last_error and haul_strerror"
    ;;
  *) public=$(sed -n 's/@@*HAUL_[0-9].*//p' <<< "$exported" | sort -u) ;;
esac
absent=$(comm -23 <(echo "$declared") <(echo "$public"))
unknown=$(comm -13 <(echo "$declared") <(echo "$public"))
[ -z "$absent" ] || complain "its header declares what the library lacks: $(echo $absent)"
[ -z "$unknown" ] || complain "exports what its header does not declare: $(echo $unknown)"

dynamic=$(readelf -dW "$library")
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<< "$dynamic" | tr '\n' ' ')
[ "$needed" = "libc.so.6 " ] || complain "needs '${needed% }' where libc.so.6 alone is allowed"
soname=$(grep -oP '\(SONAME\).*\[\K[^]]+' <<< "$dynamic" || true)
[ "$soname" = "$name" ] || complain "its soname is '$soname', not $name"
! grep -qE '\((RPATH|RUNPATH)\)' <<< "$dynamic" || complain "carries an RPATH"
! grep -q '(TEXTREL)' <<< "$dynamic" || complain "has text relocations; compile every object with -fPIC"
grep -q '(FLAGS_1).*NODELETE' <<< "$dynamic" || complain "lacks -z nodelete"
grep -q '(FLAGS_1).*NOW' <<< "$dynamic" || complain "lacks -z now"
readelf -lW "$library" | grep GNU_RELRO > /dev/null || complain "lacks -z relro"

# One entry each is crtbegin's own (frame_dummy, __do_global_dtors_aux).
for section in .init_array .fini_array; do
  size=$(readelf -SW "$library" | awk -v s="$section" '{ for (i = 1; i < NF; i++) if ($i == s) print $(i + 4) }')
  count=$((16#${size:-0} / 8))
  [ "$count" -le 1 ] || complain "$section has $((count - 1)) entries of ours, where none is allowed: $(
    nm -C "$library" | grep -E '_GLOBAL__sub_I|__cpu_indicator_init' | sed 's/^[^ ]* //' | tr '\n' ';')"
done

if [ "$errors" != 0 ]; then
  exit 1
fi
echo "symbols: $name: $(wc -l <<< "$exported") versioned names, needs ${needed% }, no constructors, $(stat -Lc %s "$library") bytes"
