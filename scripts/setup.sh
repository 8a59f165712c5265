# Sourced by demo, test, check and docs: `setup FILE...` makes .venv and installs the requirement files when they changed.
# Where no GPU is, PyTorch and FAISS are those for the CPU: the lock would bring gigabytes of CUDA's libraries.

unset PYTHONDONTWRITEBYTECODE # Python keeps what it compiled; an installer would compile what is never imported
CPU_WHEELS=https://download.pytorch.org/whl/cpu
PATH=$PATH:$PWD/.venv/bin # has uv where the system has none

# True if a package, module or distribution of this name is in .venv; importing it would take longer.
has() {
  ls -d .venv/lib/python3*/site-packages/$1 >/dev/null 2>&1
}

# The requirement files with the builds for the CPU.
for_cpu() {
  sed -E -e '/^faiss-gpu==/d' -e 's/^(faiss-cpu==[^;]*);.*/\1/' -e 's/^(torch==[^;+]+)$/\1+cpu/' "$@"
}

# Installs into `venv`, by default .venv. uv reads no settings of pip, so it is given those that say where packages are;
# like pip it takes the best version of all indexes.
uv_install() {
  local name value word places=()
  while IFS== read -r name value; do
    value=${value//\'/}
    case ${name##*.} in
      index-url | extra-index-url | find-links) for word in ${value//\\n/ }; do places+=("--${name##*.}" "$word"); done ;;
      cert) local -x SSL_CERT_FILE=$value ;;
    esac
  done < <(.venv/bin/python -m pip config list)
  uv pip install --quiet --python "${venv:-.venv}/bin/python" --index-strategy unsafe-best-match \
    ${places[@]+"${places[@]}"} "$@"
}

pip_install() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}

install_packages() {
  uv_install "$@" 2>/dev/null || pip_install "$@"
}

# PyTorch comes from its own index only where no other has it: an unreachable one costs a pause for every package.
install_for_cpu() {
  for_cpu "$@" >.venv/for-cpu.txt
  install_packages -r .venv/for-cpu.txt 2>.venv/for-cpu.log && return
  pip_install --retries 1 --timeout 15 --no-deps --extra-index-url "$CPU_WHEELS" \
    "$(grep '^torch==' .venv/for-cpu.txt)" 2>>.venv/for-cpu.log && install_packages -r .venv/for-cpu.txt
}

# An environment keeps the builds that it began with: faiss-cpu and faiss-gpu own the same files.
install() {
  if [ "$(uname -sm)" = "Linux x86_64" ] && ! has 'faiss_gpu-*' &&
    { has 'faiss_cpu-*' || ! { [ -e /proc/driver/nvidia ] || nvidia-smi -L; } >/dev/null 2>&1; }; then
    echo "No NVIDIA driver here: PyTorch and FAISS for the CPU (delete .venv to choose again)" >&2
    install_for_cpu "$@" && return
    if has 'faiss_cpu-*'; then
      echo "Error: PyTorch for the CPU cannot be had now (.venv/for-cpu.log); try again" >&2
      return 1
    fi
    echo "They cannot be had from the package index or $CPU_WHEELS: the lock as it is, CUDA's libraries included" >&2
  fi
  install_packages $(printf -- '-r %s ' "$@")
}

make_environment() {
  local python
  for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 python ""; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && break
  done
  [ -n "$python" ] || { echo "Error: Python 3.10 or newer is needed; install it or set PYTHON" >&2; return 1; }
  echo "Making the environment .venv with $python ..." >&2
  "$python" -m venv .venv || { rm -rf .venv; echo "Error: $python cannot make a virtual environment (on Debian: apt install python3-venv)" >&2; return 1; }
  command -v uv >/dev/null || pip_install uv 2>/dev/null || true
}

setup() {
  [ -x .venv/bin/python ] || make_environment || return 1
  local stamp
  stamp=$(cat "$@" | .venv/bin/python -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')
  [ -e ".venv/installed-$stamp" ] && return
  echo "Installing requirements into .venv (a few minutes the first time) ..." >&2
  install "$@" && touch ".venv/installed-$stamp"
}
