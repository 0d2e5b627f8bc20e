#!/usr/bin/env bash
# Checks the models of docs/design/hot-path.md, service.md and atomic-locks.md with spin: each must
# hold, each seeded bug be found.
# Prints one line a check, then "N passed, N failed". README.md says what the models mean.
#
# usage: run.sh [--checks few|all] [build-dir]    (default: all; a new directory under ${TMPDIR:-/tmp}, removed on success)
# few: of each model the first check that it holds, and the first seeded bug.
set -euo pipefail
export LC_ALL=C

readonly max_depth=20000        # steps; the deepest search needs about 500
readonly max_memory_mib=900     # per search
readonly max_search_s=120       # per search
readonly parallel=2             # checks at once
readonly cc=${CC:-cc}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

usage() {
  sed -n '6s/^# //p' "${BASH_SOURCE[0]}"
}

fail_early() {
  printf 'run.sh: %s\n' "$1" >&2
  exit "$2"
}

checks=all
if [[ ${1:-} == --checks && ${2:-} =~ ^(few|all)$ ]]; then
  checks=$2
  shift 2
fi
readonly checks
if [[ $# -gt 1 || ${1:-} == -* ]]; then
  [[ ${1:-} == --help || ${1:-} == -h ]] && { usage; exit 0; }
  usage >&2
  exit 2
fi
command -v spin >/dev/null ||
  fail_early "spin is missing, so no model can be checked; install the Debian package 'spin'" 1
command -v "$cc" >/dev/null ||
  fail_early "the C compiler '$cc' is missing; install the Debian package 'gcc' or set CC" 1

keep_build=1
if [[ $# -eq 1 ]]; then
  mkdir -p "$1" || fail_early "cannot create the build directory '$1'; name a writable one" 1
  build=$(cd "$1" && pwd)
else
  build=$(mktemp -d "${TMPDIR:-/tmp}/haul-model.XXXXXX")
  keep_build=0
fi
readonly build

# The verdict on a check, on standard output and as the status.
pass() {
  printf '%s, ok\n' "$1"
}

fail() {
  printf '%s: FAILED: %s\n' "$1" "$2"
  [[ -z ${3:-} ]] || printf '    look at: %s\n' "$3"
  return 1
}

# explore KIND DIRECTORY MODEL [DEFINITION...]: builds and runs one search; its output goes to
# DIRECTORY/output. KIND is `cycles` (no infinite execution) or else (assertions, deadlocks).
explore() {
  local kind=$1 directory=$2 model=$3
  shift 3
  # -O0: compiling takes longer than searching, but where there are millions of states. -w20: a hash
  # table that starts small and grows.
  local optimize=-O0
  if [[ $model =~ ^(atomic_lock|fence|recovery|ring|sleep)$ && $* != *BUG_* && $* != *REACH_* ]]; then optimize=-O1; fi
  local compile_flags=("$optimize" -w "-DMEMLIM=$max_memory_mib") run_flags=("-m$max_depth" -w20)
  if [[ $kind == cycles ]]; then
    compile_flags+=(-DNP -DNOFAIR)
    run_flags+=(-l)
  else
    compile_flags+=(-DSAFETY)
  fi
  rm -rf "$directory"
  mkdir -p "$directory"
  cp "$here"/*.pml "$directory"
  (
    cd "$directory" &&
      spin "${@/#/-D}" -a "$model.pml" &&
      "$cc" "${compile_flags[@]}" -o pan pan.c &&
      timeout "$max_search_s" ./pan "${run_flags[@]}"
  ) >"$directory/output" 2>&1
}

# verify KIND MODEL [DEFINITION...]: one check. KIND, what is expected:
#   holds      a finished search without an error
#   cycles     the same, for infinite executions (every loop is bounded: every wait ends)
#   assertion  an assertion violated (a seeded bug, or a REACH_ witness)
#   stuck      an invalid end state: somebody waits for good
verify() {
  local kind=$1 model=$2
  shift 2
  local name="model $model${*:+ $*}" directory="$build/$model-$kind${*:+-${*// /-}}" output states
  directory=${directory// /-}
  [[ $kind != cycles ]] || name+=" (cycles)"
  output=$directory/output
  if ! explore "$kind" "$directory" "$model" "$@"; then
    fail "$name" "the search did not run to its end" "$output"
    return 1
  fi
  states=$(awk '/states, stored/ { print $1; exit }' "$output")
  if grep -Eq 'search depth too small|out of memory|reached -DMEMLIM|hashtable full' "$output"; then
    fail "$name" "cut short after ${states:-0} states; raise its limit in run.sh" "$output"
    return 1
  fi
  case $kind in
    holds | cycles)
      if ! grep -q 'errors: 0$' "$output" || grep -q 'Search not completed' "$output"; then
        fail "$name" "$(grep -Em1 '^pan:[0-9]+: ' "$output" || echo 'no verdict from pan')" \
          "cd $directory && spin${*:+ ${*/#/-D}} -t -p -g $model.pml"
      else
        pass "$name: $states states"
      fi
      ;;
    assertion | stuck)
      local expected='^pan:[0-9]*: assertion violated' outcome='error found'
      [[ $kind == assertion ]] || expected='^pan:[0-9]*: invalid end state'
      [[ "$*" != *REACH_* ]] || outcome='reached'
      if grep -q "$expected" "$output"; then
        pass "$name: $outcome"
      elif grep -Eq '^pan:[0-9]+: ' "$output"; then
        fail "$name" "expected '$kind', found: $(grep -Em1 '^pan:[0-9]+: ' "$output")" "$output"
      else
        fail "$name" "nothing found in ${states:-0} states, so the model is blind to it" "$output"
      fi
      ;;
  esac
}

# Every seeded bug and witness that a model names must be among the checks below, and README.md names no other.
check_all_named() {
  local macro missing=()
  while read -r macro; do
    grep -Eq "^check .*\\b$macro\\b" "${BASH_SOURCE[0]}" || missing+=("$macro")
  done < <(grep -ohE '\b(BUG|REACH)_[A-Z_]+' "$here"/*.pml | sort -u)
  while read -r macro; do
    grep -Eqw "$macro" "$here"/*.pml || missing+=("$macro, which README.md names and no model has")
  done < <(grep -ohE '\b(BUG|REACH)_[A-Z_]+' "$here/README.md" | sort -u)
  if [[ ${#missing[@]} -eq 0 ]]; then
    pass "every seeded bug and witness is checked"
  else
    fail "every seeded bug and witness is checked" "run.sh does not check ${missing[*]}"
  fi
}

# Checks run a few at once; their verdicts are printed in order.
passed=0
failed=0
started=0
printed=0
results=$build/results
rm -rf "$results"
mkdir -p "$results"

start() {
  while [[ $(jobs -rp | wc -l) -ge $parallel ]]; do
    wait -n || true
    print_finished
  done
  local result=$results/$started
  started=$((started + 1))
  { if "$@" >"$result.text" 2>&1; then : >"$result.passed"; else : >"$result.failed"; fi; } &
}

print_finished() {
  while [[ -e $results/$printed.passed || -e $results/$printed.failed ]]; do
    cat "$results/$printed.text"
    if [[ -e $results/$printed.passed ]]; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
    printed=$((printed + 1))
  done
}

declare -A begun
check() {
  local kind=$1 model=$2
  if [[ $checks == few ]]; then
    [[ $kind != cycles && $* != *REACH_* ]] || return 0
    [[ $kind == holds ]] || kind=bug
    [[ -z ${begun[$model-$kind]:-} ]] || return 0
    begun[$model-$kind]=1
  fi
  start verify "$@"
}

start check_all_named

check holds ring
check holds ring SLOTS=2 TENANCIES=4
check holds ring WAITERS=2 TENANCIES=2
check cycles ring
check cycles ring SLOTS=2
check assertion ring BUG_FETCH_OR
check assertion ring BUG_DONE_NO_GENERATION
check assertion ring BUG_STATE_FIRST
check assertion ring BUG_ABSENT_CHUNKS_FREE
check assertion ring BUG_REUSE_BEFORE_STATE
check assertion ring SLOTS=2 BUG_REUSE_BEFORE_STATE
check stuck ring BUG_SEQ_FIRST
check stuck ring BUG_CURSOR_WAITS_FOR_EQUAL
check assertion ring REACH_TORN_COPY
check assertion ring REACH_CURSOR_OVERTAKEN
check assertion ring REACH_HELPER_FINISHES_LAST

check holds sleep
check holds sleep NAP
check cycles sleep REQUESTS=1
check cycles sleep REQUESTS=1 NAP
check stuck sleep BUG_NO_MEMBARRIER
check stuck sleep BUG_LOCAL_FENCE
check stuck sleep BUG_NO_RESCAN
check stuck sleep BUG_WAITER_NO_MEMBARRIER
check stuck sleep BUG_WAITER_NO_COMPARE
check stuck sleep BUG_RETIRES_UNSEEN
check stuck sleep BUG_GONE_IS_AWAKE
check stuck sleep NAP BUG_NO_RESCAN
check stuck sleep NAP BUG_NAP_BEFORE_FLAG
check assertion sleep REACH_MOVER_WOKEN
check assertion sleep REACH_MADE_ANEW
check assertion sleep REACH_WAITER_WOKEN
check assertion sleep REACH_RESCAN_FINDS
# Without store buffers the lost wake-up would pass unseen; this is why they are modelled.
check holds sleep SC BUG_NO_MEMBARRIER

check holds biased_lock
check cycles biased_lock
check assertion biased_lock BUG_NO_MEMBARRIER
check assertion biased_lock BUG_FENCE_OF_ITS_OWN
check assertion biased_lock BUG_NO_SECOND_LOOK
check stuck biased_lock BUG_LEAVES_BY_PLAIN_STORE
check stuck biased_lock BUG_STEPS_BACK_SILENTLY
check assertion biased_lock REACH_PROGRAM_SLEEPS
check assertion biased_lock REACH_GUEST_STEPS_BACK
check assertion biased_lock REACH_PROGRAM_WAITS
check holds biased_lock SC BUG_NO_MEMBARRIER

check holds waiting
check holds waiting NAP
check cycles waiting
check stuck waiting BUG_GENERATION_EQUAL
check stuck waiting BUG_GENERATION_PLAIN_STORE
check stuck waiting BUG_FLAG_INSTEAD_OF_COUNT
check stuck waiting BUG_WAKE_ONE
check stuck waiting BUG_NO_MEMBARRIER
check assertion waiting REACH_SPURIOUS_WAKE

check holds queue
check cycles queue
check stuck queue BUG_RELEASE_STORES
check stuck queue BUG_ARM_NO_LOOK
check stuck queue BUG_CLEAR_AFTER_ARM
check assertion queue REACH_OWNER_WOKEN_FOR_LATER_ENTRY

check holds fence
check holds fence NO_MOVER TENANCIES=3
check cycles fence
check assertion fence BUG_FENCE_IGNORED
check assertion fence BUG_FENCE_CHECKS_PREDECESSOR_ONLY
check stuck fence BUG_SLEEP_BEHIND_FENCE
check stuck fence NO_MOVER TENANCIES=3 BUG_HELP_OWN_REQUEST_ONLY
check assertion fence REACH_FENCE_BLOCKS

check holds drain
check holds drain NAP
check cycles drain
check assertion drain BUG_NO_SUBMITTING_FLAG
check assertion drain BUG_FLAG_DOWN_BEFORE_PUBLISH
check assertion drain BUG_NO_MEMBARRIER
check assertion drain REACH_GATE_HELD
check assertion drain REACH_FORK_MIDWAY
check assertion drain REACH_FLAG_UP_AT_FORK

check holds service_sleep
check holds service_sleep CLIENTS=1
check holds service_sleep NAP
check cycles service_sleep
check stuck service_sleep BUG_NO_MEMBARRIER
check stuck service_sleep BUG_CLIENT_NOT_REGISTERED
check stuck service_sleep BUG_LOOK_BEFORE_SET
check stuck service_sleep BUG_NO_RESCAN
check stuck service_sleep BUG_BELL_BEFORE_EXCHANGE
check stuck service_sleep BUG_EXCHANGE_NO_BELL
check stuck service_sleep BUG_BLOCK_AGAIN
check assertion service_sleep REACH_RESCAN_FINDS
check assertion service_sleep REACH_SERVICE_WOKEN
check assertion service_sleep REACH_BELL_FOR_NOTHING
# No wake-up depends on these: the exchange only spares packets, and the words may be cleared at any
# time before they are set again.
check holds service_sleep ALWAYS_BELL
check holds service_sleep CLEAR_LATE

check holds recovery REQUESTS=1
check holds recovery NO_WAITER
check holds recovery NO_MOVER
check holds recovery GRANTED NO_WAITER
check cycles recovery REQUESTS=1
check cycles recovery GRANTED REQUESTS=1
check assertion recovery REQUESTS=1 BUG_LOOKS_BEFORE_COUNTING
check assertion recovery REQUESTS=1 BUG_NO_WAIT_FOR_HELPERS
check assertion recovery REQUESTS=1 BUG_UNCLAIMED_IS_ORPHANED
check assertion recovery REQUESTS=1 BUG_RECOVERS_BEFORE_CLOSED
check assertion recovery REQUESTS=1 BUG_POSTS_AGAIN
check assertion recovery REQUESTS=1 BUG_EMPTY_IS_THE_DEADS
check stuck recovery REQUESTS=1 BUG_FORGETS_THE_UNENDED
check stuck recovery REQUESTS=1 BUG_NO_SIGNAL
check stuck recovery REQUESTS=1 BUG_NO_WAIT_FOR_PUBLISHERS
check assertion recovery REQUESTS=1 REACH_DEATH_AMID_A_COPY
check assertion recovery REQUESTS=1 REACH_REPORTED_NOT_ENDED
check assertion recovery REQUESTS=1 REACH_PLACE_LEFT_EMPTY
check assertion recovery REQUESTS=1 REACH_KEPT_OFF

check holds resting
check holds resting EACH=1 OWNERS=3
check cycles resting
check stuck resting BUG_ZERO_IS_PENDING
check assertion resting BUG_NO_LOOK_AFTER_CLAIM
check assertion resting BUG_PAGES_FIRST
check assertion resting BUG_RESTS_UNFINISHED
check stuck resting BUG_WAKES_EMPTY
check assertion resting REACH_CLAIMED_AT_REST
check assertion resting REACH_READS_ZERO

check holds sharing
check cycles sharing
check stuck sharing BUG_MOVES_UNFINISHED
check assertion sharing BUG_MAPS_FIRST
check assertion sharing REACH_SLICE_NEEDED
check assertion sharing REACH_COUNT_ASTRAY

check holds parting
check holds parting SHUTDOWN
check cycles parting
check stuck parting BUG_WAITS_FOR_LOCK
check stuck parting SHUTDOWN BUG_WAITS_FOR_LOCK
check stuck parting BUG_SAYS_SO_FIRST
check assertion parting REACH_PASSED_OVER

# Nobody dies, no lease ends: nobody has to wait for that, either.
check holds atomic_lock ORDER GIVE_UPS=1
check holds atomic_lock MEMBERS=2 ROUNDS=2 ORDER GIVE_UPS=2
check holds atomic_lock MEMBERS=2 ROUNDS=2 GIVE_UPS=2 TRIES=1
check holds atomic_lock GIVE_UPS=1 TRIES=1
check holds atomic_lock GIVE_UPS=1 HASTE=1
# Take-overs from the living, the slow and the dead.
check holds atomic_lock TAKE_OVER STEALS=1 GRANTS
check holds atomic_lock TAKE_OVER DEATHS
check holds atomic_lock TAKE_OVER CUTS
check holds atomic_lock MEMBERS=2 ROUNDS=2 TAKE_OVER STEALS=1 DEATHS
check holds atomic_lock MEMBERS=2 ROUNDS=2 TAKE_OVER STEALS=1 CUTS
check holds atomic_lock MEMBERS=2 ROUNDS=2 TAKE_OVER STEALS=1 MOST_IN_FRONT=0
check holds atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 HASTE=1 DEATHS CUTS LATE
check holds atomic_lock MEMBERS=2 TAKE_OVER STEALS=2 HASTE=1 GIVE_UPS=1 RENEWALS=1
# A beat of one bit: the second renewal carries.
check holds atomic_lock MEMBERS=2 TAKE_OVER STEALS=2 RENEWALS=4
check holds atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 RENEWALS=2 DEATHS CUTS LATE
check cycles atomic_lock MEMBERS=2 ROUNDS=2 GIVE_UPS=2
check cycles atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 CUTS DEATHS
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 BUG_NO_CONFIRM
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 BUG_SAME_VALUE
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 BUG_BLIND_RELEASE
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 RENEWALS=1 BUG_OLD_SIGHT
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 RENEWALS=2 BUG_BEAT_WRAPS
check assertion atomic_lock TAKE_OVER STEALS=1 GRANTS BUG_HINT_FIRST
check assertion atomic_lock TAKE_OVER STEALS=1 BUG_LINK_UNTAGGED
check assertion atomic_lock MEMBERS=2 ROUNDS=2 GIVE_UPS=1 BUG_REQUEUES
check stuck atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 DEATHS BUG_NO_LOOK
check stuck atomic_lock GIVE_UPS=1 HASTE=1 BUG_LEAVES_BLINDLY
check assertion atomic_lock TAKE_OVER STEALS=1 REACH_STALE_GRANT
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 REACH_REFUSED
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 REACH_LATE_ANSWER
check assertion atomic_lock MEMBERS=2 TAKE_OVER STEALS=1 RENEWALS=2 REACH_CARRY
check assertion atomic_lock GIVE_UPS=1 REACH_PASSED_OVER
check assertion atomic_lock MEMBERS=2 ROUNDS=2 GIVE_UPS=1 REACH_NEW_HEAD

wait
print_finished
if [[ $printed -ne $started ]]; then
  fail "all checks" "only $printed of $started gave a verdict" "$results" || failed=$((failed + 1))
fi
if [[ $failed -eq 0 && $keep_build -eq 0 ]]; then
  rm -rf "$build"
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
