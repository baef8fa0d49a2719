"""The tree of drafts as links, from the mask that says which draft sees which."""

from __future__ import annotations

import torch
from torch import Tensor


def reconstruct_indices_from_tree_mask(
    tree_mask: Tensor, verified_seq_len: Tensor, positions: Tensor, retrieve_index: Tensor,
    retrieve_next_token: Tensor, retrieve_next_sibling: Tensor, batch_size: int, draft_token_num: int,
) -> None:  # fmt: skip
    """Fill in positions and links of each request's tree."""
    from sglang.srt.speculative.ngram_worker import _derive_tree_links

    sees = tree_mask.reshape(batch_size, draft_token_num, draft_token_num).bool()
    depths = sees.sum(-1) - 1
    positions.copy_((verified_seq_len.view(-1, 1) + depths).reshape(positions.shape))
    retrieve_index.copy_(torch.arange(batch_size * draft_token_num).reshape(retrieve_index.shape))
    children, siblings = _derive_tree_links(sees.reshape(-1).numpy(), batch_size, draft_token_num)
    retrieve_next_token.copy_(children.reshape(retrieve_next_token.shape))
    retrieve_next_sibling.copy_(siblings.reshape(retrieve_next_sibling.shape))
