# SGLang 0.5.23 for the CPU; sourced by setup.sh. Its kernels for CPUs, which no package index has, are stood in for by
# plain torch.
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
"$venv/bin/python" "$here/sglang/torchvision_schemas.py"
stand_in=$(mktemp -d)
cp -r "$here/sglang/sgl_kernel_stand_in" "$stand_in/"
pip install --no-deps --no-build-isolation "$stand_in/sgl_kernel_stand_in"
rm -r "$stand_in"
