"""The six APIs as functions from arrays to a `Call` that is ready to run."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from fmha import formats
from fmha.calls import KV_LAYOUTS, KV_LOOKUPS, ROPES, Call
from fmha.extents import Extents, keys_of_pages, longest, named, require_below, require_longest, require_shape, require_starts
from fmha.formats import FP32
from fmha.lengths import entries_of, give_lengths, state_starts, with_keys
from fmha.library import (BATCH_PREFILL, BWD, FWD, FWD_APPENDKV, FWD_PAGEDKV, FWD_SPLITKV, LINE, Context,
                          workspace_place)
from fmha.tensors import View, numpy_of, view_of
from fmha.values import flag, members, number_of, shown, text

def _axes(layout: str, column: bool = False) -> tuple[str, str]:
    """Axes of Q, K and O, and of V; `column`: V with positions last."""
    if sorted(text("layout", layout)) not in (sorted("bhsd"), sorted("hsd")) or not layout.endswith("d"):
        raise ValueError(f"layout {shown(layout)} is not known; allowed: bhsd, bshd, and hsd or shd for packed sequences")
    return layout, layout.replace("s", "").replace("d", "ds") if column else layout


def _shape(axes: str, **size: int) -> tuple[int, ...]:
    return tuple(size[axis] for axis in axes)


def _plain(array: Any, element: formats.ElementType) -> View:
    """A view for its extents alone; packed pairs count as two channels."""
    view = view_of(array)
    if element.bits < 8 and view.dtype == np.uint8:
        return View(view.address, (*view.shape[:-1], 2 * view.shape[-1]), view.strides, view.dtype)
    return view


def _attends(call: Call, q: Any, k: Any, v: Any, layout: str, column: bool, lengths: dict[str, Any]) -> tuple[Extents, str]:
    """Q, K, V and the extents of families that compute attention over whole sequences."""
    axes, v_axes = _axes(layout, column)
    element = call.type.inputs
    extents = Extents.of(*(_plain(array, element) for array in (q, k, v)), axes, v_axes, entries_of(layout, lengths))
    extents.fill(call.args.shape)
    call.args.shape.v_layout = int(column)
    call.args.q, call.args.k = call.tensor(q, axes, element), call.tensor(k, axes, element)
    call.args.v = call.tensor(v, v_axes, element)
    give_lengths(call, extents, lengths)
    for name, positions in (("seqstart_q", extents.rows), ("seqstart_k", extents.keys)):
        if lengths.get(name) is not None:
            require_starts(name, lengths[name], positions)
    return extents, axes


def _outputs(call: Call, extents: Extents, axes: str, out: Any, lse: Any) -> None:
    """O, and LSE when `lse` is true or the caller's array [entries, heads, rows], in group mode [heads, rows]."""
    shape = _shape(axes, b=extents.batch, h=extents.nhead_q, s=extents.rows, d=extents.hdim_v)
    unwritten = "q" in call.unwritten
    call.args.o = call.result("o", shape, axes, call.type.output, out, 0 if unwritten else None)
    own = None if isinstance(lse, (bool, int, np.bool_)) else lse
    if own is not None or flag("lse", lse):
        names = "hs" if extents.group else "bhs"
        shape = _shape(names, b=extents.batch, h=extents.nhead_q, s=extents.rows)
        call.args.lse = call.result("lse", shape, names, FP32, own, -np.inf if unwritten else None)


def _table(extents: Extents, keys: int) -> tuple[int, int, int, int]:
    """The shape of a table over rows and keys, such as the bias."""
    return (1 if extents.group else extents.batch, extents.nhead_q, extents.rows, keys)


def _table_over_pages(extents: Extents, bias: Any, keys: int | None) -> tuple[int, int, int, int]:
    """The same where the longest entry has `keys`, if that is known: a bias may have any columns from there to the room of an entry, or to all
    packed keys."""
    if bias is None or keys is None or not view_of(bias).shape:
        return _table(extents, extents.keys)
    columns = view_of(bias).shape[-1]
    return _table(extents, columns if keys <= columns <= extents.keys else extents.keys)


