#!/usr/bin/env bash
# The crates of rust/: their unit, integration and documentation tests, and the example, against the libhaul of this
# build. (`make test-rust` runs this, too, with what it has: without the command haul nothing is granted.)
set -euo pipefail

if [ -n "${E2E_SANITIZE:-}" ]; then
  echo "skipped: a program of Rust does not bring the sanitizer's runtime that this libhaul needs"
  exit 77
fi
if ! cargo --version > /dev/null 2>&1; then
  echo "skipped: cargo is missing; install the Debian package cargo, or Rust from elsewhere (1.63 or newer)"
  exit 77
fi

work=$(mktemp -d)
cleanup() {
  if [ -n "${HAUL_TEST_SERVICE:-}" ]; then "$E2E_HAUL" serve --stop > /dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT

# What cargo has built is kept where the user may write.
CARGO_TARGET_DIR=$E2E_BUILD/rust
mkdir -p "$CARGO_TARGET_DIR" 2> /dev/null && [ -w "$CARGO_TARGET_DIR" ] || CARGO_TARGET_DIR=$work/rust
export CARGO_TARGET_DIR CARGO_HOME=$CARGO_TARGET_DIR/home
HAUL_LIB_DIR=$(dirname "$E2E_LIBRARY")
export HAUL_LIB_DIR
export LD_LIBRARY_PATH=$HAUL_LIB_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Its mover needs no lease, as other tests run beside it; figures are not kept; a service of its own.
export HAUL_MOVER_LEASE=off XDG_CACHE_HOME=$work/cache HAUL_SERVICE_SOCKET=$work/service.sock
unset HAUL_TEST_SERVICE
if [ -x "${E2E_HAUL:-}" ]; then
  "$E2E_HAUL" serve --daemon --idle-exit 600 > /dev/null
  export HAUL_TEST_SERVICE=1
fi

cd "$E2E_SOURCE/rust"
cargo test --quiet --offline --locked
cargo run --quiet --offline --locked --example checkpoint -- 4 3
