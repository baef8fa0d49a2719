#!/usr/bin/env bash
# Run the tests of a serving engine against the real engine and its server, on the CPU, from outside this directory.
# Arguments after the engine's name go to pytest.
# usage: run.sh sglang|vllm [...]
# ENGINES_VENV says where its environment is made or found (by default .venv-sglang or .venv-vllm beside the package).
set -euo pipefail
engine=${1:?usage: run.sh sglang|vllm [...]}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=${ENGINES_VENV:-$root/.venv-$engine}
bash "$here/setup.sh" "$engine" "$venv"
venv=$(cd "$venv" && pwd)
rm -rf "$root/build"
"$venv/bin/python" -m pip --disable-pip-version-check --quiet install --force-reinstall --no-deps "$root"
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cd "$outside"
export TRIEAUTO_TEST_MODELS="$venv/models" HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
case $engine in
    sglang) export SGLANG_USE_CPU_ENGINE=1 OMP_NUM_THREADS=1 ;;
    vllm) export VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=2 \
        TORCHDYNAMO_DISABLE=1 ;;
esac
"$venv/bin/python" -m pytest --config-file "$root/pyproject.toml" --rootdir "$root" -m "$engine" "$here/$engine" "$@"