def _dropout(call: Call, dropout: tuple[float, int, int]) -> None:
    part = call.args.dropout
    part.p_drop, part.seed, part.offset = members("dropout", dropout, 3, "probability, seed, offset")


def forward(context: Context, arch: str, q: Any, k: Any, v: Any, *, data_type: str, layout: str = "bhsd",
            v_column: bool = False, scale: float | None = None, scale_o: float | None = None, mask: Any = 0,
            window: tuple[int, int] | None = None, sink: int = 0, bias: Any = None, alibi_slopes: Any = None,
            soft_cap: float = 0.0, sink_logit: Any = None, dropout: tuple[float, int, int] = (0.0, 0, 0),
            randval: bool = False, lse: Any = False, qscale: Any = 0, q_descale: Any = None, k_descale: Any = None,
            v_descale: Any = None, out: Any = None, stream: int | None = None, **lengths: Any) -> Call:
    """Forward attention. `dropout` is (probability, seed, offset); `lengths` are those of fmha_lengths."""
    call = Call(context, FWD, data_type, arch, stream)
    extents, axes = _attends(call, q, k, v, layout, v_column, lengths)
    call.mask(mask, window, sink)
    table = _table(extents, call.args.shape.max_seqlen_k if extents.group else extents.keys)
    call.score(scale, bias, alibi_slopes, soft_cap, sink_logit, table, scale_o)
    _dropout(call, dropout)
    call.quantise(qscale, q_descale, k_descale, v_descale, extents.keys, lengths if extents.group else None)
    _outputs(call, extents, axes, out, lse)
    if flag("randval", randval):
        call.args.randval = call.result("randval", table[1:] if extents.group else table, "hsk" if extents.group else "bhsk",
                                        formats.UINT8, fill=0)
    return call


def _over_pages(call: Call, q: Any, k: Any, v: Any, axes: str, block_table: Any, seqlens_k: Any,
                lengths: dict[str, Any]) -> Extents:
    """Q, and K and V in pages that a table names; `seqlens_k` are the keys of each entry."""
    element, pool, table = call.type.inputs, view_of(k), view_of(block_table)
    extents = Extents.paged(view_of(q), pool, view_of(v), axes, tuple(table.shape))
    extents.fill(call.args.shape)
    call.args.q = call.tensor(q, axes, element)
    call.args.k, call.args.v = call.tensor(k, "bhsd", element), call.tensor(v, "bhsd", element)
    if seqlens_k is None:
        raise ValueError("block_table needs seqlens_k, the keys of each entry")
    give_lengths(call, extents, with_keys(lengths, seqlens_k))
    if lengths.get("seqstart_q") is not None:
        require_starts("seqstart_q", lengths["seqstart_q"], extents.rows)
    place = call.args.place
    place.block_table, place.block_table_stride = call.array(block_table, np.int32, "block_table", *table.shape), table.shape[1]
    place.page_size, place.page_count = pool.shape[2], pool.shape[0]
    return extents


def paged(context: Context, arch: str, q: Any, k: Any, v: Any, *, data_type: str, block_table: Any, seqlens_k: Any,
          layout: str = "bhsd", scale: float | None = None, mask: Any = 0, window: tuple[int, int] | None = None, sink: int = 0,
          bias: Any = None, alibi_slopes: Any = None, soft_cap: float = 0.0, sink_logit: Any = None, lse: Any = False,
          qscale: Any = 0, q_descale: Any = None, k_descale: Any = None, v_descale: Any = None, out: Any = None,
          stream: int | None = None, **lengths: Any) -> Call:
    """Forward attention over pages of keys: K and V are [pages, heads, keys a page, channels]."""
    call = Call(context, FWD_PAGEDKV, data_type, arch, stream)
    axes, _ = _axes(layout)
    extents = _over_pages(call, q, k, v, axes, block_table, seqlens_k, lengths)
    call.mask(mask, window, sink)
    table = _table_over_pages(extents, bias, longest({"seqlen_k": seqlens_k}, "k"))
    call.score(scale, bias, alibi_slopes, soft_cap, sink_logit, table)
    call.quantise(qscale, q_descale, k_descale, v_descale, extents.keys)
    _outputs(call, extents, axes, out, lse)
    return call


