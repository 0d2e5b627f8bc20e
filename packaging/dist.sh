#!/bin/sh
# Writes the committed tree as DIRECTORY/haul-VERSION.tar.gz, the same bytes from every clone, and prints its path.
# Usage: packaging/dist.sh DIRECTORY
set -eu

if [ $# != 1 ]; then
  echo "usage: packaging/dist.sh DIRECTORY" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
directory=$(cd "$1" && pwd)
cd "$root"
if ! command -v git > /dev/null || ! git rev-parse --verify -q HEAD > /dev/null || [ ! -e .git ]; then
  echo "haul: a tarball holds what is committed, and $root is no checkout of git; run this in one" >&2
  exit 1
fi
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  echo "haul: the tarball leaves out changes that are not committed" >&2

name=haul-$(git show HEAD:include/haul/haul.h | scripts/version.sh -)
# git sorts the files, gives them to root, and dates them by the commit. Its settings may say otherwise of their modes.
git -c tar.umask=0022 archive --format=tar --prefix="$name/" --output="$directory/$name.tar" HEAD
gzip -9nf "$directory/$name.tar"
echo "$directory/$name.tar.gz"
