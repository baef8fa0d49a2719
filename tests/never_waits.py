"""A check that code does not make the host wait for the device, which runs on any machine."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_READS_NUMBERS = {"_local_scalar_dense", "item", "is_nonzero", "equal", "allclose", "_assert_async"}
_SHAPES_DEPEND_ON_NUMBERS = (
    "nonzero",
    "argwhere",
    "masked_select",
    "unique",
    "_unique",
    "bincount",
    "repeat_interleave",
)
_INDEXES = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}


class NeverWaits(TorchDispatchMode):
    """Fails where the host would have to wait: it reads a number, a shape depends on one, or something is copied from
    one device to another. Notes the names of all operations in ``calls``."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        self.calls.append(name)
        assert name not in _READS_NUMBERS, name
        assert not name.startswith(_SHAPES_DEPEND_ON_NUMBERS), name
        if name in _INDEXES:  # a mask as an index is turned into places, whose number is not known
            assert all(each is None or each.dtype in (torch.int64, torch.int32) for each in args[1]), name
        devices = {each.device for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)}
        assert len(devices) <= 1, (name, devices)
        result = func(*args, **kwargs)
        assert all(
            not devices or each.device in devices for each in tree_leaves(result) if isinstance(each, torch.Tensor)
        )
        return result
