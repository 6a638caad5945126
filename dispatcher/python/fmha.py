"""libfmha.so through ctypes. The structures of fmha.h are built from the library's own list of their members, so that
nothing here repeats it.

    lib = fmha.load("build/host/lib/libfmha.so")
    args = lib.arguments(fmha.FWD)
    args.shape.batch, args.q = 1, lib.tensor(pointer, *strides)
    with fmha.Context(lib, kernels_dir="out/sm_90", device=0) as context:
        context.run_on_device(args, stream)
"""

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p

ABI_VERSION = 3

FWD, FWD_PAGEDKV, FWD_SPLITKV, FWD_APPENDKV, BATCH_PREFILL, BWD = range(6)
FP32, FP16, BF16, FP8, BF8, FP8BF16, FP8FP32, MXFP8, MXFP4 = range(9)
BATCH, GROUP = range(2)
NO_MASK, TOP_LEFT, BOTTOM_RIGHT, WINDOW_GENERIC = range(4)

STATUS = ("OK", "BAD_ARGUMENT", "BAD_PROBLEM", "NO_KERNEL", "UNSUPPORTED", "NO_MEMORY", "INTERNAL", "DEVICE_ERROR")
ARGUMENTS = ("fmha_fwd_args", "fmha_pagedkv_args", "fmha_splitkv_args", "fmha_appendkv_args",
             "fmha_batch_prefill_args", "fmha_bwd_args")
SCALARS = {"int32": c_int32, "uint32": c_uint32, "int64": c_int64, "uint64": c_uint64, "float": ctypes.c_float,
           "double": ctypes.c_double, "pointer": c_void_p}
TEXTS = ("arch", "kernels_dir")  # pointers to characters, among the options of a context


class FieldLayout(Structure):
    """One member, as the library tells it."""
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("offset", c_uint64), ("size", c_uint64)]


class Error(RuntimeError):
    """A call that failed: its status, the sentence of the library and the rule that was broken, if any."""

    def __init__(self, status, sentence, rule=""):
        name = STATUS[status] if status < len(STATUS) else str(status)
        super().__init__(f"{name}: {sentence}")
        self.status, self.rule = status, rule


class Library:
    """The functions of libfmha.so, and its structures."""

    def __init__(self, path):
        self.functions = lib = ctypes.CDLL(path)
        lib.fmha_abi_version.restype = c_uint32
        if lib.fmha_abi_version() != ABI_VERSION:
            raise Error(1, f"{path} implements version {lib.fmha_abi_version()}, this file version {ABI_VERSION}")
        lib.fmha_layout.restype = c_uint64
        lib.fmha_layout.argtypes = [c_char_p, POINTER(FieldLayout), c_uint64, POINTER(c_uint64)]
        lib.fmha_last_error.restype = lib.fmha_last_rule.restype = c_char_p
        lib.fmha_last_error.argtypes = lib.fmha_last_rule.argtypes = [c_void_p]
        lib.fmha_create.argtypes = [c_void_p, POINTER(c_void_p)]
        lib.fmha_destroy.argtypes = [c_void_p]
        lib.fmha_destroy.restype = None
        lib.fmha_kernel_count.argtypes = [c_void_p]
        lib.fmha_kernel_count.restype = c_int64
        lib.fmha_plan.argtypes = lib.fmha_run_host.argtypes = [c_void_p, c_void_p, c_void_p]
        lib.fmha_run_device.argtypes = [c_void_p, c_void_p, c_void_p, c_void_p]
        lib.fmha_workspace_size.argtypes = [c_void_p, c_void_p, POINTER(c_int64), POINTER(c_int32)]
        lib.fmha_prepare_workspace.argtypes = [c_void_p, c_void_p, c_void_p, c_void_p]
        self._structures = {}

    def structure(self, name):
        """The class of a structure of fmha.h."""
        if name not in self._structures:
            fields, size = (FieldLayout * 128)(), c_uint64()
            count = self.functions.fmha_layout(name.encode(), fields, 128, byref(size))
            if count == 0:
                raise Error(1, f"the library has no structure {name}")
            members = [(field.name.decode(), self._type(field)) for field in fields[:count]]
            kind = type(name, (Structure,), {"_fields_": members})
            if ctypes.sizeof(kind) != size.value:
                raise Error(1, f"{name} has {ctypes.sizeof(kind)} bytes here and {size.value} in the library")
            for field in fields[:count]:
                if getattr(kind, field.name.decode()).offset != field.offset:
                    raise Error(1, f"{name}.{field.name.decode()} lies elsewhere in the library")
            self._structures[name] = kind
        return self._structures[name]

    def _type(self, field):
        name, kind = field.name.decode(), field.type.decode()
        if kind == "text":
            return ctypes.c_char * field.size
        if kind == "pointer" and name in TEXTS:
            return c_char_p
        return SCALARS[kind] if kind in SCALARS else self.structure(kind)

    def fresh(self, name):
        """A zeroed structure that states its size and version."""
        value = self.structure(name)()
        value.size, value.version = ctypes.sizeof(value), ABI_VERSION
        return value

    def arguments(self, api):
        """Zeroed arguments of an API: FWD, BWD, …"""
        args = self.fresh(ARGUMENTS[api])
        args.api = api
        return args

    def tensor(self, data=None, *strides):
        """A view with strides (batch, head, row, column) in elements; without data, an absent tensor."""
        return self.structure("fmha_tensor")(data, *strides)


def load(path):
    """The library. Raises Error when its interface is not the one of this file."""
    return Library(path)


class Context:
    """One fmha_context. Methods raise Error with the library's sentence."""

    def __init__(self, lib, arch=None, kernels_dir=None, device=0):
        self.lib, self.handle = lib, c_void_p()
        options = lib.fresh("fmha_context_options")
        options.arch = arch.encode() if arch else None
        options.kernels_dir = str(kernels_dir).encode() if kernels_dir else None
        options.device = device
        try:
            self._check(lib.functions.fmha_create(byref(options), byref(self.handle)))
        except Error:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.handle:
            self.lib.functions.fmha_destroy(self.handle)
            self.handle = c_void_p()

    def kernel_count(self):
        return self.lib.functions.fmha_kernel_count(self.handle)

    def plan(self, args):
        """What would run: an fmha_run_info."""
        info = self.lib.fresh("fmha_run_info")
        self._check(self.lib.functions.fmha_plan(self.handle, byref(args), byref(info)))
        return info

    def workspace_size(self, args):
        """Bytes, and whether they are exact or an upper bound."""
        size, exact = c_int64(), c_int32()
        self._check(self.lib.functions.fmha_workspace_size(self.handle, byref(args), byref(size), byref(exact)))
        return size.value, bool(exact.value)

    def run_on_host(self, args):
        info = self.lib.fresh("fmha_run_info")
        self._check(self.lib.functions.fmha_run_host(self.handle, byref(args), byref(info)))
        return info

    def run_on_device(self, args, stream=None, info=None):
        """Starts a launch on `stream` and returns; fills `info` when one is given."""
        self._check(self.lib.functions.fmha_run_device(self.handle, byref(args), stream,
                                                       byref(info) if info else None))
        return info

    def _check(self, status):
        if status != 0:
            raise Error(status, self.lib.functions.fmha_last_error(self.handle).decode(),
                        self.lib.functions.fmha_last_rule(self.handle).decode())
