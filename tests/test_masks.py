"""Bitmasks in torch, as the adapters of serving engines use them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trieauto.integrations._masks import MaskBuffers, mask_on_cpu

SIZE = 49_152


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("size", [70, 50_001, SIZE])
def test_masks_are_applied(dtype: torch.dtype, size: int) -> None:
    rng = np.random.default_rng(0)
    num_words = (size + 31) // 32
    for rate in (0.0, 0.00001, 0.001, 0.02, 0.5, 0.999, 1.0):
        bits = rng.random((6, 32 * num_words)) < rate
        bits[1], bits[2], bits[3], bits[:, size:] = True, False, rng.random(bits.shape[1]) < 0.5, False
        mask = torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32))
        mask[4], bits[4] = -1, True
        around = torch.zeros(8, size, dtype=dtype)
        logits = around[1:7]
        logits.copy_(torch.randn(6, size, generator=torch.Generator().manual_seed(1)))
        wanted = logits.masked_fill(torch.from_numpy(~bits[:, :size]), -torch.inf)
        before = logits.clone()
        mask_on_cpu(logits, mask.numpy())
        assert torch.equal(logits, wanted)
        assert not around[[0, 7]].any()
        some = [5, 0, 3]
        mask_on_cpu(before, mask.numpy()[some], some)
        assert torch.equal(before[some], wanted[some])
        assert torch.isfinite(before[[1, 2, 4]]).all()


def test_odd_layouts_of_logits() -> None:
    mask = np.array([[5, -1], [0, 1]], np.int32)
    wide = torch.zeros(2, 200)
    mask_on_cpu(wide, mask)
    assert torch.isfinite(wide).sum(dim=1).tolist() == [2 + 32 + 136, 1 + 136]  # beyond the mask nothing is touched
    across = torch.zeros(64, 2).T
    mask_on_cpu(across, mask)
    assert torch.isfinite(across).sum(dim=1).tolist() == [34, 1]
    mask_on_cpu(across, mask[:0])
    for rows in ([0, 2], [-1, 0], [0]):
        with pytest.raises(IndexError, match="rows of a mask"):
            mask_on_cpu(across, mask, rows)


def test_buffers_are_used_again() -> None:
    buffers = MaskBuffers(pin_memory=False)
    first = buffers.rows(3, 70)
    assert first.shape == (3, 3)
    seen = {buffers.rows(count, 70).data_ptr() for count in (1, 2, 3, 4) for _ in range(8)}
    assert len(seen) == 4
    assert (first == -1).all()
    assert buffers.rows(5, 70).shape == (5, 3)
    assert buffers.rows(2, 7000).shape == (2, 219)
