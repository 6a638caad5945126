"""References on the processor. Forward attention is that of libfmha_reference.so, in binary64."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmha import reference
from fmha.extents import require_shape
from fmha.tensors import numpy_of, view_of

_MASKS = (0, 1, 2)


def _floats(array: Any) -> np.ndarray:
    array = numpy_of(view_of(array))
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"the reference takes floats, got {array.dtype}")
    return array


def _stored(array: Any) -> tuple[np.ndarray, np.dtype]:
    """An array in a type that the reference reads, and the type that results have. float64 is rounded to float32."""
    array = _floats(array)
    return array.astype(np.float32, copy=False), array.dtype


def _padded(array: np.ndarray) -> np.ndarray:
    """With channels of zeros up to a multiple of 8, which change no product."""
    missing = -array.shape[-1] % 8
    return np.pad(array, [(0, 0)] * 3 + [(0, missing)]) if missing else array


def _checked(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    for name, array in (("Q", q), ("K", k), ("V", v)):
        if array.ndim != 4:
            raise ValueError(f"{name} has shape {array.shape}; needed: [entries, heads, positions, channels]")
    if k.shape[1] == 0 or q.shape[1] % k.shape[1] != 0:
        raise ValueError(f"{q.shape[1]} query heads are no multiple of {k.shape[1]} key heads")
    # Before channels are filled up, which makes 5 and 8 of them equal.
    for name, array, last in (("K", k, q.shape[3]), ("V", v, v.shape[3])):
        require_shape(name, array, q.shape[0], k.shape[1], k.shape[2], last)


def cpu_attention_fwd(Q: Any, K: Any, V: Any, scale: float, mask_type: int = 0) -> np.ndarray:
    """Attention of Q [B,Hq,Sq,Dq], K [B,Hk,Sk,Dq] and V [B,Hk,Sk,Dv], in the type of Q. Mask 1 lets query i see keys j <= i, mask 2
    keys j <= i + Sk - Sq; a row that sees nothing is 0. Raises ValueError for other masks and for shapes that do not fit."""
    if mask_type not in _MASKS:
        raise ValueError(f"mask_type {mask_type} is not known; allowed: 0 (none), 1 (top-left), 2 (bottom-right)")
    (q, dtype), (k, _), (v, _) = _stored(Q), _stored(K), _stored(V)
    _checked(q, k, v)
    o, _ = reference.attention(_padded(q), _padded(k), _padded(v), data_type="fp32", scale=float(scale), mask=int(mask_type))
    return o[..., : v.shape[-1]].astype(dtype)


def cpu_attention_fwd_with_intermediates(Q: Any, K: Any, V: Any, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """(O, P) without a mask: P [B,Hq,Sq,Sk] are the weights, which the reference gives as the output for V = 1."""
    (q, dtype), (k, _), (v, _) = _stored(Q), _stored(K), _stored(V)
    _checked(q, k, v)
    keys = k.shape[2]
    weights = np.empty((*q.shape[:3], keys))
    block = 256  # columns of the unit matrix at a time
    for first in range(0, keys, block):
        unit = np.eye(keys, dtype=np.float32)[:, first : first + block]
        unit = np.broadcast_to(unit, (*k.shape[:2], *unit.shape))
        part, _ = reference.attention(_padded(q), _padded(k), _padded(unit), data_type="fp32", scale=float(scale))
        weights[..., first : first + block] = part[..., : unit.shape[-1]]
    return cpu_attention_fwd(Q, K, V, scale), weights.astype(dtype)


def cpu_attention_bwd(Q: Any, K: Any, V: Any, out: Any, dO: Any, P: Any, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(dQ, dK, dV) from the weights P of forward, in the type of Q: dS = P ∘ (dO Vᵀ − rowsum(dO ∘ O)), dQ = scale dS K,
    dK = scale dSᵀ Q, dV = Pᵀ dO, in binary64. Shared key heads get the sum over their query heads."""
    read = [_floats(array) for array in (Q, K, V, out, dO, P)]
    dtype = read[0].dtype
    q, k, v, o, d_o, p = (array.astype(np.float64) for array in read)
    _checked(q, k, v)
    for name, array, last in (("out", o, v.shape[3]), ("dO", d_o, v.shape[3]), ("P", p, k.shape[2])):
        require_shape(name, array, *q.shape[:3], last)
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    d_s = p * (d_o @ wide_v.swapaxes(-1, -2) - (d_o * o).sum(-1, keepdims=True))
    d_q = scale * d_s @ wide_k

    def summed(per_query_head: np.ndarray) -> np.ndarray:
        shape = per_query_head.shape
        return per_query_head.reshape(shape[0], k.shape[1], group, *shape[2:]).sum(axis=2)

    d_k, d_v = summed(scale * d_s.swapaxes(-1, -2) @ q), summed(p.swapaxes(-1, -2) @ d_o)
    return d_q.astype(dtype), d_k.astype(dtype), d_v.astype(dtype)
