"""Calls of the C interface from arrays: one class a family. Arrays are taken with their strides; what they lack (a type, a
packed last axis) is made in a copy. Axes are named by letters: b entries, h heads, s positions, d channels, k keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fmha import formats
from fmha.extents import require_shape, whole_numbers
from fmha.formats import FP32, ElementType
from fmha.library import BATCH, Context
from fmha.memory import side_of
from fmha.tensors import View, is_packed, matches, numpy_of, require_writable, share_memory, view_of
from fmha.values import members, number_of, real_number

MASKS = {"no": 0, "no_mask": 0, "none": 0, "top_left": 1, "causal": 1, "bottom_right": 2, "generic": 3, "window_generic": 3}
BIASES = {"no": 0, "none": 0, "bias": 1, "elementwise": 1, "alibi": 2}
QSCALES = {"no": 0, "none": 0, "pertensor": 1, "blockscale": 2, "kv_blockscale": 3, "mx": 4, "per_token_head": 5}
ROPES = {"none": 0, "no": 0, "interleaved": 1, "half_rotated": 2}
KV_LAYOUTS = {"vectorized": 0, "linear": 1}
KV_LOOKUPS = {"vllm": 0, "vllm_2d": 0, "sglang": 1, "sglang_1d": 1}


class Call:
    """The arguments of one call, the memory behind them, and its outputs."""

    def __init__(self, context: Context, api: int, data_type: str, arch: str, stream: int | None = None):
        self.context, self.side = context, side_of(context, stream)
        self.type = formats.data_type(data_type, arch)
        self.args = context.lib.arguments(api)
        self.args.shape.data_type = self.type.code
        self.outputs: dict[str, tuple[Any, ElementType]] = {}
        self.given: set[str] = set()  # outputs that are the caller's memory
        self.unwritten: set[str] = set()  # sides, "q" and "k", with positions of no entry; fresh outputs are filled there
        self._kept: list[Any] = []
        self._read: list[View] = []  # inputs where the kernels read them
        self.kernel, self.milliseconds = "", 0.0

    def run(self, warm_up: int = 0, repeats: int = 1) -> Call:
        """Runs the call. Raises fmha.Error with the library's sentence, and ValueError for an output that lies in an input: blocks would read
        what others have written."""
        for name in self.given:
            written = view_of(self.outputs[name][0])
            if any(share_memory(written, read) for read in self._read):
                raise ValueError(f"{'out' if name == 'o' else name} shares memory with an input; the call reads its inputs while it writes")
        self.kernel, self.milliseconds = self.side.run(self.args, warm_up, repeats)
        return self

    def output(self, name: str) -> np.ndarray:
        """An output on the host: float16 for fp16, bytes for random bytes, float32 for everything else."""
        array, element = self.outputs[name]
        bits = self.side.fetch(array)
        return bits if name == "randval" else formats.decode(bits, element)

    # Building blocks of the families.

    def stored(self, array: Any, element: ElementType, dense: bool = True) -> View:
        """An array where the kernels read it, in a format; `dense`: with its last axis packed."""
        view = view_of(array)
        if not view.on_device:
            host = numpy_of(view)
            if not matches(view, element):
                host = formats.encode(host, element)
            if dense and host.ndim and host.shape[-1] > 1 and host.strides[-1] != host.itemsize:
                host = np.ascontiguousarray(host)
            if any(step < 0 or step % host.itemsize for step in host.strides):
                host = np.ascontiguousarray(host)
            host = np.require(host, requirements="A")
            view = view_of(host)
        elif not matches(view, element):
            raise ValueError(f"the device array holds {view.dtype}, the kernels read {element.name}")
        view = self.side.put(view)
        self._kept.append(view)
        self._read.append(view)
        return view

    def tensor(self, array: Any, axes: str, element: ElementType, dense: bool = True) -> Any:
        """A tensor of the C interface over an array whose axes are named in order, as in "bhsd"."""
        view = self.stored(array, element, dense)
        return self._over(view, axes, element)

    def vectorized_pages(self, what: str, view: View) -> Any:
        """A tensor over pages of rule B-3 [pages, heads, …]; what a head has of a page is packed."""
        inner = View(view.address, view.shape[2:], view.strides[2:], view.dtype)
        if not is_packed(inner):
            if view.on_device:
                raise ValueError(f"{what} on the device has strides {view.strides}; what a head has of a vectorized page must be packed")
            view = self.side.put(np.ascontiguousarray(numpy_of(view)))
            self._kept.append(view)
        return self.context.lib.tensor(view.address, *view.strides[:2], 0, 1)

    def _over(self, view: View, axes: str, element: ElementType) -> Any:
        if len(axes) != len(view.shape):
            raise ValueError(f"an array of shape {view.shape} has not the axes {axes}")
        step = dict(zip(axes.replace("k", "d"), view.strides))
        if element.bits < 8:  # two elements a byte along the last axis
            step = {axis: stride * 8 // element.bits for axis, stride in step.items()} | {axes[-1]: 1}
        return self.context.lib.tensor(view.address, *(step.get(axis, 0) for axis in "bhsd"))

    def result(self, name: str, shape: tuple[int, ...], axes: str, element: ElementType, out: Any = None,
               fill: float | None = None) -> Any:
        """A tensor for an output: `out` of the caller, or fresh memory of this shape, filled with a value where kernels may not write all."""
        if out is None:
            out = self.side.new(shape, element.dtype, fill)
        else:
            self.given.add(name)
        view, what = view_of(out), "out" if name == "o" else name
        if tuple(view.shape) != tuple(shape):
            raise ValueError(f"{what} has shape {tuple(view.shape)}, the result {tuple(shape)}")
        if not matches(view, element):
            raise ValueError(f"{what} holds {view.dtype}, the result is {element.name}")
        if view.on_device != (self.side.name == "device"):
            raise ValueError(f"{what} is not memory of the {self.side.name}, where the kernels run")
        require_writable(what, view)
        self._kept.append(out)
        self.outputs[name] = (out, element)
        return self._over(view, axes, element)

    def in_place(self, name: str, array: Any, axes: str, element: ElementType) -> Any:
        """A tensor over an array that the call changes, and the output `name`: the caller's memory where that holds the format, with any
        strides, else a copy."""
        view = view_of(array)
        if matches(view, element):
            require_writable(name, view)
            view = self.side.put(view if view.on_device else view_of(numpy_of(view)))
            self._kept.append(view)
        else:
            view = self.stored(array, element)
        self.outputs[name] = (view.owner, element)
        return self._over(view, axes, element)

    def array(self, values: Any, dtype: Any, what: str, *shape: int | None) -> int | None:
        """The address of a packed array of this shape (None: any extent), None for None. Kernels are told where it begins only, so one that is
        shorter would be read beyond its end."""
        if values is None:
            return None
        view = view_of(values)
        require_shape(what, view, *shape)
        if not view.on_device:
            host = numpy_of(view)
            host = whole_numbers(what, host) if np.dtype(dtype) == np.int32 else host
            view = self.side.put(np.ascontiguousarray(host, dtype))
        elif view.dtype != np.dtype(dtype):
            raise ValueError(f"{what} on the device holds {view.dtype}; needed: {np.dtype(dtype)}")
        elif not is_packed(view):
            raise ValueError(f"{what} on the device has strides {view.strides}; it must be packed, because only its address is given on")
        self._kept.append(view)
        return view.address

    def mask(self, mask: Any, window: tuple[int, int] | None, sink: int) -> None:
        """A mask by name or number. Without a window, top-left and bottom-right are causal."""
        part = self.args.mask
        part.type = number_of(mask, MASKS, "mask")
        left, right = members("window", window, 2, "left, right") if window is not None else (-1, 0 if part.type in (1, 2) else -1)
        if part.type == 0 and any(isinstance(side, (int, np.integer)) and side >= 0 for side in (left, right)):
            raise ValueError(f"window ({left}, {right}) is given without a mask; mask says where it is anchored: top_left, bottom_right or generic")
        part.window_left, part.window_right, part.sink_size = left, right, sink

    def score(self, scale: float | None, bias: Any, alibi_slopes: Any, soft_cap: float, sink_logit: Any,
              shape: tuple[int, int, int, int], scale_o: float | None = None) -> None:
        """Scale, soft-cap, sink logits and either an elementwise bias, broadcast to `shape` (or its last three axes in
        group mode), or ALiBi slopes [heads] or [entries, heads]."""
        part = self.args.score
        if scale is not None:
            if real_number("scale", scale) == 0:
                raise ValueError("scale is 0, which the C interface reads as 1 / sqrt(hdim_q)")
            part.scale_s = scale
        if scale_o is not None:
            part.scale_o = scale_o
        part.logits_soft_cap = soft_cap
        extents = self.args.shape
        part.sink_logit = self.array(sink_logit, np.float32, "sink_logit", extents.nhead_q)
        if bias is not None and alibi_slopes is not None:
            raise ValueError("bias and alibi_slopes are both given; at most one is allowed")
        if bias is not None:
            part.bias_type = 1
            self.args.bias = self._bias(bias, shape)
        if alibi_slopes is not None:
            part.bias_type = 2
            by_entry = len(view_of(alibi_slopes).shape) == 2
            entries = (extents.batch,) if by_entry else ()
            part.alibi_slopes = self.array(alibi_slopes, np.float32, "alibi_slopes", *entries, extents.nhead_q)
            part.alibi_stride = extents.nhead_q if by_entry else 0

    def _bias(self, bias: Any, shape: tuple[int, int, int, int]) -> Any:
        view = view_of(bias)
        if not view.on_device:
            bias = numpy_of(view)
            bias = bias.reshape((1,) * (4 - bias.ndim) + bias.shape)
            if any(have not in (1, need) for have, need in zip(bias.shape, shape)) or bias.ndim != 4:
                raise ValueError(f"a bias of shape {tuple(view.shape)} does not broadcast to {shape}")
        view = self.stored(bias, self.type.bias)
        if len(view.shape) != 4:
            raise ValueError(f"a bias on a device needs four axes that broadcast to {shape}, got {tuple(view.shape)}")
        view.strides = tuple(0 if have == 1 and need > 1 else step
                             for have, need, step in zip(view.shape, shape, view.strides))
        return self._over(view, "bhsk", self.type.bias)

    def quantise(self, qscale: Any, q_descale: Any, k_descale: Any, v_descale: Any, keys: int,
                 starts: dict[str, Any] | None = None) -> None:
        """Descales: single numbers for pertensor, else arrays (`_descale_shapes`), of e8m0 codes for mx. `keys` are those of K's axis of
        positions; `starts` has seqstart_q and seqstart_k of packed sequences."""
        part = self.args.quant
        part.qscale = number_of(qscale, QSCALES, "qscale")
        if part.qscale == 0:
            if any(scale is not None for scale in (q_descale, k_descale, v_descale)):
                raise ValueError("descales are given, but qscale is none")
            return
        blocks = self._block_starts(part.qscale, starts) if starts is not None and part.qscale in (2, 4) else {}
        shapes = self._descale_shapes(part.qscale, keys, blocks)
        for name, scale in (("q_descale", q_descale), ("k_descale", k_descale), ("v_descale", v_descale)):
            if scale is None:
                raise ValueError(f"qscale needs {name}")
            if part.qscale == 1:
                view = view_of(scale)
                if math.prod(view.shape) != 1:
                    raise ValueError(f"{name} has {math.prod(view.shape)} values; one factor belongs to the whole tensor")
                setattr(part, name, self.context.lib.tensor(self.array(view, np.float32, name, *view.shape)))
                continue
            require_shape(name, scale, *shapes[name])
            if part.qscale == 4:  # V has its positions last, as V itself
                setattr(part, name, self.tensor(scale, "bhds" if name == "v_descale" else "bhsd", formats.E8M0))
            else:
                setattr(part, name, self.tensor(scale, "bhs", FP32))

    def _block_starts(self, qscale: int, starts: dict[str, Any]) -> dict[str, int]:
        """Gives where the scale blocks of each packed sequence begin, which follows from where its positions do (Q-2, for mx Q-5), and
        returns how many there are of a side."""
        counts = {}
        for side, size in (("q", 128), ("k", 128)) if qscale == 2 else (("k", 32),):
            if starts.get(f"seqstart_{side}") is None:
                continue  # which the library refuses
            view = view_of(starts[f"seqstart_{side}"])
            if view.on_device:
                raise ValueError(f"seqstart_{side} lies on a device; scale blocks of packed sequences are counted from it, so it must be on the host")
            begins = np.append(0, np.cumsum(-(-np.diff(numpy_of(view)) // size)))
            setattr(self.args.quant, f"block_scale_seqstart_{side}", self.array(begins, np.int32, f"block_scale_seqstart_{side}", len(begins)))
            counts[side] = int(begins[-1])
        return counts

    def _descale_shapes(self, qscale: int, keys: int, blocks: dict[str, int]) -> dict[str, tuple[int | None, ...]]:
        """The axes of descales: entries, heads and blocks of 128 positions for blockscale (2); positions, and 32 channels, for mx (4), where V has
        channels and 32 keys; pages, heads and, with one a token (5), positions for the caches of batch prefill. `blocks` has the number of
        those of packed sequences."""
        shape, place = self.args.shape, getattr(self.args, "place", None)
        entries = shape.batch if shape.mode == BATCH else 1
        q_heads, k_heads = (entries, shape.nhead_q), (entries, shape.nhead_k)
        if qscale == 2:
            q, k = blocks.get("q", -(-shape.seqlen_q // 128)), blocks.get("k", -(-keys // 128))
            return {"q_descale": (*q_heads, q), "k_descale": (*k_heads, k), "v_descale": (*k_heads, k)}
        if qscale == 4:
            deep = -(-shape.hdim_q // 32)
            return {"q_descale": (*q_heads, shape.seqlen_q, deep), "k_descale": (*k_heads, keys, deep),
                    "v_descale": (*k_heads, shape.hdim_v, blocks.get("k", -(-keys // 32)))}
        pages = (place.page_count if place is not None else 1, shape.nhead_k)
        if qscale == 3:
            return {"q_descale": (1, 1, 1), "k_descale": (*pages, 1), "v_descale": (*pages, 1)}
        return {"q_descale": (1, shape.nhead_q, shape.seqlen_q), "k_descale": (*pages, place.page_size if place is not None else 1),
                "v_descale": (1, shape.nhead_k, 1)}
