"""Calls of the C interface from arrays: one class a family. Arrays are taken with their strides; what they lack (a type, a
packed last axis) is made in a copy. Axes are named by letters: b entries, h heads, s positions, d channels, k keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmha import formats
from fmha.formats import FP32, ElementType
from fmha.library import BATCH, GROUP, Context
from fmha.memory import side_of
from fmha.tensors import View, matches, numpy_of, packed_strides, view_of

MASKS = {"no": 0, "no_mask": 0, "none": 0, "top_left": 1, "causal": 1, "bottom_right": 2, "generic": 3, "window_generic": 3}
BIASES = {"no": 0, "none": 0, "bias": 1, "elementwise": 1, "alibi": 2}
QSCALES = {"no": 0, "none": 0, "pertensor": 1, "blockscale": 2, "kv_blockscale": 3, "mx": 4, "per_token_head": 5}
ROPES = {"none": 0, "no": 0, "interleaved": 1, "half_rotated": 2}
KV_LAYOUTS = {"vectorized": 0, "linear": 1}
KV_LOOKUPS = {"vllm": 0, "vllm_2d": 0, "sglang": 1, "sglang_1d": 1}


def number_of(value: Any, table: dict[str, int], what: str) -> int:
    """The C interface's number of a name or number. Raises ValueError with the names that there are."""
    if isinstance(value, str):
        if value in table:
            return table[value]
    elif int(value) in table.values():
        return int(value)
    raise ValueError(f"{what} {value!r} is not known; allowed: {', '.join(table)}")


