#!/bin/sh
# Installs a build, or removes what was installed, exactly.
# Usage: scripts/install.sh install|uninstall BUILD PREFIX [DESTDIR]
# `install` records its files and the directories it created in BUILD/installed/ (or HAUL_INSTALL_RECORDS);
# `uninstall` removes those.
set -eu

if [ $# -lt 3 ]; then
  echo "usage: scripts/install.sh install|uninstall BUILD PREFIX [DESTDIR]" >&2
  exit 2
fi
action=$1 build=$2 prefix=$3 destdir=${4:-}
case $prefix in /*) ;; *)
  echo "haul: PREFIX must be an absolute path, not '$prefix'; give one like /usr/local" >&2; exit 2 ;; esac
case $destdir in '' | /*) ;; *)
  echo "haul: DESTDIR must be an absolute path, not '$destdir'; give one like \$PWD/stage" >&2; exit 2 ;; esac
prefix=${prefix%/} destdir=${destdir%/}

# One record for each place, so that uninstalling one never touches another.
records=${HAUL_INSTALL_RECORDS:-$build/installed}
record=$records/$(printf '%s' "$destdir:$prefix" | cksum | tr ' ' -)

refresh_linker_cache() {
  if [ -z "$destdir" ] && [ "$(id -u)" = 0 ] && command -v ldconfig > /dev/null; then
    ldconfig || true
  fi
}

do_install() {
  mkdir -p "$records"
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' EXIT
  DESTDIR=$stage cmake --install "$build" --prefix "${prefix:-/}" > /dev/null
  touch "$record.dirs" "$record.files"
  # Directories that are not there yet are ours to remove; the record keeps those of earlier installs.
  { cat "$record.dirs"
    (cd "$stage" && find . -mindepth 1 -type d) | sed 's|^\.||' | while IFS= read -r dir; do
      [ -d "$destdir$dir" ] || printf '%s\n' "$destdir$dir"
    done
    [ -z "$destdir" ] || [ -d "$destdir" ] || printf '%s\n' "$destdir"
  } | sort -u > "$record.new"
  mv "$record.new" "$record.dirs"
  { cat "$record.files"
    (cd "$stage" && find . ! -type d) | sed "s|^\.|$(printf '%s' "$destdir" | sed 's/[&|\\]/\\&/g')|"
  } | sort -u > "$record.new"
  mv "$record.new" "$record.files"
  DESTDIR=$destdir cmake --install "$build" --prefix "${prefix:-/}" > /dev/null || {
    echo "haul: cannot install below $destdir$prefix; use sudo, or give another PREFIX (PREFIX=\$HOME/.local)" >&2
    exit 1
  }
  refresh_linker_cache
  echo "haul: installed below $destdir$prefix: $(wc -l < "$record.files") files"
}

do_uninstall() {
  if [ ! -f "$record.files" ]; then
    echo "haul: nothing is recorded as installed below $destdir$prefix; give the PREFIX, DESTDIR and BUILD that were given to 'make install'" >&2
    exit 1
  fi
  while IFS= read -r file; do
    rm -f "$file"
  done < "$record.files"
  # Deepest first. What others put into a directory keeps it.
  sort -r "$record.dirs" | while IFS= read -r dir; do
    rmdir "$dir" 2> /dev/null || true
  done
  count=$(wc -l < "$record.files")
  rm -f "$record.files" "$record.dirs"
  refresh_linker_cache
  echo "haul: removed $count files below $destdir$prefix"
}

case $action in
  install) do_install ;;
  uninstall) do_uninstall ;;
  *) echo "usage: scripts/install.sh install|uninstall BUILD PREFIX [DESTDIR]" >&2; exit 2 ;;
esac
