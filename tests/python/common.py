"""Formulas and stand-ins that the tests share. Attention is written out here once more, in plain NumPy."""

import ctypes

import numpy as np

import fmha
from fmha.library import Error  # noqa: F401, tests import it from here


def softmax_attention(q, k, v, scale=None, visible=None, bias=None, soft_cap=0.0):
    """(O, LSE, P) in float64 of [B,H,S,D] arrays; `visible` is a table over rows and keys."""
    q, k, v = (np.asarray(array, np.float64) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if soft_cap:
        scores = soft_cap * np.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + np.where(np.isfinite(top), top, 0.0))[..., 0]
    p = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return p @ v, lse, p


def causal(rows, keys, bottom_right=False):
    """Which keys each row sees."""
    return np.arange(keys)[None, :] <= np.arange(rows)[:, None] + (keys - rows if bottom_right else 0)


def softmax_gradients(q, k, v, d_o, visible=None):
    """(dQ, dK, dV) by the chain rule through P, heads of K and V summed over their group."""
    o, _, p = softmax_attention(q, k, v, visible=visible)
    q, k, v, d_o = (np.asarray(array, np.float64) for array in (q, k, v, d_o))
    group, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    wide_k, wide_v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    d_p = d_o @ wide_v.swapaxes(-1, -2)
    d_s = p * (d_p - (d_p * p).sum(-1, keepdims=True))
    shared = lambda full: full.reshape(k.shape[0], k.shape[1], group, *full.shape[2:]).sum(2)
    return scale * d_s @ wide_k, shared(scale * d_s.swapaxes(-1, -2) @ q), shared(p.swapaxes(-1, -2) @ d_o)


def random_arrays(seed, *shapes, dtype=np.float16, size=0.5):
    generator = np.random.default_rng(seed)
    return [(generator.standard_normal(shape) * size).astype(dtype) for shape in shapes]


class CudaArray:
    """Memory of the process that says it is a device's, as CuPy's arrays do."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {"version": 3, "shape": array.shape, "typestr": array.dtype.str,
                                         "data": (array.ctypes.data, False), "strides": array.strides}


class DlTensor:
    """Memory of the process behind DLPack, as PyTorch's tensors are. Counts how often its memory was given back."""

    def __init__(self, array, device_type=1, code=None, lanes=1, byte_offset=0):
        self.array, self.device_type, self.lanes, self.byte_offset, self.freed = array, device_type, lanes, byte_offset, 0
        self.code = code if code is not None else {"f": 2, "u": 1, "i": 0}[array.dtype.kind]
        self._kept = []

    def __dlpack_device__(self):
        return self.device_type, 0

    def __dlpack__(self, stream=None):
        class Managed(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

        count = self.array.ndim
        shape = (ctypes.c_int64 * count)(*self.array.shape)
        strides = (ctypes.c_int64 * count)(*(step // self.array.itemsize for step in self.array.strides))
        managed = Managed(self.array.ctypes.data - self.byte_offset, self.device_type, 0, count, self.code, self.array.itemsize * 8, self.lanes,
                          ctypes.addressof(shape), ctypes.addressof(strides), self.byte_offset, None, None)

        def free(_capsule):
            self.freed += 1

        destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)
        self._kept.append((shape, strides, managed, destructor))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(managed), b"dltensor", ctypes.cast(destructor, ctypes.c_void_p))


def library():
    return fmha.load()
