"""Between the arrays of the dispatcher's Python layer and those that kernels take: packing, pages, counts of work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmha.extents import whole_numbers
from fmha.layer.config import FmhaProblem
from fmha.tensors import View, numpy_of, view_of


def expected_shapes(prob: FmhaProblem, heads_first: bool, v_column: bool, packed: bool) -> dict[str, tuple[int, ...] | None]:
    """The shapes that Q, K and V of a problem have. Packed ones are told by their sequences, not by the problem."""
    if packed:
        return {"Q": None, "K": None, "V": None}
    shapes = {"Q": prob.q_shape(), "K": prob.k_shape(), "V": prob.v_shape()}
    if not heads_first:
        shapes = {name: (b, s, h, d) for name, (b, h, s, d) in shapes.items()}
    if v_column:
        b, h, s, d = prob.v_shape()
        shapes["V"] = (b, h, d, s) if heads_first else (b, d, h, s)
    return shapes


def check_shapes(arrays: dict[str, Any], shapes: dict[str, tuple[int, ...] | None]) -> None:
    """Raises ValueError for an array that is not of the problem's shape."""
    for name, array in arrays.items():
        have = tuple(view_of(array).shape)
        if shapes[name] is not None and have != tuple(shapes[name]):
            raise ValueError(f"{name} has shape {have}, the problem needs {tuple(shapes[name])}")


@dataclass(frozen=True)
class Unpack:
    """How outputs come into the layout of the caller's arrays. `entries`: so many sequences of one length were packed; 0: none were.
    `turned`: the caller has positions before heads."""
    entries: int = 0
    turned: bool = False

    def rows(self, array: np.ndarray) -> np.ndarray:
        """Of O and of gradients."""
        array = unpacked(array, self.entries) if self.entries else array
        return np.ascontiguousarray(array.swapaxes(1, 2)) if self.turned else array

    def heads(self, array: np.ndarray) -> np.ndarray:
        """Of LSE and of tables over rows and keys, which begin with the heads: [heads, entries * rows, …] as [entries, heads, rows, …]."""
        if not self.entries:
            return array
        heads, rows, *rest = array.shape
        return np.ascontiguousarray(array.reshape(heads, self.entries, rows // self.entries, *rest).swapaxes(0, 1))


def _on_host(array: Any) -> np.ndarray:
    """An array that is laid out anew. Raises ValueError for one on a device, which is taken only as it lies."""
    view = view_of(array)
    if view.on_device:
        raise ValueError("a device array is not laid out anew; give it packed with seqstart_q and seqstart_k, or in pages with a block_table")
    return numpy_of(view)


def turned(array: Any) -> np.ndarray:
    """[entries, positions, heads, channels] as [entries, heads, positions, channels]."""
    return _on_host(array).swapaxes(1, 2)


def packed(array: Any) -> np.ndarray:
    """[entries, heads, positions, channels] as [entries * positions, heads, channels]."""
    array = _on_host(array)
    b, h, s, d = array.shape
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(b * s, h, d)


def unpacked(array: np.ndarray, entries: int) -> np.ndarray:
    """The inverse of `packed` for sequences of one length."""
    rows, h, d = array.shape
    return np.ascontiguousarray(array.reshape(entries, rows // entries, h, d).transpose(0, 2, 1, 3))


def evenly(entries: int, length: int) -> np.ndarray:
    """Where sequences of one length begin, and where the last one ends."""
    return np.arange(entries + 1, dtype=np.int32) * np.int32(length)


def packed_heads(array: Any, entries: int) -> np.ndarray:
    """[entries, heads, rows, …] as [heads, entries * rows, …]: the inverse of `Unpack.heads`."""
    array = _on_host(array)
    heads, rows, *rest = array.shape[1:]
    return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(heads, entries * rows, *rest)


def packed_table(table: Any, prob: FmhaProblem) -> Any:
    """A table over rows and keys that broadcasts to [entries, heads, rows, keys], for rows that are packed; any other as it is."""
    if table is None or view_of(table).on_device:
        return table
    try:
        full = np.broadcast_to(_on_host(table), (prob.batch, prob.nhead_q, prob.seqlen_q, prob.seqlen_k))
    except ValueError:
        return table
    return packed_heads(full, prob.batch)


def paged(array: Any, page_size: int) -> np.ndarray:
    """[entries, heads, keys, channels] as pages [entries * pages, heads, page_size, channels], the rest of the last ones 0."""
    array = _on_host(array)
    b, h, s, d = array.shape
    pages = -(-s // page_size)
    full = np.zeros((b, h, pages * page_size, d), array.dtype)
    full[:, :, :s] = array
    return np.ascontiguousarray(full.reshape(b, h, pages, page_size, d).transpose(0, 2, 1, 3, 4)).reshape(
        b * pages, h, page_size, d)


def unpaged(pages: np.ndarray, entries: int, keys: int) -> np.ndarray:
    """The inverse of `paged`."""
    count, h, size, d = pages.shape
    whole = pages.reshape(entries, count // entries, h, size, d).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(whole.reshape(entries, h, -1, d)[:, :, :keys])


def identity_table(entries: int, keys: int, page_size: int) -> np.ndarray:
    """The table of pages that `paged` leaves in order."""
    pages = -(-keys // page_size)
    return np.arange(entries * pages, dtype=np.int32).reshape(entries, pages)


def vectorized(pages: np.ndarray, of_values: bool) -> np.ndarray:
    """Linear pages [pages, heads, page_size, channels] in the vectorized layout of rule B-3: vectors of 16 bytes along the channels of
    K, [pages, heads, channels/x, page_size, x], and along the keys of V, [pages, heads, page_size/x, channels, x]."""
    count, heads, size, width = pages.shape
    vector = 16 // pages.itemsize
    length, what = (size, "page_size") if of_values else (width, "hdim_q")
    if length % vector:
        raise ValueError(f"{what} is {length}; vectorized pages need a multiple of {vector}")
    if of_values:
        return np.ascontiguousarray(pages.reshape(count, heads, size // vector, vector, width).swapaxes(3, 4))
    return np.ascontiguousarray(pages.reshape(count, heads, size, width // vector, vector).swapaxes(2, 3))


def most(what: str, lengths: Any) -> int:
    """The largest of numbers an entry; 0 where only a device knows them."""
    view = view_of(lengths)
    return 0 if view.on_device else int(np.max(whole_numbers(what, numpy_of(view)), initial=0))


def visible_pairs(prob: FmhaProblem, mask_type: int, left: int, right: int) -> int:
    """How many of the seqlen_q x seqlen_k pairs a mask lets through, per head and entry."""
    if mask_type == 0:
        return prob.seqlen_q * prob.seqlen_k
    row = np.arange(prob.seqlen_q, dtype=np.int64)
    diagonal = row + (prob.seqlen_k - prob.seqlen_q if mask_type == 2 else 0)
    last = np.full_like(row, prob.seqlen_k - 1) if right < 0 and mask_type != 3 else diagonal + right
    first = np.zeros_like(row) if left < 0 and mask_type != 3 else diagonal - left
    return int(np.clip(np.minimum(last, prob.seqlen_k - 1) - np.maximum(first, 0) + 1, 0, None).sum())


def is_device(array: Any) -> bool:
    view: View = view_of(array)
    return view.on_device
