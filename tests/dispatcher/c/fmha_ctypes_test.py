"""Calls libfmha.so through ctypes: layouts both ways, known answers. Usage: FILE LIBRARY FOLDER_OF_FMHA_PY"""

import ctypes
import math
import sys
from ctypes import c_float, c_int32, c_void_p

sys.path.insert(0, sys.argv[2])
import fmha  # noqa: E402, from the folder that was just named
from fmha import FwdArgs, Tensor, fresh  # noqa: E402


def tensor(data, length, width):
    return Tensor(ctypes.cast(data, c_void_p), length * width, length * width, width, 1)


def run_example(context, change=lambda args: None):
    rows, keys, dim = 3, 4, 8
    q, k, v, o = ((c_float * (n * dim))() for n in (rows, keys, keys, rows))
    lse = (c_float * rows)()
    for i, value in enumerate((1, 2, -1)):
        q[i * dim] = value
    for j, (key, value) in enumerate(zip((1, 0, -1, 2), (1, 2, 4, -8))):
        k[j * dim], v[j * dim] = key, value
    args = fresh(FwdArgs)
    args.batch = args.nhead_q = args.nhead_k = 1
    args.seqlen_q, args.seqlen_k, args.hdim_q, args.hdim_v = rows, keys, dim, dim
    args.window_left = args.window_right = -1
    args.scale_s = 1.0
    args.q, args.k, args.v = tensor(q, rows, dim), tensor(k, keys, dim), tensor(v, keys, dim)
    args.o, args.lse = tensor(o, rows, dim), tensor(lse, rows, 1)
    change(args)
    info = context.run_on_host(args)
    return [o[i * dim] for i in range(rows)], list(lse), info


def close(values, expected):
    return all(math.isclose(a, b, rel_tol=2e-5) for a, b in zip(values, expected))


def check_numpy(context):
    """The same call on numpy's own memory and strides, where numpy is installed."""
    try:
        import numpy as np
    except ImportError:
        print("numpy is not installed: the part on its arrays is not run")
        return
    generator = np.random.default_rng(1)
    q, k, v = (generator.standard_normal((2, 4, 16, 64)).astype(np.float32) for _ in range(3))
    o = np.zeros_like(q)

    def view(array):
        step = [s // array.itemsize for s in array.strides]
        return Tensor(array.ctypes.data, *step)

    def change(args):
        args.batch, args.nhead_q, args.nhead_k, args.seqlen_q, args.seqlen_k = 2, 4, 4, 16, 16
        args.hdim_q = args.hdim_v = 64
        args.scale_s = 0.0
        args.q, args.k, args.v, args.o, args.lse = view(q), view(k), view(v), view(o), Tensor()

    run_example(context, change)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8.0
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    assert np.abs(o - expected).max() < 1e-5


def refused(call, status, rule=""):
    """The error of a call that must fail with this status."""
    try:
        call()
    except fmha.Error as error:
        assert (error.status, error.rule) == (status, rule), error
        return str(error)
    raise AssertionError("it was accepted")


def check_layout_is_compared(lib):
    """A mirror that lacks a member must be noticed."""
    class Shorter(ctypes.Structure):
        _fields_ = FwdArgs._fields_[:-1]

    whole = fmha.MIRRORS[b"fmha_fwd_args"]
    fmha.MIRRORS[b"fmha_fwd_args"] = Shorter
    assert "p_drop" in refused(lambda: fmha.check_layouts(lib), 1)
    fmha.MIRRORS[b"fmha_fwd_args"] = whole


def main():
    lib = fmha.load(sys.argv[1])
    check_layout_is_compared(lib)
    with fmha.Context(lib, "gfx950") as context:
        o, lse, info = run_example(context)
        assert close(o, (-4.61190821, -6.76231966, 2.88009817)), o
        assert close(lse, (2.44018970, 4.14507794, 1.44018970)), lse
        assert b"fp32" in info.kernel

        def two_lengths(args):
            array = (c_int32 * 2)(0, 3)
            args.seqlen_q_array = args.cu_seqlen_q = ctypes.cast(array, c_void_p)

        refused(lambda: run_example(context, two_lengths), 2, "N-3")
        check_numpy(context)


if __name__ == "__main__":
    main()
