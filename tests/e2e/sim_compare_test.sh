#!/bin/bash
# bcisim compare: on the traces that lie in the source tree the fast model's speedups are those of the
# one that goes cycle by cycle, within 5 %; and the comparison can fail.
set -u
. "$E2E_SOURCE/tests/e2e/lib_sim.sh"

instructions=500K
if [ -n "${E2E_SANITIZE:-}" ]; then instructions=30K; fi
traces=("$E2E_SOURCE"/sim/traces/*.trace)
"$bcisim" compare "${traces[@]}" --instructions $instructions --allowed 5 > "$work/out" 2> "$work/err" ||
  failed "the models differ: $(cat "$work/err" "$work/out")"
[ ! -s "$work/err" ] || failed "compare says $(cat "$work/err")"
# Every scheme on every trace, with cycles of both models.
for scheme in traditional vector-loop rep-movs copy-engine 0-dma fast-bci perfect-granularity perfect-pipeline perfect-cache; do
  found=$(grep -cE "^$scheme +[1-9][0-9]* +[1-9][0-9]* " "$work/out")
  [ "$found" = ${#traces[@]} ] || failed "$scheme was compared on $found of ${#traces[@]} traces"
done
grep -q "^the models' speedups differ by [0-9.]* % at most$" "$work/out" || failed 'compare does not say by how much they differ'

# Nothing is allowed: they do differ, and it says so.
for allowed in 0 nan; do
  "$bcisim" compare "$E2E_SOURCE/sim/traces/fio.trace" --instructions 50K --allowed $allowed > "$work/out" 2> "$work/err"
  [ $? = 1 ] || failed "compare --allowed $allowed does not fail"
  grep -q "^bcisim: speedups of .*/sim/traces/fio.trace differ by more than the $allowed % allowed; " "$work/err" ||
    failed "compare --allowed $allowed says $(cat "$work/err")"
  [ "$(wc -l < "$work/err")" = 1 ] || failed "compare --allowed $allowed says more than one line"
done

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