class Call:
    """The arguments of one call, the memory behind them, and what it computed."""

    def __init__(self, context: Context, api: int, data_type: str, arch: str, stream: int | None = None):
        self.context, self.side = context, side_of(context, stream)
        self.type = formats.data_type(data_type, arch)
        self.args = context.lib.arguments(api)
        self.args.shape.data_type = self.type.code
        self.outputs: dict[str, tuple[Any, ElementType]] = {}
        self.given: set[str] = set()  # outputs that are the caller's memory
        self._kept: list[Any] = []
        self.kernel, self.milliseconds = "", 0.0

    def run(self, warm_up: int = 0, repeats: int = 1) -> Call:
        """Runs the call. Raises fmha.Error with the library's sentence."""
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
            view = view_of(host)
        elif not matches(view, element):
            raise ValueError(f"the device array holds {view.dtype}, the kernels read {element.name}")
        view = self.side.put(view)
        self._kept.append(view)
        return view

    def tensor(self, array: Any, axes: str, element: ElementType, dense: bool = True) -> Any:
        """A tensor of the C interface over an array whose axes are named in order, as in "bhsd"."""
        view = self.stored(array, element, dense)
        return self._over(view, axes, element)

    def _over(self, view: View, axes: str, element: ElementType) -> Any:
        if len(axes) != len(view.shape):
            raise ValueError(f"an array of shape {view.shape} has not the axes {axes}")
        step = dict(zip(axes.replace("k", "d"), view.strides))
        if element.bits < 8:  # two elements a byte along the last axis
            step = {axis: stride * 8 // element.bits for axis, stride in step.items()} | {axes[-1]: 1}
        return self.context.lib.tensor(view.address, *(step.get(axis, 0) for axis in "bhsd"))

    def result(self, name: str, shape: tuple[int, ...], axes: str, element: ElementType, out: Any = None,
               fill: int | None = None) -> Any:
        """A tensor for an output: `out` of the caller, or fresh memory of this shape."""
        if out is None:
            out = self.side.new(shape, element.dtype, fill)
        else:
            self.given.add(name)
        view = view_of(out)
        if tuple(view.shape) != tuple(shape):
            raise ValueError(f"out has shape {tuple(view.shape)}, the result {tuple(shape)}")
        if not matches(view, element):
            raise ValueError(f"out holds {view.dtype}, the result is {element.name}")
        if view.on_device != (self.side.name == "device"):
            raise ValueError(f"out is not memory of the {self.side.name}, where the kernels run")
        self._kept.append(out)
        self.outputs[name] = (out, element)
        return self._over(view, axes, element)

    def array(self, values: Any, dtype: Any) -> int | None:
        """The address of a one-dimensional array, None for None."""
        if values is None:
            return None
        view = view_of(values)
        if not view.on_device:
            view = self.side.put(np.ascontiguousarray(numpy_of(view), dtype))
        elif view.dtype != np.dtype(dtype):
            raise ValueError(f"the device array holds {view.dtype}; needed: {np.dtype(dtype)}")
        elif any(have != packed for have, packed, extent in zip(view.strides, packed_strides(view.shape), view.shape) if extent > 1):
            raise ValueError(f"the device array has strides {view.strides}; it must be packed, because only its address is given on")
        self._kept.append(view)
        return view.address

    def mask(self, mask: Any, window: tuple[int, int] | None, sink: int) -> None:
        """A mask by name or number. Without a window, top-left and bottom-right are causal."""
        part = self.args.mask
        part.type = number_of(mask, MASKS, "mask")
        left, right = window if window is not None else (-1, 0 if part.type in (1, 2) else -1)
        part.window_left, part.window_right, part.sink_size = left, right, sink

    def score(self, scale: float | None, bias: Any, alibi_slopes: Any, soft_cap: float, sink_logit: Any,
              shape: tuple[int, int, int, int], scale_o: float | None = None) -> None:
        """Scale, soft-cap, sink logits and either an elementwise bias, broadcast to `shape` (or its last three axes in
        group mode), or ALiBi slopes [heads] or [entries, heads]."""
        part = self.args.score
        if scale is not None:
            if scale == 0:
                raise ValueError("scale is 0, which the C interface reads as 1 / sqrt(hdim_q)")
            part.scale_s = scale
        if scale_o is not None:
            part.scale_o = scale_o
        part.logits_soft_cap = soft_cap
        part.sink_logit = self.array(sink_logit, np.float32)
        if bias is not None and alibi_slopes is not None:
            raise ValueError("bias and alibi_slopes are both given; at most one is allowed")
        if bias is not None:
            part.bias_type = 1
            self.args.bias = self._bias(bias, shape)
        if alibi_slopes is not None:
            part.bias_type = 2
            slopes = view_of(alibi_slopes)
            part.alibi_slopes = self.array(alibi_slopes, np.float32)
            part.alibi_stride = slopes.shape[-1] if len(slopes.shape) == 2 else 0

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

    def quantise(self, qscale: Any, q_descale: Any, k_descale: Any, v_descale: Any) -> None:
        """Descales: single numbers for pertensor, arrays [b, h, block] for blockscale, e8m0 codes for mx."""
        part = self.args.quant
        part.qscale = number_of(qscale, QSCALES, "qscale")
        if part.qscale == 0:
            if any(scale is not None for scale in (q_descale, k_descale, v_descale)):
                raise ValueError("descales are given, but qscale is none")
            return
        for name, scale in (("q_descale", q_descale), ("k_descale", k_descale), ("v_descale", v_descale)):
            if scale is None:
                raise ValueError(f"qscale needs {name}")
            if part.qscale == 1:
                setattr(part, name, self.context.lib.tensor(self.array(np.reshape(np.float32(scale), 1), np.float32)))
            elif part.qscale == 4:
                setattr(part, name, self.tensor(scale, "bhsd", formats.E8M0))
            else:
                setattr(part, name, self.tensor(scale, "bhs", FP32))


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
        q_size, k_size, v_size = (_named(name, view, names)
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
        q_size, k_size, v_size = _named("q", q, axes), _named("k", k, "bhsd"), _named("v", v, "bhsd")
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


def _named(name: str, view: View, axes: str) -> dict[str, int]:
    if len(view.shape) != len(axes):
        raise ValueError(f"{name} has shape {tuple(view.shape)}; needed: {len(axes)} axes, {axes}")
    return dict(zip(axes, view.shape))


def _require_equal(what: str, one: Any, other: Any) -> None:
    if one != other:
        raise ValueError(f"{what} differ: {one} and {other}")
