"""The reference, libfmha_reference.so: what a right kernel computes, in binary64, from the same calls as the kernels get. It
shares no code with them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_uint32, c_uint64, c_void_p
from functools import lru_cache
from typing import Any

import numpy as np

from fmha import families, find
from fmha.library import ABI_VERSION, STATUS, Error, Library, load
from fmha.values import text

_OUTPUTS = ("dq", "d", "dbias", "dk", "dv", "d_sink")


class _GradientsOut(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("version", c_uint32)] + [(name, POINTER(c_double)) for name in _OUTPUTS]


@lru_cache(maxsize=None)
def _functions() -> ctypes.CDLL:
    functions = find.opened(find.library("fmha_reference"), "fmha_reference")
    functions.fmha_reference_attention.argtypes = [c_char_p, c_void_p, c_void_p, c_void_p, c_char_p, c_uint64]
    functions.fmha_reference_gradients.argtypes = [c_char_p, c_void_p, POINTER(_GradientsOut), c_char_p, c_uint64]
    functions.fmha_reference_attention.restype = functions.fmha_reference_gradients.restype = c_int
    return functions


@lru_cache(maxsize=None)
def _library() -> Library:
    return load()


class _NoKernels:
    """Stands where a context of libfmha.so stands when a call is built: host memory."""
    on_device = False

    def __init__(self) -> None:
        self.lib = _library()


def _checked(function: Any, *arguments: Any) -> None:
    error = ctypes.create_string_buffer(1024)
    status = function(*arguments, error, len(error))
    if status != 0:
        sentence = error.value.decode()
        # The library hands out the sentence alone, and that of a bad problem begins with the rule.
        raise Error(status, sentence, sentence.partition(":")[0] if status == STATUS.index("BAD_PROBLEM") else "")


def attention(q: Any, k: Any, v: Any, *, data_type: str, arch: str = "gfx950", **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """(O, LSE) as float64, unrounded, for the arguments of `families.forward`. O is [entries, heads, rows, channels] and LSE
    [entries, heads, rows], whatever the layout of Q; in group mode both are lists over the logical rows of entry after entry, head
    after head. Rows that belong to no entry are 0 with an LSE of −∞, in group mode behind all others."""
    return _attention(families.forward(_NoKernels(), arch, q, k, v, data_type=data_type, **options), arch)


def paged(q: Any, k: Any, v: Any, *, data_type: str, arch: str = "gfx950", **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same for the arguments of `families.paged`."""
    return _attention(families.paged(_NoKernels(), arch, q, k, v, data_type=data_type, **options), arch)


def batch_prefill(q: Any, k: Any, v: Any, *, data_type: str, arch: str = "gfx950", **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """The same for the arguments of `families.batch_prefill`."""
    return _attention(families.batch_prefill(_NoKernels(), arch, q, k, v, data_type=data_type, **options), arch)


def _attention(call: Any, arch: str) -> tuple[np.ndarray, np.ndarray]:
    shape = call.args.shape
    group = shape.mode == 1
    rows = shape.seqlen_q * shape.nhead_q * (1 if group else shape.batch)
    o, lse = np.zeros((rows, shape.hdim_v)), np.full(rows, -np.inf)
    _checked(_functions().fmha_reference_attention, text("arch", arch).encode(), byref(call.args), o.ctypes.data, lse.ctypes.data)
    if group:
        return o, lse
    extents = (shape.batch, shape.nhead_q, shape.seqlen_q)
    return o.reshape(*extents, shape.hdim_v), lse.reshape(extents)


def gradients(q: Any, k: Any, v: Any, o: Any, lse: Any, d_o: Any, *, data_type: str, arch: str = "gfx950",
              **options: Any) -> dict[str, np.ndarray]:
    """dq, dk and dv as float64, and d, dbias and d_sink where `options` ask for them, for the arguments of `families.backward` in
    batch mode. Shared heads have the sum over their group; positions that belong to no entry have 0."""
    call = families.backward(_NoKernels(), arch, q, k, v, o, lse, d_o, data_type=data_type, **options)
    shape = call.args.shape
    if shape.mode == 1:
        raise ValueError("gradients takes batch mode only; give one entry at a time")
    key_heads = shape.nhead_k if call.args.reduce_dk_dv else shape.nhead_q
    rows, keys = (shape.batch, shape.nhead_q, shape.seqlen_q), (shape.batch, key_heads, shape.seqlen_k)
    sizes = {"dq": (*rows, shape.hdim_q), "d": rows, "dk": (*keys, shape.hdim_q), "dv": (*keys, shape.hdim_v)}
    if "dbias" in call.outputs:
        sizes["dbias"] = (*rows, shape.seqlen_k)
    if "d_sink" in call.outputs:
        sizes["d_sink"] = (shape.nhead_q,)
    results = {name: np.zeros(size) for name, size in sizes.items()}
    out = _GradientsOut(ctypes.sizeof(_GradientsOut), ABI_VERSION)
    for name, array in results.items():
        setattr(out, name, array.ctypes.data_as(POINTER(c_double)))
    _checked(_functions().fmha_reference_gradients, text("arch", arch).encode(), byref(call.args), byref(out))
    heads = shape.nhead_k
    for name in ("dk", "dv"):
        full = results[name]
        results[name] = full.reshape(full.shape[0], heads, full.shape[1] // heads, *full.shape[2:]).sum(axis=2)
    return results
