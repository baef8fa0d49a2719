"""Declare two operators that torchvision's Python code describes, where its compiled part does not load.

From package indexes torchvision is a build for GPUs, whose compiled part does not load beside a torch for CPUs; its
Python part then fails at import. SGLang imports it, and uses nothing of it here. Run once in the environment.
"""

from __future__ import annotations

import importlib.util
import pathlib

MARK = '@torch.library.register_fake("torchvision::nms")'
SCHEMAS = """if not torchvision.extension._has_ops():
    _declared = torch.library.Library("torchvision", "FRAGMENT")
    for _name in ("nms", "qnms"):
        _declared.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


"""

spec = importlib.util.find_spec("torchvision")
assert spec is not None
assert spec.submodule_search_locations is not None
path = pathlib.Path(spec.submodule_search_locations[0]) / "_meta_registrations.py"
text = path.read_text()
if '"torchvision", "FRAGMENT"' not in text:  # not declared yet
    assert text.count(MARK) == 1, f"{path} is not the one that is known here"
    path.write_text(text.replace(MARK, SCHEMAS + MARK))
