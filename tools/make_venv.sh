#!/bin/sh
# Makes .venv with exactly what requirements.lock names. Uses uv; fetches it with pip where it is missing.
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

[ -x .venv/bin/python ] || $uv venv --quiet --python "$python" .venv
$uv pip sync --quiet --python .venv/bin/python requirements.lock
$uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
