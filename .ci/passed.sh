# Steps of .ci/run that have passed with the same files, tools and machine, for .ci/run, which sources this. A change
# of the documents, or of a room that a step does not build, leaves the longest steps as they were; these are not run
# again for a week. HAUL_CI_FULL=1 runs all of them, and so does naming them.
#
# A record is an empty file whose name is a sum over all that the step reads, so nothing but the file's age is trusted.
passed_dir=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/haul/ci
passed_for_days=7

# What a step does not read, as a regular expression of paths: what is not named is read. Steps without an entry always
# run: they are what a newcomer does, and what takes seconds.
texts='^(README|CHANGELOG|CONTRIBUTING|LICENSE)|\.md$|^docs/|^manual/(examples|man|site)/|^abi/|^debian/|^packaging/|^python/|^pyproject|^examples/|^rust/|^systemd/|^scripts/(abi|check_symbols|install|check_floors|site)'
commands='^(cli|bench)/|^tests/(e2e/.*\.sh|mpi/)'
declare -A unread=(
  [long]="$texts|$commands|^sim/"
  [mpi]="$texts|^(bench|sim|atomic)/|^tests/(unit|edges|atomic|transparent|model|service|fuzz|stress|crash|conformance)/"
  [soak]="$texts|$commands|^(sim|atomic)/|^tests/(unit|edges|atomic|transparent|model|mpi)/"
  [python]="^docs/|^abi/|^tests/|^(sim|bench|devices|preload|debian|packaging|rust|manual|examples)/"
  [packages]="^docs/(design|results)/|^abi/|^tests/"
  [clang]="$texts|$commands|^tests/(edges|transparent|model|service|stress|crash|conformance)/"
  [asan]="$texts|^(cli|bench)/|^tests/(mpi|transparent|model|stress)/"
  [tsan]="$texts|$commands|^sim/|^tests/(transparent|model|crash)/"
  [tidy]="$texts|^tests/|^scripts/"
)
# (The tests' documents name what models and knobs must be.)
always_read='^tests/model/README\.md$|^docs/guide/knobs\.md$'

# What decides a result besides the files.
machine_facts() {
  uname -srm
  sed -n '/^model name/{p;q}' /proc/cpuinfo
  id -u
  for tool in c++ clang++-14 clang-tidy-14 cmake; do "$tool" --version 2>&1 || true; done
  sed -n 's/^\([a-z0-9][^ ]*\) .*/\1/p' scripts/packages.txt | xargs dpkg-query -W 2>&1 || true
}

# record_of STEP: the record's path; nothing for a step that always runs.
record_of() {
  local sum
  [ -n "${unread[$1]:-}" ] || return 0
  sum=$({
    printf '%s\n' "$1"
    machine_facts
    source_files '*' | { grep -vE "${unread[$1]}" || true; } | read_with_content
    source_files '*' | { grep -E "$always_read" || true; } | read_with_content
  } | sha256sum)
  printf '%s/%s.%s\n' "$passed_dir" "$1" "${sum%% *}"
}
read_with_content() { xargs -r -d '\n' sh -c 'stat -c "%a %n" "$@"; sha256sum "$@"' sh; }

# has_passed RECORD: is there one? Says so.
has_passed() {
  [ "${HAUL_CI_FULL:-}" != 1 ] && [ -n "$1" ] && [ -n "$(find "$1" -mtime "-$passed_for_days" 2> /dev/null)" ] || return 1
  echo "passed on $(date -r "$1" '+%F %T') with the same files, tools and machine; HAUL_CI_FULL=1 runs it again"
}

# note_passed RECORD, which was made before the step began: from now on that step need not run. (Where nothing can be
# written, it does.)
note_passed() {
  [ -n "$1" ] && mkdir -p "$passed_dir" 2> /dev/null || return 0
  find "$passed_dir" -type f -mtime "+$passed_for_days" -delete 2> /dev/null || true
  : > "$1" 2> /dev/null || true
}
