#!/bin/bash
# What clean_root.sh does in a clean root, as its root: haul's packages lie in /packages, those they depend on in apt's
# cache.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
cd /packages
fail() { echo "packages: $1" >&2; exit 1; }

apt_get() { apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@" > /tmp/log 2>&1 || { cat /tmp/log >&2; fail "apt-get $* fails"; }; }
install() { apt_get install "$@"; }
purge_all() { apt_get purge $(installed); apt_get -o APT::AutoRemove::SuggestsImportant=false autoremove --purge; }
installed() { dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^[a-z-]* \(\(lib\|python3-\)\{0,1\}haul.*\)/\1/p'; }
# Everything but what apt, dpkg and adduser (for packages that some of haul's depend on) note for themselves.
files() {
  find / -xdev \( -path /packages -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /run -o -path "/etc/gshadow-" \) -prune -o \
    -path '/var/lib/dpkg/*' ! -path '/var/lib/dpkg/info/*' -prune -o -printf '%y %m %U:%G %p %l\n' | sort
}
user() {
  setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs env -i PATH=/usr/bin:/bin HOME=/tmp/home TERM=dumb "$@"
}
# says COMMAND... WORDS: the user's command ends with 0 and prints a line that matches the last argument.
says() {
  local words=${*: -1}
  set -- "${@:1:$#-1}"
  user "$@" > /tmp/said 2>&1 || { cat /tmp/said >&2; fail "$* exits $?"; }
  grep -qe "$words" /tmp/said || { cat /tmp/said >&2; fail "$* does not say '$words'"; }
}
mkdir -m 777 /tmp/home

# A source of packages as any other; the network is not asked.
echo 'deb [trusted=yes] file:/packages ./' > /etc/apt/sources.list.d/haul.list
apt-get -qq -o Dir::Etc::SourceList=sources.list.d/haul.list -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0 update
mapfile -t packages < <(sed -n 's/^Package: //p' Packages)

# What a package needs from nothing on, itself and those that libc6 needs left out.
needs() {
  apt-get -s -qq --no-install-recommends -o Dir::State::status=/dev/null install "$1" |
    awk -v own="$1" '$1 == "Inst" && $2 != own && $2 !~ /^(libc6|libgcc-s1|libcrypt1|gcc-12-base)$/ { print $2 }' | sort | paste -sd ' '
}
expect_needs() {
  local found
  found=$(needs "$1")
  [ "$found" = "$2" ] || fail "$1 needs '$found', where '$2' is allowed"
}
expect_needs libhaul0 ''
expect_needs libhaul-atomic0 ''
expect_needs haul-mpi libhaul0
expect_needs haul-plugin-cuda libhaul0
expect_needs libhaul-dev 'libhaul-atomic0 libhaul0'
expect_needs haul 'libelf1 libfmt9 libhaul-atomic0 libhaul0 libstdc++6 zlib1g'
expect_needs haul-atomic 'haul libelf1 libfmt9 libhaul-atomic0 libhaul0 libstdc++6 zlib1g'

files > /tmp/before
for package in libhaul0 libhaul-atomic0 haul-mpi haul; do
  install "$package"
  for file in $(dpkg -L "$package" | grep -E '\.so(\.|$)|^/usr/bin/.'); do
    ! ldd "$file" | grep 'not found' >&2 || fail "$file of $package lacks a library"
  done
  [ $package != haul ] || says haul info 'libhaul-dsa.so cannot be loaded; install haul-plugin-dsa'
  purge_all
done
files > /tmp/after
diff /tmp/before /tmp/after > /tmp/left || fail "the base packages, purged, leave or change: $(head -20 /tmp/left)"

install "${packages[@]}"
files > /tmp/installed
says haul --version "$(dpkg-query -W -f '${Version}' haul | sed 's/-.*//')"
plugins=/usr/lib/x86_64-linux-gnu/haul
says haul info "$plugins/libhaul-fi.so"
! grep -q 'cannot be loaded' /tmp/said || fail "a plug-in is not found: $(grep 'cannot be loaded' /tmp/said)"
says haul demo 'Every byte'
says haul run --transparent --dry-run -- true "LD_PRELOAD=$plugins/libhaul-mem.so"
says haul run --transparent --report -- cp /usr/bin/haul /tmp/home/copy .
# (A user's attempt ends at the kernel's refusal, and a block responder; timeout ends it.)
for responder in xdp:lo fabric:tcp; do
  user timeout -s INT --preserve-status 2 haul atomic serve --responder $responder > /tmp/said 2>&1 || true
  grep -q 'ends with Ctrl-C' /tmp/said || { cat /tmp/said >&2; fail "haul atomic serve --responder $responder does not serve"; }
  ! grep 'cannot be loaded' /tmp/said >&2 || fail "the plug-in of $responder is not found"
done
says haul completion bash complete
[ ! -d /usr/lib/python3/dist-packages/haul ] ||
  says python3 -c 'import haul; target = bytearray(9 << 20); haul.copy(target, b"x" * (9 << 20)).wait(); haul.atomic.Node(); print(target[-1:])' "b'x'"
says bcisim info /usr/share/haul/bcisim/traces/fio.trace instructions
for page in haul.1 haul-demo.1 haul-knobs.7 bcisim.1; do
  [ -s "/usr/share/man/man${page##*.}/$page.gz" ] || fail "there is no manual page $page"
done
bash -n /usr/share/bash-completion/completions/haul
grep -q '^ExecStart=/usr/bin/haul serve' /usr/lib/systemd/user/haul.service || fail "the service's unit starts another command"

# Over themselves, as an upgrade does it.
apt_get --reinstall install "${packages[@]}"
files | diff /tmp/installed - > /tmp/left || fail "installing again changes: $(head -20 /tmp/left)"
says haul info "$plugins/libhaul-fi.so"

# A program is built with pkg-config.
install gcc libc6-dev pkg-config
user sh -c 'cc -O2 -Wall -Werror main.c -o /tmp/home/example $(pkg-config --cflags --libs haul) -pthread' ||
  fail "examples/copy is not built by pkg-config"
user /tmp/home/example | diff expected.txt - || fail "examples/copy prints something else than its expected.txt"

count=$(installed | wc -l)
apt_get purge gcc libc6-dev pkg-config
purge_all
files > /tmp/after
diff /tmp/before /tmp/after > /tmp/left || fail "all packages, purged, leave or change: $(head -20 /tmp/left)"
echo "packages: $count installed in a clean root, used by an ordinary user, installed again and purged; nothing is left"
