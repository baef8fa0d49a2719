"""Stand-ins for functions that SGLang 0.5.23 imports from ``sgl_kernel`` when it runs on a CPU.

The package ``sglang-kernel`` has builds for GPUs only. Serving without speculation needs most of these only by name;
speculation by n-grams (NGRAM) calls them. Each is a plain loop over requests: right, and fast enough for tests.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor


def assign_req_to_token_pool_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, start_offset: Tensor, end_offset: Tensor, out_cache_loc: Tensor,
    pool_len: int,
) -> None:  # fmt: skip
    """Write the places of new tokens into each request's row of the table."""
    spans = zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True)
    used = 0
    for row, start, end in spans:
        req_to_token[row, start:end] = out_cache_loc[used : used + end - start].to(req_to_token.dtype)
        used += end - start


def assign_extend_cache_locs_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, start_offset: Tensor, end_offset: Tensor, out_cache_loc: Tensor,
    pool_len: int,
) -> None:  # fmt: skip
    """The way back: read the places of tokens out of each request's row."""
    spans = zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True)
    used = 0
    for row, start, end in spans:
        out_cache_loc[used : used + end - start] = req_to_token[row, start:end].to(out_cache_loc.dtype)
        used += end - start


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices: Tensor, req_to_token: Tensor, seq_lens: Tensor, out_cache_loc: Tensor, pool_len: int, topk: int,
    num_steps: int,
) -> None:  # fmt: skip
    """Read the places of ``topk * num_steps`` draft tokens after each request's sequence."""
    width = topk * num_steps
    for place, (row, length) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)):
        drafts = req_to_token[row, length : length + width]
        out_cache_loc[place * width : (place + 1) * width] = drafts.to(out_cache_loc.dtype)


def fill_bonus_tokens_cpu(accept_tokens: Tensor, accept_lens: Tensor, bonus_tokens: Tensor, accept_stride: int) -> None:
    """The last accepted token of each request."""
    count = accept_lens.numel()
    last = torch.arange(count) * accept_stride + accept_lens.long() - 1
    bonus_tokens[:count] = accept_tokens.reshape(-1)[last].to(bonus_tokens.dtype)


def fill_accept_out_cache_loc_cpu(accept_index: Tensor, out_cache_loc: Tensor, accept_out_cache_loc: Tensor) -> None:
    """The places of accepted tokens, one after the other."""
    index = accept_index.reshape(-1)
    index = index[index >= 0].long()
    accept_out_cache_loc[: len(index)] = out_cache_loc[index]


def rotate_input_ids_cpu(
    input_ids: Tensor, extend_start_loc: Tensor, extend_seq_lens: Tensor, topk_index: Tensor,
    select_index: Tensor | None = None,
) -> None:  # fmt: skip
    """Shift each request's tokens left by one and put a new one at the end."""
    new = topk_index.reshape(-1)
    spans = zip(extend_start_loc.tolist(), extend_seq_lens.tolist(), strict=True)
    for place, (start, length) in enumerate(spans):
        if length > 0:
            input_ids[start : start + length - 1] = input_ids[start + 1 : start + length].clone()
            last = start + length - 1 if select_index is None else int(select_index[place])
            input_ids[last] = new[place]


def copy_all_layer_kv_cache_cpu(data_ptrs: Tensor, strides: Tensor, tgt_loc: Tensor, src_loc: Tensor) -> None:
    """Copy rows of every layer's cache, which is given by its address and the bytes of a row."""
    targets, sources = tgt_loc.tolist(), src_loc.tolist()
    for address, size in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(address + source * size, size) for source in sources]
        for target, row in zip(targets, rows, strict=True):
            ctypes.memmove(address + target * size, row, size)


def build_tree_kernel_efficient_cpu(*arguments: Any, **options: Any) -> None:
    """EAGLE's trees are not needed here."""
    raise NotImplementedError("EAGLE needs the real sgl_kernel")


def verify_tree_greedy_cpu(
    predicts: Tensor, accept_index: Tensor, accept_token_num: Tensor, candidates: Tensor, retrive_index: Tensor,
    retrive_next_token: Tensor, retrive_next_sibling: Tensor, target_predict: Tensor,
) -> None:  # fmt: skip
    """Follow each request's tree of drafts as long as the model itself would have chosen the draft."""
    predicted = target_predict.reshape(-1).tolist()
    for request in range(len(candidates)):
        drafts, places = candidates[request].tolist(), retrive_index[request].tolist()
        children, siblings = retrive_next_token[request].tolist(), retrive_next_sibling[request].tolist()
        node, accepted = 0, 0
        accept_index[request, 0] = places[0]
        while accepted + 1 < accept_index.shape[1]:
            wanted, child = predicted[places[node]], children[node]
            while child >= 0 and drafts[child] != wanted:
                child = siblings[child]
            if child < 0:
                break
            predicts[places[node]] = wanted
            node, accepted = child, accepted + 1
            accept_index[request, accepted] = places[node]
        accept_token_num[request] = accepted
        predicts[places[node]] = predicted[places[node]]
