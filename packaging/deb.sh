#!/bin/sh
# Builds the Debian packages of the committed tree, out of its tarball, and has lintian judge them.
# Usage: packaging/deb.sh DIRECTORY   (what is there of packages is replaced)
# DEB_BUILD_OPTIONS and the other variables of dpkg-buildpackage hold: "nocheck noautodbgsym" builds in less time.
set -eu

if [ $# != 1 ]; then
  echo "usage: packaging/deb.sh DIRECTORY" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
for tool in dpkg-buildpackage:dpkg-dev dh:debhelper lintian:lintian; do
  command -v "${tool%:*}" > /dev/null || {
    echo "haul: ${tool%:*} is missing; install ${tool#*:} (scripts/deps.sh ci installs all that packages need)" >&2
    exit 1
  }
done
mkdir -p "$1"
directory=$(cd "$1" && pwd)
rm -f "$directory"/haul_*.* "$directory"/haul-[0-9]*.tar.gz \
  "$directory"/haul-*.deb "$directory"/libhaul*.deb "$directory"/python3-haul*.deb
tarball=$("$here/dist.sh" "$directory")
source=${tarball%.tar.gz}
rm -rf "$source"
tar -C "$directory" -xf "$tarball"

# Where Debian has no nanobind, the Python package's environment has it; without either, python3-haul is left out.
if ! dpkg-query -W nanobind-dev > /dev/null 2>&1; then
  profile=pkg.haul.nanobind
  HAUL_NANOBIND=$("$here/../scripts/python.sh" nanobind /usr/bin/python3) || {
    profile=pkg.haul.nopython
    echo "haul: python3-haul is left out: nanobind could not be had" >&2
  }
  export HAUL_NANOBIND DEB_BUILD_PROFILES="${DEB_BUILD_PROFILES:-} $profile"
fi

export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-} parallel=$(nproc)"
# Debian's tools hide the home directory, and with it ccache's. It finds what it knows also from a tree that lies elsewhere.
if command -v ccache > /dev/null; then
  CCACHE_DIR=$(ccache --get-config cache_dir) CCACHE_MAXSIZE=$(ccache --get-config max_size) CCACHE_BASEDIR=$source
  export CCACHE_DIR CCACHE_MAXSIZE CCACHE_BASEDIR
fi
started=$(date +%s)
(cd "$source" && dpkg-buildpackage --unsigned-source --unsigned-changes > "$directory/build.log" 2>&1) || {
  grep -vE '^\[[0-9]+/[0-9]+\] ' "$directory/build.log" | tail -n 40 >&2
  echo "haul: dpkg-buildpackage fails; all that it says is in $directory/build.log" >&2
  exit 1
}
built=$(date +%s)
rm -rf "$source"
lintian --fail-on error,warning --tag-display-limit 0 --display-info --pedantic --allow-root "$directory"/haul_*.changes
echo "haul: $(ls "$directory"/*.deb | wc -l) packages in $directory, built in $((built - started)) s, judged in $(($(date +%s) - built)) s"
