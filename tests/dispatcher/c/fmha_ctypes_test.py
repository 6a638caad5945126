"""Calls libfmha.so through ctypes: mirrored structures, layouts both ways, known answers. Usage: FILE LIBRARY"""

import ctypes
import math
import sys
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p

ABI_VERSION = 1


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("batch_stride", c_int64), ("head_stride", c_int64), ("row_stride", c_int64),
                ("col_stride", c_int64)]


class ContextOptions(Structure):
    _fields_ = [("size", c_uint32), ("version", c_uint32), ("arch", c_char_p)]


class FwdArgs(Structure):
    _fields_ = ([("size", c_uint32), ("version", c_uint32)]
                + [(n, c_int32) for n in ("data_type", "mode", "v_layout", "mask_type", "bias_type", "qscale")]
                + [(n, c_int64) for n in ("batch", "nhead_q", "nhead_k", "seqlen_q", "seqlen_k", "max_seqlen_q",
                                          "max_seqlen_k", "min_seqlen_q", "hdim_q", "hdim_v", "window_left",
                                          "window_right", "sink_size")]
                + [(n, Tensor) for n in ("q", "k", "v", "o", "lse", "bias", "randval", "q_descale", "k_descale",
                                         "v_descale")]
                + [(n, c_void_p) for n in ("seqstart_q", "seqstart_k", "seqlen_q_array", "seqlen_k_array",
                                           "cu_seqlen_q", "cu_seqlen_k", "alibi_slopes")]
                + [("alibi_stride", c_int64), ("sink_logit", c_void_p), ("block_scale_size_q", c_int64),
                   ("block_scale_size_k", c_int64), ("block_scale_seqstart_q", c_void_p),
                   ("block_scale_seqstart_k", c_void_p), ("dropout_seed", c_uint64), ("dropout_offset", c_uint64)]
                + [(n, c_float) for n in ("scale_s", "scale_o", "logits_soft_cap", "p_drop")])


class RunInfo(Structure):
    _fields_ = [("size", c_uint32), ("version", c_uint32), ("workspace_bytes", c_int64), ("milliseconds", c_double),
                ("kernel", c_char * 512)]


class FieldLayout(Structure):
    _fields_ = [("name", c_char_p), ("offset", c_uint64), ("size", c_uint64)]


MIRRORS = {b"fmha_tensor": Tensor, b"fmha_context_options": ContextOptions, b"fmha_fwd_args": FwdArgs,
           b"fmha_run_info": RunInfo}


def fresh(kind):
    value = kind()
    value.size, value.version = ctypes.sizeof(kind), ABI_VERSION
    return value


def load(path):
    lib = ctypes.CDLL(path)
    lib.fmha_abi_version.restype = c_uint32
    lib.fmha_last_error.restype = lib.fmha_last_rule.restype = c_char_p
    lib.fmha_last_error.argtypes = lib.fmha_last_rule.argtypes = [c_void_p]
    lib.fmha_create.argtypes = [POINTER(ContextOptions), POINTER(c_void_p)]
    lib.fmha_destroy.argtypes = [c_void_p]
    lib.fmha_run_fwd_host.argtypes = [c_void_p, POINTER(FwdArgs), POINTER(RunInfo)]
    lib.fmha_layout.restype = c_uint64
    lib.fmha_layout.argtypes = [c_char_p, POINTER(FieldLayout), c_uint64, POINTER(c_uint64)]
    return lib


def check_layouts(lib):
    """Every member of the library must be mirrored at the same place, and every mirrored one must exist there."""
    for name, mirror in MIRRORS.items():
        fields, size = (FieldLayout * 128)(), c_uint64()
        count = lib.fmha_layout(name, fields, 128, ctypes.byref(size))
        theirs = {f.name.decode(): (f.offset, f.size) for f in fields[:count]}
        ours = {n: (getattr(mirror, n).offset, getattr(mirror, n).size) for n, _ in mirror._fields_}
        assert theirs == ours, (name, set(theirs.items()) ^ set(ours.items()))
        assert size.value == ctypes.sizeof(mirror), name


def tensor(data, length, width):
    return Tensor(ctypes.cast(data, c_void_p), length * width, length * width, width, 1)


def run_example(lib, context, change=lambda args: None):
    rows, keys, dim = 3, 4, 8
    q, k, v, o = ((c_float * (n * dim))() for n in (rows, keys, keys, rows))
    lse = (c_float * rows)()
    for i, value in enumerate((1, 2, -1)):
        q[i * dim] = value
    for j, (key, value) in enumerate(zip((1, 0, -1, 2), (1, 2, 4, -8))):
        k[j * dim], v[j * dim] = key, value
    args, info = fresh(FwdArgs), fresh(RunInfo)
    args.batch = args.nhead_q = args.nhead_k = 1
    args.seqlen_q, args.seqlen_k, args.hdim_q, args.hdim_v = rows, keys, dim, dim
    args.window_left = args.window_right = -1
    args.scale_s = 1.0
    args.q, args.k, args.v = tensor(q, rows, dim), tensor(k, keys, dim), tensor(v, keys, dim)
    args.o, args.lse = tensor(o, rows, dim), tensor(lse, rows, 1)
    change(args)
    status = lib.fmha_run_fwd_host(context, ctypes.byref(args), ctypes.byref(info))
    return status, [o[i * dim] for i in range(rows)], list(lse), info


def close(values, expected):
    return all(math.isclose(a, b, rel_tol=2e-5) for a, b in zip(values, expected))


def check_numpy(lib, context):
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

    status, _, _, _ = run_example(lib, context, change)
    assert status == 0, lib.fmha_last_error(context)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8.0
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    assert np.abs(o - expected).max() < 1e-5


def main():
    lib = load(sys.argv[1])
    assert lib.fmha_abi_version() == ABI_VERSION
    check_layouts(lib)
    context, options = c_void_p(), fresh(ContextOptions)
    options.arch = b"gfx950"
    assert lib.fmha_create(ctypes.byref(options), ctypes.byref(context)) == 0, lib.fmha_last_error(context)
    status, o, lse, info = run_example(lib, context)
    assert status == 0, lib.fmha_last_error(context)
    assert close(o, (-4.61190821, -6.76231966, 2.88009817)), o
    assert close(lse, (2.44018970, 4.14507794, 1.44018970)), lse
    assert b"fp32" in info.kernel

    def two_lengths(args):
        array = (c_int32 * 2)(0, 3)
        args.seqlen_q_array = args.cu_seqlen_q = ctypes.cast(array, c_void_p)

    status, _, _, _ = run_example(lib, context, two_lengths)
    assert status == 2 and lib.fmha_last_rule(context) == b"N-3", lib.fmha_last_error(context)
    check_numpy(lib, context)
    lib.fmha_destroy(context)


if __name__ == "__main__":
    main()
