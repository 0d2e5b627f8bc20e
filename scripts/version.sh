#!/bin/sh
# Prints haul's version, which is written once, in include/haul/haul.h (or in a header of these words on standard input:
# scripts/version.sh -).
set -eu
if [ "${1:-}" != - ]; then exec < "$(dirname "$0")/../include/haul/haul.h"; fi
sed -n 's/^#define HAUL_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' | paste -sd .