def splitkv(context: Context, arch: str, q: Any, k: Any, v: Any, *, data_type: str, num_splits: int = 0,
            block_table: Any = None, seqlens_k: Any = None, layout: str = "bhsd", scale: float | None = None, mask: Any = 0,
            window: tuple[int, int] | None = None, sink: int = 0, bias: Any = None, alibi_slopes: Any = None,
            soft_cap: float = 0.0, sink_logit: Any = None, lse: Any = False, qscale: Any = 0, q_descale: Any = None, k_descale: Any = None,
            v_descale: Any = None, scale_o: float | None = None, out: Any = None, stream: int | None = None, **lengths: Any) -> Call:
    """Forward attention with the keys of a row divided over blocks; 0 splits: the plan chooses. With `block_table` K and V are
    pages as in `paged`."""
    call = Call(context, FWD_SPLITKV, data_type, arch, stream)
    axes, _ = _axes(layout)
    if block_table is not None:
        extents = _over_pages(call, q, k, v, axes, block_table, seqlens_k, lengths)
    else:
        extents, axes = _attends(call, q, k, v, layout, False, with_keys(lengths, seqlens_k))
    call.args.num_splits = num_splits
    call.mask(mask, window, sink)
    packed = call.args.shape.max_seqlen_k if extents.group else None
    table = _table_over_pages(extents, bias, packed if block_table is None else longest({"seqlen_k": seqlens_k}, "k"))
    call.score(scale, bias, alibi_slopes, soft_cap, sink_logit, table, scale_o)
    call.quantise(qscale, q_descale, k_descale, v_descale, extents.keys)
    _outputs(call, extents, axes, out, lse)
    _give_workspace(call)
    return call


