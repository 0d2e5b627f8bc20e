# Virtual environments of Python, for peers.sh, site.sh and python.sh, which source this and define give_up SENTENCE.

# The distribution's Python outlives those that people build themselves.
find_python() {
  if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else command -v python3; fi
}

# make_venv PYTHON WHERE WHAT PIP-ARGUMENT...: makes the environment WHERE anew, and has pip install the arguments there.
# WHAT names them in sentences. What is said meanwhile is in WHERE.log, which stays where it fails.
make_venv() {
  python=$1 where=$2 what=$3 log=$2.log
  shift 3
  echo "haul: installing $what into $where" >&2
  rm -rf "$where"
  # Without ensurepip (Debian: python3-venv) another pip fills the environment.
  if "$python" -m venv "$where" > "$log" 2>&1; then
    pip="$where/bin/python -m pip"
  elif "$python" -m pip --version >> "$log" 2>&1 &&
    "$python" -m venv --clear --without-pip "$where" >> "$log" 2>&1; then
    pip="$python -m pip --python $where/bin/python"
  else
    rm -rf "$where"
    give_up "$what cannot be installed without Python's venv module; install python3-venv (log: $log)"
  fi
  if ! $pip install --quiet --disable-pip-version-check "$@" >> "$log" 2>&1; then
    rm -rf "$where"
    give_up "pip could not install $what: is there a network or a mirror? (log: $log)"
  fi
  rm -f "$log"
}
