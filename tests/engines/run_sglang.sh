#!/usr/bin/env bash
# Set up SGLang for the CPU in a virtual environment of its own, and run the tests marked "sglang" against the real
# engine and its server, from outside this directory. Arguments go to pytest.
# SGLANG_VENV says where the environment is made or found (3.4 GB).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=${SGLANG_VENV:-$root/.venv-sglang}
bash "$here/sglang/setup.sh" "$venv"
venv=$(cd "$venv" && pwd)
for model in smollm2 random; do
    [ -e "$venv/models/$model/model.safetensors" ] || "$venv/bin/python" "$here/models.py" "$model" "$venv/models/$model"
done
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cd "$outside"
export SGLANG_TEST_MODELS="$venv/models" SGLANG_USE_CPU_ENGINE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 \
    TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=1
"$venv/bin/python" -m pytest --config-file "$root/pyproject.toml" --rootdir "$root" -m sglang "$here/sglang" "$@"
