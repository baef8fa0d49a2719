"""Attention over a tree of drafts, which SGLang's backend ``torch_native`` lacks; NGRAM speculation needs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

_TARGET = "sglang.srt.layers.attention.torch_native_backend.TorchNativeAttnBackend.forward_extend"


def register() -> None:
    """Hook it in, if ``SGLANG_CPU_SPEC=1``."""
    if os.environ.get("SGLANG_USE_CPU_ENGINE") == "1" == os.environ.get("SGLANG_CPU_SPEC"):
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType

        HookRegistry.register(_TARGET, _forward_extend, HookType.AROUND)


def _forward_extend(
    original: Callable[..., Tensor], backend: Any, q: Tensor, k: Tensor, v: Tensor, layer: Any, forward_batch: Any,
    save_kv_cache: bool = True, **options: Any,
) -> Tensor:  # fmt: skip
    if not forward_batch.forward_mode.is_target_verify():
        return original(backend, q, k, v, layer, forward_batch, save_kv_cache, **options)
    from sglang.srt.layers.attention.torch_native_backend import KVWriteLoc

    pool = backend.token_to_kv_pool
    if save_kv_cache:
        pool.set_kv_buffer(layer, KVWriteLoc(forward_batch.out_cache_loc, backend.swa_out_cache_loc), k, v)
    keys, values = pool.get_key_buffer(layer.layer_id), pool.get_value_buffer(layer.layer_id)
    count = forward_batch.spec_info.draft_token_num
    trees = forward_batch.spec_info.custom_mask
    queries = q.view(-1, count, layer.tp_q_head_num, layer.qk_head_dim)
    outputs = []
    for place, length in enumerate(forward_batch.seq_lens.tolist()):
        tokens = backend.req_to_token_pool.req_to_token[forward_batch.req_pool_indices[place], : length + count]
        sees = torch.ones(count, length + count, dtype=torch.bool)
        if trees is None or trees.numel() == 0:
            sees[:, length:] = torch.ones(count, count, dtype=torch.bool).tril()
        else:
            sees[:, length:] = trees[place * count * count : (place + 1) * count * count].view(count, count).bool()
        output = scaled_dot_product_attention(
            queries[place].movedim(0, 1).unsqueeze(0),
            keys[tokens].movedim(0, 1).unsqueeze(0),
            values[tokens].movedim(0, 1).unsqueeze(0),
            attn_mask=sees,
            scale=layer.scaling,
            enable_gqa=layer.tp_q_head_num != layer.tp_k_head_num,
        )
        outputs.append(output.squeeze(0).movedim(1, 0).reshape(count, -1))
    return torch.cat(outputs).view_as(q)
