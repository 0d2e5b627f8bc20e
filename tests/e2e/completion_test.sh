#!/bin/bash
# Completion as real shells do it: bash by its function, fish by `complete -C`, zsh at a terminal of its own.
set -u
. "$(dirname "$0")/lib_cli.sh"
here=$(cd "$(dirname "$0")" && pwd)
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data TERM=xterm
mkdir "$work/zsh"
for shell in bash fish zsh; do
  "$haul" completion $shell > "$work/completion.$shell"
  [ -s "$work/completion.$shell" ] || failed "no completion for $shell"
done
cp "$work/completion.zsh" "$work/zsh/_haul"
cd "$work" || exit 1
mkdir files
echo > 'files/a file'

# What each shell offers behind these words, of which the last one is begun ('' if it is to begin).
in_bash() {
  bash -c 'source completion.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _haul; printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
in_fish() { fish -c 'source completion.fish; complete -C $argv[1]' "$*" | cut -f1; }
in_zsh() { timeout 60 zsh "$here/completion_zsh.zsh" "$work/zsh" "$*"; }

# offers SHELL EXPECTED WORDS...: exactly these, in any order.
offers() {
  local shell=$1 expected=$2 found
  shift 2
  found=$("in_$shell" "$@" | sort | paste -sd' ')
  [ "$found" = "$(tr ' ' '\n' <<< "$expected" | sort | paste -sd' ')" ] ||
    failed "$shell offers behind '$*': '$found', not '$expected'"
}
commands=$("$haul" --help | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z]*\) .*/\1/p' | paste -sd' ')
engines=$("$haul" bench --help | tr '\n' ' ' | sed 's/.*every device that opens here), of  *\([^.]*all\) .*/\1/; s/, */ /g')

bash -n completion.bash || failed 'bash does not parse it'
offers bash "$commands --help --version" haul ''
offers bash hide haul bench hi
offers bash 'copy fill' haul explain --op ''
offers bash copy haul explain --op = c
offers bash 'copy fill' haul explain --op =
offers bash 'private shared' haul run --memory ''
offers bash "$engines" haul bench --engine ''
offers bash 'cpu,uring' haul bench --engine cpu,ur
offers bash 'top' haul man to
offers bash knobs haul man kn
offers bash '--reopen-log' haul serve --re
offers bash '' haul serve --metrics ''
offers bash '4 8' haul atomic add --width ''
[ "$(in_bash haul serve --log files/)" = 'files/a file' ] || failed "bash's files: $(in_bash haul serve --log files/)"
in_bash haul run --mpi -- bas | grep -qx bash || failed "bash offers no program behind --"
[ "$(in_bash haul run --mpi -- bash files/)" = 'files/a file' ] || failed "bash's files behind --"

if command -v fish > /dev/null; then
  fish -n completion.fish || failed 'fish does not parse it'
  offers fish "$commands" haul ''
  offers fish hide haul bench hi
  offers fish 'copy fill' haul explain --op ''
  offers fish '--op=copy' haul explain --op=c
  offers fish 'private shared' haul run --memory ''
  offers fish 'cpu,uring' haul bench --engine cpu,ur
  offers fish knobs haul man kn
  offers fish '--reopen-log' haul serve --re
  offers fish '4 8' haul atomic add --width ''
  ! in_fish haul bench atomic '' | grep -qx serve || failed "fish takes bench's suite atomic for the command"
  [ "$(in_fish haul explain --transparent files/)" = 'files/a file' ] || failed 'fish offers no report to explain'
  [ "$(in_fish haul serve --log files/)" = 'files/a file' ] || failed "fish's files: $(in_fish haul serve --log files/)"
  in_fish haul run --mpi -- bas | grep -qx bash || failed 'fish offers no program behind --'
else
  echo "not tested: completion of fish, which is missing (package fish)"
fi

if command -v zsh > /dev/null; then
  # shows WORDS EXPECTED...: on the terminal, among the rest.
  shows() {
    local words=$1 expected found
    found=$(in_zsh "$words")
    shift
    for expected in "$@"; do
      grep -qF -- "$expected" <<< "$found" || failed "zsh shows behind '$words': '$found', no '$expected'"
    done
  }
  zsh -n completion.zsh || failed 'zsh does not parse it'
  # shellcheck disable=SC2086
  shows 'haul ' $commands
  shows 'haul bench hi' 'haul bench hide'
  shows 'haul explain --op ' copy fill
  shows 'haul explain --op=f' --op=fill
  shows 'haul run --memory ' private shared
  shows 'haul bench --engine cpu,ur' cpu,uring
  shows 'haul man kn' knobs
  shows 'haul serve --re' --reopen-log
  shows 'haul serve --log files/' 'files/a\ file'
  shows 'haul run --mpi -- base6' base64
else
  echo "not tested: completion of zsh, which is missing (package zsh)"
fi

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
