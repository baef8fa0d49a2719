#!/usr/bin/env bash
# Set up vLLM for the CPU in a virtual environment of its own, and run the tests marked "vllm" against the real engine
# and its server, from outside this directory. Arguments go to pytest.
# VLLM_VENV says where the environment is made or found (3.5 GB).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=${VLLM_VENV:-$root/.venv-vllm}
unset VLLM_VENV  # vLLM warns of variables that it does not know
bash "$here/vllm/setup.sh" "$venv"
venv=$(cd "$venv" && pwd)
for model in smollm2 random; do
    [ -e "$venv/models/$model/model.safetensors" ] || "$venv/bin/python" "$here/models.py" "$model" "$venv/models/$model"
done
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cd "$outside"
export TRIEAUTO_TEST_MODELS="$venv/models" HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false \
    VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=2 TORCHDYNAMO_DISABLE=1
"$venv/bin/python" -m pytest --config-file "$root/pyproject.toml" --rootdir "$root" -m vllm "$here/vllm" "$@"
