#!/usr/bin/env bash
# HAUL_NO_INSTALL=1 make run: names the packages that are missing, installs nothing, builds nothing.
set -euo pipefail

for tool in make env; do
  if ! command -v "$tool" > /dev/null; then
    echo "skipped: $tool is missing; install it"
    exit 77
  fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"

fail() {
  echo "no-install test: $1" >&2
  cat "$work/output" >&2
  exit 1
}

# Stand-ins for what knows, installs and builds packages. $work/absent lists the missing ones; whatever
# would change the machine leaves a line in $work/marker.
stub() { cat > "$work/bin/$1" && chmod +x "$work/bin/$1"; }
stub dpkg-query << EOF
#!/bin/sh
for name in "\$@"; do :; done
grep -qx "\$name" "$work/absent" && exit 1
echo installed
EOF
for tool in apt-get cmake; do
  stub "$tool" << EOF
#!/bin/sh
echo "$tool \$*" >> "$work/marker"
exit 1
EOF
done
stub sudo << 'EOF'
#!/bin/sh
exec "$@"
EOF

# $1: HAUL_NO_INSTALL. The exit status of make run.
run() {
  rm -f "$work/marker"
  local status=0
  env -u MAKEFLAGS -u MAKELEVEL HAUL_NO_INSTALL="$1" PATH="$work/bin:$PATH" \
    make -C "$E2E_SOURCE" --no-print-directory run BUILD="$work/build" > "$work/output" 2>&1 || status=$?
  echo $status
}

printf 'libfmt-dev\nlibcli11-dev\n' > "$work/absent"
[ "$(run 1)" != 0 ] || fail "make run succeeds without its packages"
grep -q 'missing packages: libfmt-dev libcli11-dev ' "$work/output" || fail "the packages are not named"
grep -q 'apt-get install' "$work/output" || fail "it does not say what to do"
! grep -qE 'ninja-build|g\+\+' "$work/output" || fail "it names packages that are here"
[ ! -e "$work/marker" ] || fail "it ran: $(cat "$work/marker")"
[ ! -e "$work/build" ] || fail "it went on to the build"

# The stand-ins are heard at all: without the variable, just the missing ones would be installed.
[ "$(run '')" != 0 ] || fail "make run succeeds although nothing could be installed"
grep -q '^apt-get install .*--no-install-recommends .*libfmt-dev libcli11-dev$' "$work/marker" ||
  fail "nothing asks for the missing packages"

# Nothing missing: the variable changes nothing, the build begins (and ends at the stand-in).
: > "$work/absent"
[ "$(run 1)" != 0 ] || fail "the build cannot have worked"
! grep -q 'missing packages' "$work/output" || fail "it names packages that are here"
grep -q '^cmake ' "$work/marker" || fail "it does not begin to build"
! grep -q '^apt-get' "$work/marker" || fail "it installs though nothing is missing"
