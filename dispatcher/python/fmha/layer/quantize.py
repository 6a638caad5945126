"""Quantised caches for batch prefill: 8-bit values in pages, and the factors that bring them back."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmha import formats
from fmha.extents import require_shape
from fmha.layer import shapes
from fmha.tensors import numpy_of, view_of
from fmha.values import whole_number


def _fp8(fnuz: bool) -> formats.ElementType:
    return formats.E4M3_FNUZ if fnuz else formats.E4M3


def _checked_size(page_size: int) -> int:
    page_size = whole_number("page_size", page_size)
    if page_size < 1:
        raise ValueError(f"page_size is {page_size}; a page has 1 key or more")
    return page_size


def _pages(array: np.ndarray, page_size: int, layout: str, of_values: bool) -> np.ndarray:
    if layout not in ("linear", "vectorized"):
        raise ValueError(f"layout {layout!r} is not known; allowed: linear, vectorized")
    pages = shapes.paged(array, _checked_size(page_size))
    return pages if layout == "linear" else shapes.vectorized(pages, of_values)


def _arrays(**arrays: Any) -> list[np.ndarray]:
    """Q, K and V as float32. Raises ValueError for bits, which would be taken for numbers, and for other shapes."""
    read = []
    for name, array in arrays.items():
        require_shape(name, array, None, None, None, None)
        host = numpy_of(view_of(array))
        if not np.issubdtype(host.dtype, np.floating):
            raise ValueError(f"{name} holds {host.dtype}; floats are needed, which are quantised here")
        read.append(host.astype(np.float32))
    return read


def _factor(largest: np.ndarray, element: formats.ElementType) -> np.ndarray:
    return (np.maximum(largest, 1e-12) / formats.largest(element)).astype(np.float32)


def quantize_pack_per_token_head(Q: Any, K: Any, V: Any, page_size: int, fp8_fnuz: bool = False,
                                 layout: str = "linear") -> dict[str, np.ndarray]:
    """Q [B,H,S,D] as q_fp8 [B·Sq,Hq,D] with a factor a token and head, q_descale [B·Sq,Hq]; K as pages k_fp8 [pages,Hk,page,D] with
    k_descale [pages,page,Hk], 1 in the padding; V as v_fp8 [pages,Hk,page,Dv] with a factor a head, v_descale [Hk]. Vectorized pages
    have 16 bytes together: K [pages,Hk,D/16,page,16], V [pages,Hk,page/16,Dv,16]."""
    element = _fp8(fp8_fnuz)
    q, k, v = _arrays(Q=Q, K=K, V=V)
    page_size = _checked_size(page_size)
    q_scale, k_scale = (_factor(np.abs(array).max(-1, initial=0), element) for array in (q, k))
    v_scale = _factor(np.abs(v).max((0, 2, 3), initial=0), element)
    k_padded = shapes.paged(k_scale[..., None] - np.float32(1), page_size)[..., 0] + np.float32(1)
    token_scale = q_scale.transpose(0, 2, 1).reshape(-1, q.shape[1])
    return {"q_fp8": shapes.packed(formats.encode(q / q_scale[..., None], element)),
            "k_fp8": _pages(formats.encode(k / k_scale[..., None], element), page_size, layout, False),
            "v_fp8": _pages(formats.encode(v / v_scale[:, None, None], element), page_size, layout, True),
            "q_descale": np.ascontiguousarray(token_scale), "k_descale": np.ascontiguousarray(k_padded.transpose(0, 2, 1)),
            "v_descale": v_scale}


def quantize_pack_pertensor(Q: Any, K: Any, V: Any, page_size: int, fp8_fnuz: bool = False,
                            layout: str = "linear") -> dict[str, np.ndarray]:
    """The same with one factor for each of Q, K and V, of shape [1]."""
    element = _fp8(fp8_fnuz)
    q, k, v = _arrays(Q=Q, K=K, V=V)
    scales = [_factor(np.abs(array).max(keepdims=True, initial=0).reshape(1), element) for array in (q, k, v)]
    return {"q_fp8": shapes.packed(formats.encode(q / scales[0], element)),
            "k_fp8": _pages(formats.encode(k / scales[1], element), page_size, layout, False),
            "v_fp8": _pages(formats.encode(v / scales[2], element), page_size, layout, True),
            "q_descale": scales[0], "k_descale": scales[1], "v_descale": scales[2]}


def quantised(q: Any, k: Any, v: Any, page_size: int, qscale: int, vectorized: bool,
              element: formats.ElementType) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], dict[str, np.ndarray]]:
    """Packed rows of Q, pages of K and V, and their factors as the kernels of batch prefill take them: one a tensor (1) or one a token and
    head (5)."""
    pack = quantize_pack_pertensor if qscale == 1 else quantize_pack_per_token_head
    told = pack(q, k, v, page_size, element is formats.E4M3_FNUZ, "vectorized" if vectorized else "linear")
    factors = {name: told[name] for name in ("q_descale", "k_descale", "v_descale")}
    if qscale == 5:
        factors = {"q_descale": factors["q_descale"].T[None], "k_descale": factors["k_descale"].swapaxes(1, 2),
                   "v_descale": factors["v_descale"][None, :, None]}
    return told["q_fp8"], (told["k_fp8"], told["v_fp8"]), factors
