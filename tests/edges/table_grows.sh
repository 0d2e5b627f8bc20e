#!/usr/bin/env bash
# The table functions x situations has every function of a header without being told, and says what to add where it
# cannot make an argument.
set -euo pipefail
functions=$E2E_SOURCE/tests/edges/table/functions.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/haul"
fail() { echo "table_grows: $*" >&2; exit 1; }

for name in haul atomic; do
  cp "$E2E_SOURCE/include/haul/$name.h" "$work/haul/"
  python3 "$functions" "$work/$name.cpp" "$work/haul/$name.h"
done
count() { grep -c '^ *{"haul_' "$work/$1.cpp" || true; }
[ "$(count haul)" -ge 30 ] || fail "$(count haul) functions of haul.h"
[ "$(count atomic)" -ge 35 ] || fail "$(count atomic) functions of atomic.h"
# Those that libhaul.so.0 exports to programs, and the inline ones.
while read -r name; do
  grep -q "{\"$name\"" "$work/haul.cpp" || fail "$name() is exported, but not in the table"
done < <(nm -D --defined-only "$E2E_LIBRARY" | sed -n 's/^.* T \(haul_[a-z_]*\)@@HAUL_[0-9].*/\1/p')

cat >> "$work/haul/haul.h" << 'EOF'
/* New. Async-signal-safe. */
HAUL_API int haul_brand_new(haul_ticket ticket,
                            uint64_t timeout_ns);
EOF
python3 "$functions" "$work/haul.cpp" "$work/haul/haul.h"
grep -A2 '{"haul_brand_new", false, false, false, true' "$work/haul.cpp" | grep 'haul_ticket, uint64_t' > /dev/null ||
  fail "a new function is not in the table"

echo 'HAUL_API int haul_strange(struct strange* thing);' >> "$work/haul/haul.h"
if python3 "$functions" "$work/haul.cpp" "$work/haul/haul.h" 2> "$work/said"; then fail "a strange type is no failure"; fi
grep -q "haul_strange() takes 'struct strange\* thing'.*add it to MAKERS" "$work/said" ||
  fail "it says: $(cat "$work/said")"
