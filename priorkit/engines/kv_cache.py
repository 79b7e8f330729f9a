"""Keys and values of a batch, in buffers that grow by half instead of being copied every step.

The library's `DynamicCache` concatenates each layer's whole past for every token. Here a layer
writes into spare room and hands out a view of what is filled. Models whose layers are not all
plain full attention (sliding windows, linear attention, shared or compressed keys) keep the
library's own cache, which knows their rules.

Shapes: `N` rows, `H` heads, `L` tokens held, `D` head width; keys and values are `[N, H, L, D]`.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from transformers import DynamicCache, PretrainedConfig
from transformers.cache_utils import Cache, DynamicLayer

_SPARE = 64  # spare tokens at least, so that short jobs grow once


def make_cache(config: PretrainedConfig) -> Cache:
    """An empty cache: ours where every layer is plain full attention, else the library's."""
    cache = DynamicCache(config=config)
    if cache.layers and all(type(layer) is DynamicLayer for layer in cache.layers):
        cache.layers = [GrowingLayer() for _ in cache.layers]
    return cache


def take_rows(cache: Cache, rows: Tensor) -> None:
    """Make row `i` of the cache what row `rows[i]` was: repeats expand it, omissions shrink it.

    Args:
        rows: `[N]` int64, on the cache's device.
    """
    # `reorder_cache` is the one row selection that every kind of layer implements.
    cache.reorder_cache(cast(torch.LongTensor, rows))


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer's keys and values with spare room behind them.

    `keys` and `values` are views of the filled part, as the library expects of a dynamic layer.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append `[N, H, new, D]` and return all that is held."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self._buffers is None or end > self._buffers[0].shape[-2]:
            keys, values = (
                _grown(self.keys, key_states, end),
                _grown(self.values, value_states, end),
            )
            self._buffers = (keys, values)
        keys, values = self._buffers
        keys[:, :, start:end] = key_states
        values[:, :, start:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Row `i` becomes what row `beam_idx[i]` was; the spare room stays."""
        if self._buffers is None:
            return
        length = self.get_seq_length()
        keys, values = (_taken(buffer, beam_idx, length) for buffer in self._buffers)
        self._buffers = (keys, values)
        self.keys, self.values = keys[:, :, :length], values[:, :, :length]

    def batch_select_indices(self, indices: Tensor) -> None:
        """As `reorder_cache`."""
        self.reorder_cache(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Each row `repeats` times, copies side by side."""
        if self._buffers is not None:
            rows = torch.arange(self._buffers[0].shape[0], device=self.device)
            self.reorder_cache(rows.repeat_interleave(repeats))

    def reset(self) -> None:
        """Forget everything, buffers included."""
        super().reset()
        self._buffers = None


def _grown(held: Tensor | None, states: Tensor, end: int) -> Tensor:
    """A buffer for `end` tokens and room to spare, `held` copied in."""
    rows, heads, _, width = states.shape
    buffer = states.new_empty((rows, heads, max(end + _SPARE, end * 3 // 2), width))
    if held is not None and held.numel():
        buffer[:, :, : held.shape[-2]] = held
    return buffer


def _taken(buffer: Tensor, rows: Tensor, length: int) -> Tensor:
    taken = buffer.new_empty((len(rows), *buffer.shape[1:]))
    torch.index_select(buffer[:, :, :length], 0, rows, out=taken[:, :, :length])
    return taken
