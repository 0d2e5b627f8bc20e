# Shell functions that make what a guest boots from, out of Debian packages, as an ordinary user: packages are unpacked,
# not installed, so that no maintainer script runs. For scripts named make_guest.sh, which set `target`, the directory,
# and `stamp`, a sum over all these scripts' words, and then call the functions in their order. What is in the directory
# and has the same stamp is left alone.
suite=bookworm
work=

die() { printf '%s\n' "make_guest.sh: $*" >&2; exit 1; }
say() { if [ -t 2 ]; then printf '%s\n' "guest: $*" >&2; fi; }
need() { command -v "$1" > /dev/null || die "$1 is missing; install the package $2."; }

# What was unpacked may forbid writing to its owner.
clean() { chmod -R u+rwX "$work" 2> /dev/null || true; rm -rf "$work"; }

# begin_guest [TOOL PACKAGE]...: what else is needed. Ends the script where nothing is to be done.
begin_guest() {
  PATH=$PATH:/usr/sbin:/sbin
  need mmdebstrap mmdebstrap
  need cpio cpio
  while [ $# -gt 0 ]; do
    need "$1" "$2"
    shift 2
  done
  [ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
    die "Debian's signing keys are missing; install the package debian-archive-keyring."
  if [ -f "$target/stamp" ] && [ "$(cat "$target/stamp")" = "$stamp" ]; then exit 0; fi
  mkdir -p "$target" || die "$target cannot be made; name a directory where you may write."
  work=$(mktemp -d "$target/.making.XXXXXX") || die "$target cannot be written; name another directory."
  trap clean EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir -p "$work/out" "$work/root" "$work/initrd/bin" "$work/initrd/modules"
}

# unpack_packages PACKAGE,... [PATTERN...]: into $work/root; with patterns of paths, only what they match.
unpack_packages() {
  packages=$1
  shift
  say "fetching and unpacking packages of $suite (half a minute)"
  TMPDIR=$work mmdebstrap --quiet --mode=chrootless --variant=extract --include="$packages" \
    "$suite" "$work/root.tar" 2> "$work/log" < /dev/null || {
    tail -n 5 "$work/log" >&2
    die "mmdebstrap could not fetch the packages; its last lines are above: check the network and its proxy."
  }
  # Device nodes need root; the guest's kernel makes its own.
  tar -C "$work/root" --no-same-owner --exclude='./dev/*' --wildcards -xf "$work/root.tar" "$@" ||
    die "the packages could not be unpacked below $target; is the disk full?"
  rm "$work/root.tar"
  chmod -R u+rwX "$work/root"
  release=$(ls "$work/root/lib/modules")
}

# make_initrd INIT NEXT MODULE...: vmlinuz, and initrd with busybox and the modules, in the order in which they load.
make_initrd() {
  say "making the initrd"
  cp "$work/root/boot/vmlinuz-$release" "$work/out/vmlinuz"
  cp "$work/root/bin/busybox" "$work/initrd/bin/busybox"
  cp "$1" "$work/initrd/init"
  cp "$2" "$work/initrd/next"
  shift 2
  chmod 755 "$work/initrd/init"
  number=10
  for module in "$@"; do
    file=$(find "$work/root/lib/modules/$release" -name "$module.ko")
    [ -n "$file" ] || die "the kernel $release has no module $module; name another kernel package in this script."
    cp "$file" "$work/initrd/modules/$number-$module.ko"
    number=$((number + 1))
  done
  (cd "$work/initrd" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) > "$work/out/initrd"
  echo "kernel=$release" > "$work/out/versions"
}

# end_guest: what was made gets its place.
end_guest() {
  rm -f "$target/stamp"
  mv "$work/out"/* "$target/"
  echo "$stamp" > "$target/stamp"
  say "made in $target"
}
