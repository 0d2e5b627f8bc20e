#!/usr/bin/env bash
# The manual pages of section 3: each function that the libraries export has one, with an example that calls it; they
# render without a warning, in 80 columns.
set -euo pipefail

pages=$E2E_BUILD/manual/man3
if [ ! -e "$E2E_BUILD/manual/done" ]; then
  echo "skipped: this build has no manual pages, as python3 is missing; install it"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8
failures=0
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# ---- what the generator read of the headers is what the libraries export
python3 "$E2E_SOURCE/manual/man_pages.py" --functions > "$work/functions"
exported() { nm -D --defined-only "$1" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | grep '^haul_' | sort; }
declared() { awk -v header="$1" '$2 == "exported" && $3 == header { print $1 }' "$work/functions" | sort; }
exported "$E2E_LIBRARY" | grep -v '^haul_private_' > "$work/haul"
declared haul/haul.h | diff "$work/haul" - || failed "haul.h as the generator reads it (>) is not what libhaul exports (<)"
exported "$(dirname "$E2E_LIBRARY")/libhaul-atomic.so" | grep '^haul_atomic_' > "$work/atomic"
declared haul/atomic.h | diff "$work/atomic" - || failed "atomic.h as the generator reads it (>) is not what libhaul-atomic exports (<)"
[ "$(grep -c ' inline ' "$work/functions")" -ge 8 ] || failed "the generator sees fewer than 8 inline functions"

# ---- each function has a page, with a program that calls it
while read -r name _; do
  page=$pages/$name.3
  [ -s "$page" ] || { failed "$name has no page"; continue; }
  alias=$(sed -n 's/^\.so man3\///p' "$page")
  page=$pages/${alias:-$name.3}
  [ -s "$page" ] || { failed "$name.3 stands for $alias, which is not there"; continue; }
  sed -n '/^\.SH EXAMPLES/,/^\.SH SEE/p' "$page" > "$work/example"
  [ -s "$work/example" ] || failed "$name has no example; add one to manual/examples, or its name to the first comment of one"
  grep -q "\b$name(" "$work/example" || failed "the example of $name never calls it"
  for section in NAME LIBRARY SYNOPSIS DESCRIPTION 'SEE ALSO'; do
    grep -qx ".SH $section" "$page" || failed "$page has no section $section"
  done
  summary=$(sed -n '/^\.SH NAME/{n;s/\\//g;p;q}' "$page")
  [ ${#summary} -le 160 ] || failed "$page: its NAME is long; end its comment's first sentence sooner: $summary"
done < "$work/functions"

# ---- they render
mapfile -t written < <(grep -L '^\.so ' "$pages"/*.3)
if command -v groff > /dev/null; then
  for page in "${written[@]}"; do
    groff -man -Tascii -ww -rLL=80n -P-cbou "$page" > "$work/text" 2> "$work/warnings" && [ ! -s "$work/warnings" ] ||
      failed "$page: $(cat "$work/warnings")"
    wide=$(awk 'length > 80 { print; exit }' "$work/text")
    [ -z "$wide" ] || failed "$page: more than 80 columns: $wide"
  done
else
  echo "groff is missing; install it to have the pages rendered"
fi
if command -v mandoc > /dev/null; then
  mandoc -T lint -W warning "${written[@]}" || failed "mandoc warns"
fi

[ $failures = 0 ] || exit 1
echo "${#written[@]} pages of $(wc -l < "$work/functions") functions"
