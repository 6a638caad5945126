"""The lengths of entries and where packed sequences begin: from arrays of the caller to fmha_lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmha.calls import Call
from fmha.extents import Extents, longest, require_longest, require_shape
from fmha.tensors import numpy_of, view_of


def give_lengths(call: Call, extents: Extents, lengths: dict[str, Any]) -> None:
    """Arrays of fmha_lengths by name; in group mode also the longest sequences."""
    known = ("seqstart_q", "seqstart_k", "seqlen_q", "seqlen_k", "cu_seqlen_q", "cu_seqlen_k")
    for name, values in lengths.items():
        if name.startswith("seqstart") and values is not None and not extents.group:
            raise ValueError(f"{name} says where packed sequences begin, which have the layout shd or hsd")
        if name in ("max_seqlen_q", "max_seqlen_k", "min_seqlen_q"):
            setattr(call.args.shape, name, values)
        elif name in known:
            count = extents.batch if name.startswith("seqlen") else extents.batch + 1
            setattr(call.args.lengths, name, call.array(values, np.int32, name, count))
        else:
            raise ValueError(f"{name} is no keyword of this call, and no length: {', '.join(known)}, max_seqlen_q, max_seqlen_k, min_seqlen_q")
    _find_unwritten(call, extents, lengths)
    if not extents.group:
        return
    if "max_seqlen_k" in lengths:
        require_longest(call.args.shape.max_seqlen_k, longest(lengths, "k"))
    for side in "qk":
        start = lengths.get(f"seqstart_{side}")
        if start is not None and f"max_seqlen_{side}" not in lengths and not view_of(start).on_device:
            most = longest({f"seqstart_{side}": start}, side)
            setattr(call.args.shape, f"max_seqlen_{side}", max(most, 1) if side == "q" else most)  # N-2 wants rows, not keys


def _find_unwritten(call: Call, extents: Extents, lengths: dict[str, Any]) -> None:
    """Notes the sides with positions that belong to no entry, which no kernel writes."""
    for side, positions, names in (("q", extents.rows, ("seqlen_q", "cu_seqlen_q", "min_seqlen_q")),
                                   ("k", extents.keys, ("seqlen_k", "cu_seqlen_k"))):
        starts = lengths.get(f"seqstart_{side}")
        known = starts is not None and not view_of(starts).on_device and view_of(starts).shape[0] > 0
        if (known and int(numpy_of(view_of(starts))[-1]) < positions) or any(lengths.get(name) is not None for name in names):
            call.unwritten.add(side)


def with_keys(lengths: dict[str, Any], seqlens_k: Any) -> dict[str, Any]:
    """The lengths of a call over a cache, whose keys an entry have a keyword of their own."""
    if seqlens_k is None:
        return lengths
    if lengths.get("seqlen_k") is not None:
        raise ValueError("seqlens_k and seqlen_k are both given; at most one is allowed")
    return {**lengths, "seqlen_k": seqlens_k}


def entries_of(layout: str, lengths: dict[str, Any]) -> int | None:
    if "b" in layout:
        return None
    if lengths.get("seqstart_q") is None:
        raise ValueError(f"layout {layout} packs sequences, which needs seqstart_q: where each of them begins")
    require_shape("seqstart_q", lengths["seqstart_q"], None)
    return view_of(lengths["seqstart_q"]).shape[0] - 1


def state_starts(call: Call, lengths: dict[str, Any]) -> None:
    """Offsets of packed sequences that are known on the host: the workspace is exact then, and nothing waits for them."""
    starts = [lengths.get(f"seqstart_{side}") for side in "qk"]
    if any(start is None or view_of(start).on_device for start in starts):
        return
    for side, start in zip("qk", starts):
        numbers = np.ascontiguousarray(numpy_of(view_of(start)), np.int32)
        call._kept.append(numbers)
        setattr(call.args, f"host_seqstart_{side}", numbers.ctypes.data)
