#!/usr/bin/env bash
# Put the official JSON Schema Test Suite where tests and examples look for it: share/json-schema-test-suite of a Python
# environment. It comes with the source distribution of the package jsonschema, in the version of constraints.txt.
#
#     bash tests/json_schema_suite.sh .venv-test/bin/python
set -euo pipefail
python=${1:?which Python? for example .venv-test/bin/python}
constraints=$(dirname "${BASH_SOURCE[0]}")/../constraints.txt
pinned=$(grep '^jsonschema==' "$constraints")
suite=$("$python" -c 'import sys; print(sys.prefix)')/share/json-schema-test-suite
if [ "$(cat "$suite/version" 2>/dev/null)" = "$pinned" ]; then exit 0; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m pip --disable-pip-version-check --quiet download --no-deps --no-binary jsonschema --dest "$folder" "$pinned"
tar -xzf "$folder"/jsonschema-*.tar.gz -C "$folder"
rm -rf "$suite"
mkdir -p "$(dirname "$suite")"
mv "$folder"/jsonschema-*/json "$suite"
echo "$pinned" > "$suite/version"
