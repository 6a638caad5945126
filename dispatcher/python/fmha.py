"""libfmha.so through ctypes: the structures of fmha.h, checked against the library's own layout when it is loaded.

    lib = fmha.load("build/host/lib/libfmha.so")
    with fmha.Context(lib, kernels_dir="out/sm_90", device=0) as context:
        kernel = context.run_on_device(args, stream).kernel
"""

import ctypes
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_uint32,
                    c_uint64, c_void_p)

ABI_VERSION = 2

FP32, FP16, BF16, FP8, BF8, FP8BF16, FP8FP32, MXFP8, MXFP4 = range(9)
BATCH, GROUP = range(2)
NO_MASK, TOP_LEFT, BOTTOM_RIGHT, WINDOW_GENERIC = range(4)

STATUS = ("OK", "BAD_ARGUMENT", "BAD_PROBLEM", "NO_KERNEL", "UNSUPPORTED", "NO_MEMORY", "INTERNAL", "DEVICE_ERROR")


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("batch_stride", c_int64), ("head_stride", c_int64), ("row_stride", c_int64),
                ("col_stride", c_int64)]


class ContextOptions(Structure):
    _fields_ = [("size", c_uint32), ("version", c_uint32), ("arch", c_char_p), ("kernels_dir", c_char_p),
                ("device", c_int64)]


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


class Error(RuntimeError):
    """A call that failed: its status, the sentence of the library and the rule that was broken, if any."""

    def __init__(self, status, sentence, rule=""):
        name = STATUS[status] if status < len(STATUS) else str(status)
        super().__init__(f"{name}: {sentence}")
        self.status, self.rule = status, rule


def fresh(kind):
    """A zeroed structure that states its size and version."""
    value = kind()
    value.size, value.version = ctypes.sizeof(kind), ABI_VERSION
    return value


def check_layouts(lib):
    """Every member of the library must be mirrored at the same place, and every mirrored one must exist there."""
    for name, mirror in MIRRORS.items():
        fields, size = (FieldLayout * 128)(), c_uint64()
        count = lib.fmha_layout(name, fields, 128, byref(size))
        theirs = {f.name.decode(): (f.offset, f.size) for f in fields[:count]}
        ours = {n: (getattr(mirror, n).offset, getattr(mirror, n).size) for n, _ in mirror._fields_}
        if theirs != ours or size.value != ctypes.sizeof(mirror):
            different = sorted(n for n, _ in set(theirs.items()) ^ set(ours.items()))
            raise Error(1, f"{name.decode()} of the library differs from this file in {different or 'its size'}")


def load(path):
    """The library with its signatures declared. Raises Error when its interface is not the one of this file."""
    lib = ctypes.CDLL(path)
    lib.fmha_abi_version.restype = c_uint32
    if lib.fmha_abi_version() != ABI_VERSION:
        raise Error(1, f"{path} implements version {lib.fmha_abi_version()}, this file version {ABI_VERSION}")
    lib.fmha_last_error.restype = lib.fmha_last_rule.restype = c_char_p
    lib.fmha_last_error.argtypes = lib.fmha_last_rule.argtypes = [c_void_p]
    lib.fmha_create.argtypes = [POINTER(ContextOptions), POINTER(c_void_p)]
    lib.fmha_destroy.argtypes = [c_void_p]
    lib.fmha_destroy.restype = None
    lib.fmha_kernel_count.argtypes = [c_void_p]
    lib.fmha_kernel_count.restype = c_int64
    lib.fmha_plan_fwd.argtypes = lib.fmha_run_fwd_host.argtypes = [c_void_p, POINTER(FwdArgs), POINTER(RunInfo)]
    lib.fmha_run_fwd_device.argtypes = [c_void_p, POINTER(FwdArgs), c_void_p, POINTER(RunInfo)]
    lib.fmha_layout.restype = c_uint64
    lib.fmha_layout.argtypes = [c_char_p, POINTER(FieldLayout), c_uint64, POINTER(c_uint64)]
    check_layouts(lib)
    return lib


class Context:
    """One fmha_context. Methods raise Error with the library's sentence."""

    def __init__(self, lib, arch=None, kernels_dir=None, device=0):
        self.lib, self.handle = lib, c_void_p()
        options = fresh(ContextOptions)
        options.arch = arch.encode() if arch else None
        options.kernels_dir = str(kernels_dir).encode() if kernels_dir else None
        options.device = device
        try:
            self._check(lib.fmha_create(byref(options), byref(self.handle)))
        except Error:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.handle:
            self.lib.fmha_destroy(self.handle)
            self.handle = c_void_p()

    def kernel_count(self):
        return self.lib.fmha_kernel_count(self.handle)

    def plan(self, args):
        info = fresh(RunInfo)
        self._check(self.lib.fmha_plan_fwd(self.handle, byref(args), byref(info)))
        return info

    def run_on_host(self, args):
        info = fresh(RunInfo)
        self._check(self.lib.fmha_run_fwd_host(self.handle, byref(args), byref(info)))
        return info

    def run_on_device(self, args, stream=None, info=None):
        """Starts a launch on `stream` and returns; fills `info` when one is given."""
        self._check(self.lib.fmha_run_fwd_device(self.handle, byref(args), stream, byref(info) if info else None))
        return info

    def _check(self, status):
        if status != 0:
            raise Error(status, self.lib.fmha_last_error(self.handle).decode(),
                        self.lib.fmha_last_rule(self.handle).decode())
