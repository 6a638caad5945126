"""Sizes of problems as arrays tell them, and whether arrays have the sizes that a problem needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmha.library import BATCH, GROUP
from fmha.tensors import View, numpy_of, view_of

_INT32 = np.iinfo(np.int32)


def require_shape(what: str, array: Any, *shape: int | None) -> None:
    """Raises ValueError for an array of another shape; None stands for any extent."""
    have = tuple(view_of(array).shape)
    if len(have) != len(shape) or any(need not in (None, extent) for extent, need in zip(have, shape)):
        raise ValueError(f"{what} has shape {_text(have)}; needed: {_text(shape)}")


def _text(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("any" if extent is None else str(extent) for extent in shape) + "]"


def whole_numbers(what: str, values: np.ndarray) -> np.ndarray:
    """The same array. Raises ValueError unless it holds whole numbers that fit into 32 bits, as the C interface has them."""
    if values.size == 0:
        return values
    if values.dtype.kind not in "iu":
        raise ValueError(f"{what} holds {values.dtype} values; needed: whole numbers")
    for value in (values.min(), values.max()):
        if not _INT32.min <= value <= _INT32.max:
            raise ValueError(f"{what} holds {value}; allowed: {_INT32.min} to {_INT32.max}")
    return values


def require_starts(what: str, starts: Any, positions: int) -> None:
    """Raises ValueError when sequences would go beyond the positions that an array has. Starts on a device are not looked at."""
    view = view_of(starts)
    if not view.on_device and view.shape[0] and int(numpy_of(view)[-1]) > positions:
        raise ValueError(f"{what} ends at {int(numpy_of(view)[-1])}; the array has {positions} positions")


def require_below(what: str, values: Any, limit: int, of: str) -> None:
    """Raises ValueError when one of the values, which are not looked at on a device, is not below the limit."""
    view = view_of(values)
    if not view.on_device and math.prod(view.shape) and int(numpy_of(view).max()) >= limit:
        raise ValueError(f"{what} has {int(numpy_of(view).max())}; there are {limit} {of}")


def longest(lengths: dict[str, Any], side: str) -> int | None:
    """The most queries ("q") or keys ("k") of an entry, by arrays of fmha_lengths on the host; None where none is there."""
    for name, are_offsets in ((f"seqlen_{side}", False), (f"cu_seqlen_{side}", True), (f"seqstart_{side}", True)):
        if lengths.get(name) is None:
            continue
        view = view_of(lengths[name])
        if view.on_device:
            return None
        numbers = numpy_of(view).astype(np.int64)
        return int(np.max(np.diff(numbers) if are_offsets else numbers, initial=0))
    return None


def keys_of_pages(page_size: int, seqlens_k: Any, kv_indptr: Any, kv_last_page_lens: Any) -> int | None:
    """The most keys of an entry of batch prefill, None where only a device knows."""
    if kv_indptr is None or view_of(kv_indptr).on_device:
        return longest({"seqlen_k": seqlens_k}, "k")
    pages = np.diff(numpy_of(view_of(kv_indptr)).astype(np.int64))
    if kv_last_page_lens is None or page_size == 1 or view_of(kv_last_page_lens).on_device:
        return int(np.max(pages, initial=0)) * page_size
    last = numpy_of(view_of(kv_last_page_lens)).astype(np.int64)
    return int(np.max(np.where(pages > 0, (pages - 1) * page_size + last, 0), initial=0))


def require_longest(stated: int, keys: int | None) -> None:
    """Raises ValueError when an entry has more keys than a table over rows and keys has columns."""
    if keys is not None and keys > stated:
        raise ValueError(f"max_seqlen_k is {stated}; an entry has {keys} keys, and bias, dbias and randval have a column for each")


@dataclass
class Extents:
    """Sizes of an attention problem."""
    group: bool
    batch: int
    nhead_q: int
    nhead_k: int
    rows: int
    keys: int
    hdim_q: int
    hdim_v: int

    @staticmethod
    def of(q: View, k: View, v: View, axes: str, v_axes: str, entries: int | None = None) -> Extents:
        """Read from arrays and compared among them; `entries` where the arrays do not tell their number."""
        q_size, k_size, v_size = (named(name, view, names)
                                  for name, view, names in (("q", q, axes), ("k", k, axes), ("v", v, v_axes)))
        _require_equal("channels of q and k", q_size["d"], k_size["d"])
        _require_equal("heads of k and v", k_size["h"], v_size["h"])
        _require_equal("keys of k and v", k_size["s"], v_size["s"])
        for name, size in (("k", k_size), ("v", v_size)):
            _require_equal(f"entries of q and {name}", q_size.get("b"), size.get("b"))
        return Extents("b" not in axes, q_size.get("b", 1) if entries is None else entries, q_size["h"], k_size["h"],
                       q_size["s"], k_size["s"], q_size["d"], v_size["d"])

    @staticmethod
    def paged(q: View, k: View, v: View, axes: str, table: tuple[int, ...]) -> Extents:
        """The same with K and V in pages [pages, heads, keys a page, channels] and a table [entries, pages of each]."""
        if len(table) != 2:
            raise ValueError(f"block_table has shape {table}; needed: [entries, pages of an entry]")
        q_size, k_size, v_size = named("q", q, axes), named("k", k, "bhsd"), named("v", v, "bhsd")
        _require_equal("channels of q and k", q_size["d"], k_size["d"])
        for what, axis in (("pages", "b"), ("heads", "h"), ("keys a page", "s")):
            _require_equal(f"{what} of k and v", k_size[axis], v_size[axis])
        if "b" in axes:
            _require_equal("entries of q and block_table", q_size["b"], table[0])
        return Extents("b" not in axes, table[0], q_size["h"], k_size["h"], q_size["s"], table[1] * k_size["s"], q_size["d"],
                       v_size["d"])

    def fill(self, shape: Any) -> None:
        shape.mode = GROUP if self.group else BATCH
        shape.batch, shape.nhead_q, shape.nhead_k = self.batch, self.nhead_q, self.nhead_k
        shape.seqlen_q, shape.seqlen_k, shape.hdim_q, shape.hdim_v = self.rows, self.keys, self.hdim_q, self.hdim_v


def named(name: str, view: View, axes: str) -> dict[str, int]:
    """The extents of an array by the letters of its axes. Raises ValueError for another number of axes."""
    if len(view.shape) != len(axes):
        raise ValueError(f"{name} has shape {tuple(view.shape)}; needed: {len(axes)} axes, {axes}")
    return dict(zip(axes, view.shape))


def _require_equal(what: str, one: Any, other: Any) -> None:
    if one != other:
        raise ValueError(f"{what} differ: {one} and {other}")