def batch_prefill(context: Context, arch: str, q: Any, k: Any, v: Any, *, data_type: str, page_size: int, page_count: int,
                  seqstart_q: Any, kv_indptr: Any = None, kv_page_indices: Any = None, kv_last_page_lens: Any = None,
                  block_table: Any = None, seqlens_k: Any = None, kv_layout: Any = "linear", max_seqlen_k: int = 0,
                  layout: str = "shd", scale: float | None = None, mask: Any = 0, window: tuple[int, int] | None = None,
                  sink: int = 0, bias: Any = None, alibi_slopes: Any = None, soft_cap: float = 0.0, sink_logit: Any = None,
                  lse: Any = False, qscale: Any = 0, q_descale: Any = None, k_descale: Any = None, v_descale: Any = None,
                  out: Any = None, stream: int | None = None, **lengths: Any) -> Call:
    """Packed queries over pages of keys, named by `block_table` and `seqlens_k` (vLLM) or by `kv_indptr` (SGLang). Linear pages are
    [pages, heads, keys a page, channels] with any strides, such as one half of a cache [pages, 2, heads, keys a page, channels]; vectorized
    ones, with x elements in 16 bytes, K [pages, heads, channels/x, keys a page, x] and V [pages, heads, keys a page/x, channels, x]."""
    call = Call(context, BATCH_PREFILL, data_type, arch, stream)
    axes, _ = _axes(layout)
    if "b" in axes:
        raise ValueError(f"layout is {axes}; batch prefill takes packed queries: shd or hsd")
    element, vectorized = call.type.inputs, number_of(kv_layout, KV_LAYOUTS, "kv_layout") == 0
    q_view, k_view, v_view = view_of(q), view_of(k), view_of(v)
    axes_of_pages = (None,) * (5 if vectorized else 4)
    require_shape("k", k, *axes_of_pages)
    require_shape("v", v, *axes_of_pages)
    heads, wide_k, wide_v = ((k_view.shape[1], k_view.shape[2] * k_view.shape[4], v_view.shape[3]) if vectorized
                             else (k_view.shape[1], k_view.shape[3], v_view.shape[3]))
    q_size = named("q", q_view, axes)
    require_shape("seqstart_q", seqstart_q, None)
    entries = view_of(seqstart_q).shape[0] - 1
    extents = Extents(True, entries, q_size["h"], heads, q_size["s"], max_seqlen_k, q_size["d"], wide_v)
    if wide_k != extents.hdim_q:
        raise ValueError(f"channels of q and k differ: {extents.hdim_q} and {wide_k}")
    extents.fill(call.args.shape)
    call.args.q = call.tensor(q, axes, element)
    x = 128 // element.bits
    within_k, within_v = (((wide_k // x, page_size, x), (page_size // x, wide_v, x)) if vectorized
                          else ((page_size, wide_k), (page_size, wide_v)))
    for name, array, within in (("k", k, within_k), ("v", v, within_v)):
        view, shape = call.stored(array, element), (page_count, heads, *within)
        if tuple(view.shape) != shape:
            raise ValueError(f"{name} has shape {tuple(view.shape)}; {page_count} pages of {page_size} keys and {heads} heads have {shape}")
        setattr(call.args, name, call.vectorized_pages(name, view) if vectorized else call.tensor(view, "bhsd", element))
    lengths = with_keys({**lengths, "seqstart_q": seqstart_q}, seqlens_k)
    counted = [name for name in ("seqlen_k", "cu_seqlen_k", "seqstart_k") if lengths.get(name) is not None]
    if block_table is None and counted:
        raise ValueError(f"{counted[0]} goes with block_table; the keys of entries in a list of pages follow from kv_indptr and kv_last_page_lens")
    give_lengths(call, extents, lengths)
    require_starts("seqstart_q", seqstart_q, extents.rows)
    call.args.shape.max_seqlen_k = max_seqlen_k
    place = call.args.place
    place.kv_layout, place.kv_lookup = int(not vectorized), number_of("vllm" if block_table is not None else "sglang", KV_LOOKUPS,
                                                                      "kv_lookup")
    if block_table is not None:
        place.block_table = call.array(block_table, np.int32, "block_table", entries, None)
        place.block_table_stride = view_of(block_table).shape[1]
    place.kv_indptr = call.array(kv_indptr, np.int32, "kv_indptr", entries + 1)
    place.kv_page_indices = call.array(kv_page_indices, np.int32, "kv_page_indices", None)
    place.kv_last_page_lens = call.array(kv_last_page_lens, np.int32, "kv_last_page_lens", entries)
    if kv_indptr is not None and kv_page_indices is not None:
        require_starts("kv_indptr", kv_indptr, view_of(kv_page_indices).shape[0])
    place.page_size, place.page_count = page_size, page_count
    call.mask(mask, window, sink)
    if bias is not None:
        require_longest(max_seqlen_k, keys_of_pages(page_size, seqlens_k, kv_indptr, kv_last_page_lens))
    call.score(scale, bias, alibi_slopes, soft_cap, sink_logit, _table(extents, max_seqlen_k))
    call.quantise(qscale, q_descale, k_descale, v_descale, extents.keys)
    _outputs(call, extents, axes, out, lse)
    return call


def append(context: Context, arch: str, k: Any, v: Any, k_new: Any, v_new: Any, *, data_type: str, seqlens_k: Any, q: Any = None,
           nhead_q: int = 0, rope: Any = 0, rotary_cos: Any = None, rotary_sin: Any = None, has_mask: bool = False,
           block_table: Any = None, cache_batch_idx: Any = None, stream: int | None = None) -> Call:
    """Writes new keys and values behind the `seqlens_k` tokens of a cache and rotates them, and Q, in place. Caches are [slots,
    heads, keys, channels], with `block_table` [pages, heads, keys a page, channels]; new ones [entries, heads, tokens, channels].
    Rotary tables are [positions, pairs]. Host arrays that hold the stored format are changed in place, whatever their strides; of others
    outputs k, v and q of the call have the result."""
    call = Call(context, FWD_APPENDKV, data_type, arch, stream)
    element, args, shape = call.type.inputs, call.args, call.args.shape
    fresh, fresh_v, cache, cache_v = view_of(k_new), view_of(v_new), view_of(k), view_of(v)
    for what, view in (("k_new", fresh), ("k", cache)):
        require_shape(what, view, None, None, None, None)
    entries, heads, tokens, _ = fresh.shape
    require_shape("v_new", fresh_v, entries, heads, tokens, None)
    require_shape("k", cache, None, heads, None, fresh.shape[3])
    require_shape("v", cache_v, cache.shape[0], heads, cache.shape[2], fresh_v.shape[3])
    if q is not None:
        require_shape("q", q, entries, None, None, fresh.shape[3])
    shape.batch, shape.nhead_k, args.seqlen_knew, shape.hdim_q = fresh.shape
    shape.hdim_v, shape.nhead_q = fresh_v.shape[3], shape.nhead_k
    shape.seqlen_k = cache.shape[2]
    if block_table is not None:
        table = view_of(block_table)
        args.place.block_table = call.array(block_table, np.int32, "block_table", entries, None)
        args.place.block_table_stride = table.shape[1]
        args.place.page_size = cache.shape[2]
        shape.seqlen_k = table.shape[1] * cache.shape[2]
    elif cache_batch_idx is None and cache.shape[0] < entries:
        raise ValueError(f"k has {cache.shape[0]} slots, and there are {entries} entries; cache_batch_idx says which slot is whose")
    args.place.page_count = cache.shape[0]
    args.place.cache_batch_idx = call.array(cache_batch_idx, np.int32, "cache_batch_idx", entries)
    if cache_batch_idx is not None:
        require_below("cache_batch_idx", cache_batch_idx, cache.shape[0], "slots")
    for name, array in (("k", k), ("v", v), ("q", q)):
        if array is not None:
            setattr(args, name, call.in_place(name, array, "bhsd", element))
    if q is not None:
        shape.nhead_q, shape.seqlen_q = view_of(q).shape[1:3]
    elif nhead_q:
        shape.nhead_q = nhead_q
    args.k_new, args.v_new = call.tensor(k_new, "bhsd", element), call.tensor(v_new, "bhsd", element)
    args.lengths.seqlen_k = call.array(seqlens_k, np.int32, "seqlens_k", entries)
    args.has_mask = int(flag("has_mask", has_mask))
    args.rope.type = number_of(rope, ROPES, "rope")
    if args.rope.type:
        if rotary_cos is None or rotary_sin is None:
            raise ValueError("rope needs rotary_cos and rotary_sin")
        require_shape("rotary_cos", rotary_cos, None, None)
        positions, pairs = view_of(rotary_cos).shape
        require_shape("rotary_sin", rotary_sin, positions, pairs)
        # V-5: new keys, and under a mask the rows of Q, have positions behind those of the cache; without one all rows have the first of them.
        longest = max(tokens, 0 if q is None else view_of(q).shape[2] if has_mask else 1)
        if not view_of(seqlens_k).on_device and (last := int(np.max(numpy_of(view_of(seqlens_k)), initial=0)) + longest) > positions:
            raise ValueError(f"rotary_cos has {positions} positions; needed: {last}")
        args.rope.rotary_dim = 2 * pairs
        args.rope.cos, args.rope.sin = call.tensor(rotary_cos, "sd", element), call.tensor(rotary_sin, "sd", element)
    return call


def _give_workspace(call: Call) -> None:
    """The workspace that the planned kernels need on a device, prepared; calls on the host have their own."""
    if call.side.name == "host":
        return
    size, _ = call.context.workspace_size(call.args)
    if size == 0:
        return
    memory = call.side.new((size + LINE,), np.uint8)
    call._kept.append(memory)
    first = view_of(memory).address
    call.args.workspace = workspace_place(call.args, first) if call.args.api == BWD else (first + 15) // 16 * 16
    call.args.workspace_bytes = first + size + LINE - call.args.workspace
    call.context.prepare_workspace(call.args, call.args.workspace, call.side.stream)


def backward(context: Context, arch: str, q: Any, k: Any, v: Any, o: Any, lse: Any, d_o: Any, *, data_type: str,
             layout: str = "bhsd", scale: float | None = None, mask: Any = 0, window: tuple[int, int] | None = None,
             bias: Any = None, alibi_slopes: Any = None, sink_logit: Any = None, d_sink: bool = False,
             dropout: tuple[float, int, int] = (0.0, 0, 0), randval: Any = None, dbias: bool = False, deterministic: bool = False,
             reduce_dk_dv: bool = False, stream: int | None = None, **lengths: Any) -> Call:
    """Gradients of forward attention from its O and LSE: outputs dq, dk and dv, and dbias and d_sink when asked for. dk and dv
    have a head for every query head, which `shared_heads` adds up, or with reduce_dk_dv for every key head (W-11)."""
    call = Call(context, BWD, data_type, arch, stream)
    extents, axes = _attends(call, q, k, v, layout, False, lengths)
    args, element = call.args, call.type.inputs
    table = _table(extents, args.shape.max_seqlen_k if extents.group else extents.keys)
    call.mask(mask, window, 0)
    call.score(scale, bias, alibi_slopes, 0.0, sink_logit, table)
    _dropout(call, dropout)
    args.deterministic, args.reduce_dk_dv = (int(flag(*told)) for told in (("deterministic", deterministic), ("reduce_dk_dv", reduce_dk_dv)))
    if extents.group:
        state_starts(call, lengths)
    rows = "hs" if extents.group else "bhs"
    size = {"b": extents.batch, "h": extents.nhead_q, "s": extents.rows, "d": extents.hdim_v, "k": table[3]}
    for what, array, named in (("o", o, axes), ("d_o", d_o, axes), ("lse", lse, rows)):
        require_shape(what, array, *_shape(named, **size))
    args.o, args.d_o = call.tensor(o, axes, element), call.tensor(d_o, axes, element)
    args.lse = call.tensor(lse, rows, FP32)
    args.d = call.result("d", _shape(rows, **size), rows, FP32)
    names = "hsk" if extents.group else "bhsk"
    if randval is not None:
        require_shape("randval", randval, *_shape(names, **size))
        args.randval = call.tensor(randval, names, formats.UINT8)
    if flag("dbias", dbias):
        args.dbias = call.result("dbias", table[1:] if extents.group else table, names, element, fill=0)
    if flag("d_sink", d_sink):
        memory = call.side.new((extents.nhead_q,), np.float32)
        call.outputs["d_sink"] = (memory, FP32)
        args.d_sink = view_of(memory).address
    size["d"] = extents.hdim_q
    fill_q, fill_k = (0 if side in call.unwritten else None for side in "qk")
    args.dq = call.result("dq", _shape(axes, **size), axes, element, fill=fill_q)
    size |= {"s": extents.keys, "h": extents.nhead_k if reduce_dk_dv else extents.nhead_q}
    args.dk = call.result("dk", _shape(axes, **size), axes, element, fill=fill_k)
    args.dv = call.result("dv", _shape(axes, **(size | {"d": extents.hdim_v})), axes, element, fill=fill_k)
    _give_workspace(call)
    return call


def shared_heads(gradient: np.ndarray, nhead_k: int, layout: str = "bhsd") -> np.ndarray:
    """dk or dv of query heads, summed over the heads that share a key head, in float32 and in the type of `gradient`."""
    axis = layout.index("h")
    group = gradient.shape[axis] // nhead_k
    if group == 1:
        return gradient
    shape = (*gradient.shape[:axis], nhead_k, group, *gradient.shape[axis + 1 :])
    return gradient.reshape(shape).sum(axis=axis + 1, dtype=np.float32).astype(gradient.dtype)


__all__: Sequence[str] = ("append", "backward", "batch_prefill", "forward", "paged", "shared_heads", "splitkv")
