#!/usr/bin/env bash
# What a user of the installed library does: build every example with pkg-config and with CMake against
# a staged installation, run it, compare its output; then uninstall and find nothing left.
# E2E_MAKE=1 installs by `make install` and `make uninstall` (a CI step); else by what those call.
set -euo pipefail
# (No `| grep -q` under pipefail: grep leaves at the first match, and who still writes ends by SIGPIPE, which then counts.)

if [ -n "${E2E_SANITIZE:-}" ]; then
  echo "skipped: an installed sanitizer build is nobody's use"
  exit 77
fi
for tool in pkg-config cmake; do
  if ! command -v "$tool" > /dev/null; then
    echo "skipped: $tool is missing; install it"
    exit 77
  fi
done

work=$(mktemp -d)
cleanup() {
  if [ -n "${serving:-}" ]; then "$usr/bin/haul" serve --stop > /dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
stage=$work/stage
usr=$stage/usr

fail() {
  echo "install test: $1" >&2
  exit 1
}

# A build directory of our own: the records of an installation belong to its BUILD, and the tests may
# run as a user who may not write there.
installer() {
  if [ "${E2E_MAKE:-}" = 1 ]; then
    make -C "$E2E_SOURCE" --no-print-directory "$1" BUILD="$E2E_BUILD" DESTDIR="$stage" PREFIX=/usr
  else
    HAUL_INSTALL_RECORDS="$work/records" \
      "$E2E_SOURCE/scripts/install.sh" "$1" "$E2E_BUILD" /usr "$stage"
  fi
}

installer install
export LD_LIBRARY_PATH=$usr/lib
export PKG_CONFIG_PATH=$usr/lib/pkgconfig
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1

for file in lib/libhaul.so.0 lib/libhaul.so include/haul/haul.h include/haul/haul.hpp share/doc/haul/LICENSE \
  lib/libhaul-atomic.so.0 include/haul/atomic.h include/haul/atomic.hpp; do
  [ -e "$usr/$file" ] || fail "$file was not installed"
done
if [ -e "$E2E_BUILD/lib/libhaul-fi.so" ]; then
  for library in libhaul-fi.so libhaul-mpi.so; do
    [ -e "$usr/lib/$library" ] || fail "lib/$library was not installed"
  done
  env -u LD_LIBRARY_PATH ldd "$usr/lib/libhaul-fi.so" | grep "libhaul.so.0 => $usr/lib/" > /dev/null || fail "the provider finds another libhaul.so.0"
  if [ -n "${E2E_HAUL:-}" ]; then
    env -u LD_LIBRARY_PATH "$usr/bin/haul" info | grep -F "$usr/lib/libhaul-fi.so" > /dev/null ||
      fail "the installed haul does not find its provider"
  fi
fi
version=$("$E2E_SOURCE/scripts/version.sh" - < "$usr/include/haul/haul.h")
[ "$(pkg-config --modversion haul)" = "$version" ] || fail "haul.pc and haul.h name different versions"
if [ -n "${E2E_HAUL:-}" ]; then
  env -u LD_LIBRARY_PATH "$usr/bin/haul" --version | grep -F "$version" > /dev/null ||
    fail "the installed haul does not run, or --version lacks $version"
  for file in man/man1/haul.1 bash-completion/completions/haul zsh/site-functions/_haul \
    fish/vendor_completions.d/haul.fish doc/haul/haul.logrotate; do
    [ -s "$usr/share/$file" ] || fail "share/$file was not installed, or is empty"
  done
  [ -s "$usr/lib/systemd/user/haul.socket" ] || fail "haul.socket was not installed, or is empty"
  grep -q '^ExecStart=/usr/bin/haul serve' "$usr/lib/systemd/user/haul.service" ||
    fail "haul.service does not start the installed haul"
fi

if [ -e "$E2E_BUILD/manual/done" ]; then
  for page in haul haul_copy haul_atomic_connect; do
    [ -s "$usr/share/man/man3/$page.3" ] || fail "share/man/man3/$page.3 was not installed, or is empty"
  done
fi

if [ -e "$E2E_BUILD/bin/bcisim" ]; then
  XDG_CACHE_HOME=$work/cache MPLCONFIGDIR=$work/matplotlib "$usr/bin/bcisim" figures --out "$work/figures" \
    --instructions 2K --sensitivity-instructions 1K > "$work/output" 2> "$work/errors" ||
    fail "the installed bcisim figures exits $?: $(tail -3 "$work/errors")"
  grep -qF "5 traces of $usr/share/haul/bcisim/traces, " "$work/output" ||
    fail "the installed bcisim does not take the installed traces: $(tail -1 "$work/output")"
  [ -s "$work/figures/figure-2.png" ] || grep -qF 'for want of matplotlib' "$work/errors" ||
    fail "the installed bcisim neither plots nor says why"
fi

# examples/share needs the node's service: one of its own.
if [ -n "${E2E_HAUL:-}" ]; then
  export HAUL_SERVICE_SOCKET=$work/service.sock
  "$usr/bin/haul" serve --daemon --idle-exit 600 > /dev/null && serving=1 ||
    fail "haul serve --daemon does not start"
fi

check_output() {
  local how=$1 name=$2 program=$3
  "$program" > "$work/output" 2> "$work/errors" ||
    fail "examples/$name built by $how exits $?: $(tail -3 "$work/errors")"
  diff -u "$E2E_SOURCE/examples/$name/expected.txt" "$work/output" >&2 ||
    fail "examples/$name built by $how prints something else than its expected.txt"
}

mkdir "$work/cmake"
cat > "$work/cmake/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.22)
project(examples LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(haul $version REQUIRED)
find_package(Threads REQUIRED)
END
names=()
for folder in "$E2E_SOURCE"/examples/*/; do
  name=$(basename "$folder")
  if [ "$name" = share ] && [ -z "${serving:-}" ]; then continue; fi
  source=$(find "$folder" -maxdepth 1 -name 'main.c*' -print -quit)
  [ -n "$source" ] || fail "examples/$name has no main.c or main.cpp"
  case $source in *.c) compiler='cc -std=c11' ;; *) compiler='c++ -std=c++20' ;; esac
  package=haul target=haul::haul
  case $name in atomic*) package=haul-atomic target=haul::atomic ;; esac
  # Warnings of the installed headers count, so they are no system headers here.
  $compiler -O2 -Wall -Wextra -Wpedantic -Werror "$source" -o "$work/$name" \
    $(pkg-config --cflags --libs $package) -pthread
  check_output pkg-config "$name" "$work/$name"

  cat >> "$work/cmake/CMakeLists.txt" << END
add_executable(example_$name $source)
target_link_libraries(example_$name PRIVATE $target Threads::Threads)
END
  names+=("$name")
done
[ ${#names[@]} -gt 0 ] || fail "there is no example below $E2E_SOURCE/examples"
cmake -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$usr" > "$work/log" 2>&1 &&
  cmake --build "$work/cmake/build" >> "$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail "the examples do not build with find_package(haul)"; }
for name in "${names[@]}"; do check_output CMake "$name" "$work/cmake/build/example_$name"; done

if [ -n "${serving:-}" ]; then "$usr/bin/haul" serve --stop > /dev/null || fail "haul serve --stop fails"; fi
serving=
installer uninstall
[ ! -e "$stage" ] || fail "uninstall left: $(find "$stage" | head -20)"
echo "install test: ${#names[@]} examples, built twice, print what they should; uninstall left nothing"
