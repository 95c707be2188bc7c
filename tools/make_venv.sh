#!/bin/sh
# Makes .venv with exactly what requirements.lock names, and Anabranch itself. Uses uv; fetches it with pip where it is
# missing. With a folder and a lock file as arguments: another environment, of what that file names alone.
set -eu
cd "$(dirname "$0")/.."

python=""
for candidate in python3 python3.13 python3.12 python3.11 python; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        python=$(command -v "$candidate")
        break
    fi
done
if [ -z "$python" ]; then
    echo "anabranch: Python 3.11 or later is needed, and none was found on the PATH" >&2
    exit 1
fi

if command -v uv >/dev/null 2>&1; then
    uv=uv
elif "$python" -m uv --version >/dev/null 2>&1; then
    uv="$python -m uv"
else
    echo "anabranch: fetching uv with pip" >&2
    if "$python" -m venv .venv-uv >/dev/null 2>&1 && .venv-uv/bin/python -m pip install --quiet uv; then
        uv=.venv-uv/bin/uv
    else
        "$python" -m pip install --quiet --user --break-system-packages uv || "$python" -m pip install --quiet --user uv
        uv="$python -m uv"
    fi
fi

if [ $# -eq 2 ]; then
    [ -x "$1/bin/python" ] || $uv venv --quiet --python "$python" "$1"
    $uv pip sync --quiet --python "$1/bin/python" "$2"
    exit 0
fi

[ -x .venv/bin/python ] || $uv venv --quiet --python "$python" .venv
$uv pip sync --quiet --compile-bytecode --python .venv/bin/python requirements.lock
$uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
.venv/bin/python -m compileall -q src/anabranch

# The kernels are compiled once, here, so that no query waits for it: two parts at a time. The cache lies beside them.
echo "anabranch: compiling the kernels, once (half a minute)" >&2
.venv/bin/python -m anabranch.delta.warm slides &
.venv/bin/python -m anabranch.delta.warm traces windows changes connectivity paths
wait
