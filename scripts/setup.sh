# Sourced by demo, test and check: `setup FILE...` makes .venv and installs the requirement files when they changed.
# Where no GPU is, PyTorch and FAISS are those for the CPU: the lock would bring gigabytes of CUDA's libraries.

# Python keeps what it compiled. An installer compiles nothing: most modules of these packages are never imported.
unset PYTHONDONTWRITEBYTECODE
CPU_WHEELS=https://download.pytorch.org/whl/cpu

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

# True if a package or module of this name is in the environment; importing it would take longer.
has() {
  ls -d .venv/lib/python3*/site-packages/"$1" >/dev/null 2>&1
}

# True on Linux for x86-64, the one system the lock has CUDA for, without NVIDIA's driver.
without_gpu() {
  [ "$(uname -sm)" = "Linux x86_64" ] && [ ! -e /proc/driver/nvidia ] &&
    ! { command -v nvidia-smi && nvidia-smi -L; } >/dev/null 2>&1
}

# The requirement files with the builds for the CPU.
for_cpu() {
  sed -E -e '/^faiss-gpu==/d' -e 's/^(faiss-cpu==[^;]*);.*/\1/' -e 's/^(torch==[^;+]+)$/\1+cpu/' "$@"
}

pip_install() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}

# The words of one setting in what `pip config list` printed.
setting() {
  sed -nE "s/^[^=]*\.$1='(.*)'\$/\1/p" | head -n 1 | sed 's/\\n/ /g'
}

# Installs into `venv`, by default .venv. uv takes a third of pip's time. It reads no settings of pip, so it is given
# those that say where packages are; like pip it takes the best version of all indexes.
uv_install() {
  has uv || return 1
  local settings name word cert words=(--index-strategy unsafe-best-match)
  settings=$(.venv/bin/python -m pip config list)
  for name in index-url extra-index-url find-links; do
    for word in $(setting $name <<<"$settings"); do
      words+=("--$name" "$word")
    done
  done
  cert=$(setting cert <<<"$settings")
  ${cert:+env SSL_CERT_FILE="$cert"} .venv/bin/python -m uv pip install --quiet --python "${venv:-.venv}/bin/python" "${words[@]}" "$@"
}

install_packages() {
  uv_install "$@" 2>/dev/null || pip_install "$@"
}

# Installs what `for_cpu` printed, PyTorch from its own index where no other has it. An unreachable index costs half a
# minute here and a pause for every package where it is named for all.
install_for_cpu() {
  local torch
  install_packages -r "$1" 2>.venv/for-cpu.log && return
  torch=$(grep '^torch==' "$1")
  pip_install --retries 1 --timeout 15 --no-deps --extra-index-url "$CPU_WHEELS" "$torch" 2>>.venv/for-cpu.log || return 1
  install_packages -r "$1"
}

# An environment keeps the builds that it began with: faiss-cpu and faiss-gpu own the same files.
install() {
  if [ -e .venv/for-cpu ] || { without_gpu && ! has torch; }; then
    echo "No NVIDIA driver here: PyTorch and FAISS for the CPU (delete .venv to choose again)" >&2
    for_cpu "$@" >.venv/for-cpu.txt
    if install_for_cpu .venv/for-cpu.txt; then
      touch .venv/for-cpu
      return
    fi
    if [ -e .venv/for-cpu ]; then
      echo "Error: PyTorch for the CPU cannot be had now (.venv/for-cpu.log); try again" >&2
      return 1
    fi
    echo "They cannot be had from the package index or $CPU_WHEELS: the lock as it is, CUDA's libraries included" >&2
  fi
  install_packages $(printf -- '-r %s ' "$@")
}

setup() {
  local python stamp
  if [ ! -x .venv/bin/python ]; then
    python=$(python_3_10)
    echo "Making the environment .venv with $python ..." >&2
    "$python" -m venv .venv || { rm -rf .venv; echo "Error: $python cannot make a virtual environment (on Debian: apt install python3-venv)" >&2; return 1; }
    pip_install uv 2>/dev/null || true
  fi
  stamp=$(cat "$@" | .venv/bin/python -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
  if [ ! -e ".venv/installed-$stamp" ]; then
    echo "Installing requirements into .venv (a few minutes the first time) ..." >&2
    install "$@" || return 1
    touch ".venv/installed-$stamp"
  fi
}
