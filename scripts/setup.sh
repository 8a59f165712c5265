# Sourced by demo, test and check: `setup FILE...` makes .venv and installs the requirement files when they changed.

python_3_10() {
  local name
  for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 python; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      echo "$name"
      return
    fi
  done
  echo "Error: Python 3.10 or newer is needed; install it or set PYTHON" >&2
  return 1
}

setup() {
  local python stamp
  if [ ! -x .venv/bin/python ]; then
    python=$(python_3_10)
    "$python" -m venv .venv || { rm -rf .venv; echo "Error: $python cannot make a virtual environment (on Debian: apt install python3-venv)" >&2; return 1; }
  fi
  stamp=$(cat "$@" | .venv/bin/python -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
  if [ ! -e ".venv/installed-$stamp" ]; then
    echo "Installing requirements into .venv (a few minutes the first time) ..." >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check $(printf -- '-r %s ' "$@")
    touch ".venv/installed-$stamp"
  fi
}
