"""libfmha.so through ctypes. The structures of fmha.h are built from the library's own list of their members, so that
nothing here repeats it. Needs nothing but Python.

    lib = fmha.load()
    args = lib.arguments(fmha.FWD)
    args.shape.batch, args.q = 1, lib.tensor(pointer, *strides)
    with fmha.Context(lib, kernels_dir="out/sm_90", device=0) as context:
        context.run_on_device(args, stream)
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
import json
import operator
import os
import threading
import traceback
from typing import Any, Callable, Iterable

from fmha import find
from fmha.values import path, real_number, shown, text

ABI_VERSION = 5

FWD, FWD_PAGEDKV, FWD_SPLITKV, FWD_APPENDKV, BATCH_PREFILL, BWD = range(6)
FP32, FP16, BF16, FP8, BF8, FP8BF16, FP8FP32, MXFP8, MXFP4 = range(9)
BATCH, GROUP = range(2)
NO_MASK, TOP_LEFT, BOTTOM_RIGHT, WINDOW_GENERIC = range(4)

STATUS = ("OK", "BAD_ARGUMENT", "BAD_PROBLEM", "NO_KERNEL", "UNSUPPORTED", "NO_MEMORY", "INTERNAL", "DEVICE_ERROR")
ARGUMENTS = ("fmha_fwd_args", "fmha_pagedkv_args", "fmha_splitkv_args", "fmha_appendkv_args",
             "fmha_batch_prefill_args", "fmha_bwd_args")
SCALARS = {"int32": c_int32, "uint32": c_uint32, "int64": c_int64, "uint64": c_uint64, "float": ctypes.c_float,
           "double": ctypes.c_double, "pointer": c_void_p}
_RANGES = {kind: (-(1 << bits - 1), (1 << bits - 1) - 1) for kind, bits in ((c_int32, 32), (c_int64, 64))} | {
    kind: (0, (1 << bits) - 1) for kind, bits in ((c_uint32, 32), (c_uint64, 64))}
HEURISTIC = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)  # gives the address of a text
TEXTS = ("arch", "kernels_dir")  # pointers to characters, among the options of a context


LINE = 128  # bytes: partial sums of dQ that begin at a multiple are added to faster


def workspace_place(args: Any, address: int) -> int:
    """The first address from `address` on at which the workspace of backward is fastest (fmha_prepare_workspace); fewer than 128 bytes
    behind it when that is a multiple of 16."""
    packed = args.deterministic and args.shape.mode == GROUP
    entries = args.shape.batch if packed else 1
    header = (4 * entries + 15) // 16 * 16 + ((8 * (entries + 1) + 15) // 16 * 16 if packed else 0)
    return address + (-address - header) % LINE


class FieldLayout(Structure):
    """One member, as the library tells it."""
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("offset", c_uint64), ("size", c_uint64)]


class Error(RuntimeError):
    """A call that failed: its status, the sentence of the library and the rule that was broken, if any."""

    def __init__(self, status: int, sentence: str, rule: str = ""):
        name = STATUS[status] if 0 <= status < len(STATUS) else str(status)
        super().__init__(f"{name}: {sentence}")
        self.status, self.sentence, self.rule = status, sentence, rule

    def __reduce__(self) -> tuple:
        """As processes hand it on: an exception is else made anew of its text alone."""
        return type(self), (self.status, self.sentence, self.rule)


class Checked(Structure):
    """A structure that refuses numbers which its members cannot hold; ctypes keeps their low bits without a word."""
    _kinds: dict[str, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kinds.get(name)
        if kind in _RANGES:
            low, high = _RANGES[kind]
            try:
                value = operator.index(value)
            except TypeError:
                raise ValueError(f"{name} is {shown(value)}; a whole number is needed") from None
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}; allowed: {low} to {high}")
        elif kind in (ctypes.c_float, ctypes.c_double):
            value = real_number(name, value)
        super().__setattr__(name, value)


class Library:
    """The functions of libfmha.so, and its structures."""

    def __init__(self, path: str | os.PathLike):
        path = os.fspath(path)
        self.path = path
        self.functions = lib = find.opened(path)
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
        lib.fmha_keep_kernels.argtypes = [c_void_p, c_char_p]
        lib.fmha_export_kernels.argtypes = [c_void_p, c_char_p, c_uint64, POINTER(c_uint64)]
        lib.fmha_correct_kernel.argtypes = [c_void_p, c_char_p, c_char_p, c_uint64, POINTER(c_uint64)]
        lib.fmha_set_heuristic.argtypes = [c_void_p, HEURISTIC, c_void_p]
        lib.fmha_explain.argtypes = [c_void_p, c_void_p, c_char_p, c_uint64, POINTER(c_uint64)]
        lib.fmha_time_device.argtypes = [c_void_p, c_void_p, c_void_p, c_int32, c_int32, POINTER(ctypes.c_double)]
        lib.fmha_device_allocate.argtypes = [c_void_p, c_int64, POINTER(c_void_p)]
        lib.fmha_device_release.argtypes = [c_void_p, c_void_p]
        lib.fmha_device_upload.argtypes = lib.fmha_device_download.argtypes = [c_void_p, c_void_p, c_void_p, c_int64,
                                                                               c_void_p]
        lib.fmha_device_wait.argtypes = [c_void_p, c_void_p]
        self._structures = {}

    def structure(self, name: str) -> type[Checked]:
        """The class of a structure of fmha.h."""
        if name not in self._structures:
            fields, size = (FieldLayout * 128)(), c_uint64()
            count = self.functions.fmha_layout(name.encode(), fields, 128, byref(size))
            if count == 0:
                raise Error(1, f"the library has no structure {name}")
            members = [(field.name.decode(), self._type(field)) for field in fields[:count]]
            kind = type(name, (Checked,), {"_fields_": members, "_kinds": dict(members)})
            if ctypes.sizeof(kind) != size.value:
                raise Error(1, f"{name} has {ctypes.sizeof(kind)} bytes here and {size.value} in the library")
            for field in fields[:count]:
                if getattr(kind, field.name.decode()).offset != field.offset:
                    raise Error(1, f"{name}.{field.name.decode()} lies elsewhere in the library")
            self._structures[name] = kind
        return self._structures[name]

    def _type(self, field: FieldLayout) -> Any:
        name, kind = field.name.decode(), field.type.decode()
        if kind == "text":
            return ctypes.c_char * field.size
        if kind == "pointer" and name in TEXTS:
            return c_char_p
        return SCALARS[kind] if kind in SCALARS else self.structure(kind)

    def fresh(self, name: str) -> Any:
        """A zeroed structure that states its size and version."""
        value = self.structure(name)()
        value.size, value.version = ctypes.sizeof(value), ABI_VERSION
        return value

    def arguments(self, api: int) -> Any:
        """Zeroed arguments of an API: FWD, BWD, …"""
        args = self.fresh(ARGUMENTS[api])
        args.api = api
        return args

    def tensor(self, data: int | None = None, *strides: int) -> Any:
        """A view with strides (batch, head, row, column) in elements; without data, an absent tensor."""
        return self.structure("fmha_tensor")(data, *strides)


def load(path: str | os.PathLike | None = None) -> Library:
    """The library at `path`, else where `find.library` finds it. Raises Error when its interface is not the one of this
    file, OSError when it cannot be opened."""
    return Library(path or find.library())


class Context:
    """One fmha_context. Methods raise Error with the library's sentence. Calls of several threads wait for each other, as a context does
    one thing at a time; threads with a context each run side by side.

    Without `kernels_dir` it chooses among all kernels of `arch` and runs them on the host; with it, among the kernels that
    `fmha build` left in that folder, and runs them on `device`."""

    def __init__(self, lib: Library, arch: str | None = None, kernels_dir: str | os.PathLike | None = None, device: int = 0):
        self._lock = threading.RLock()  # a heuristic may ask the context that asks it
        self._running = 0  # calls of the thread that has the lock: more than one within a heuristic
        self._heuristics = []  # the last is asked; a call in progress may be within the ones before
        self.lib, self.handle, self._arch = lib, c_void_p(), arch
        self.on_device = kernels_dir is not None
        options = lib.fresh("fmha_context_options")
        options.arch = text("arch", arch).encode() if arch is not None else None
        options.kernels_dir = path("kernels_dir", kernels_dir) if self.on_device else None
        options.device = device
        try:
            self._check(lib.functions.fmha_create(byref(options), byref(self.handle)))
        except Error:
            self.close()
            raise

    @property
    def arch(self) -> str:
        """The architecture of its kernels, which decides the flavour of 8-bit floats."""
        if self._arch is None:
            self._arch = self.kernels()[0]["gfx_arch"]
        return self._arch

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Context belongs to its object and its process; make another one instead of a copy")

    def close(self) -> None:
        """Frees the context; a second call does nothing. Raises Error within its own heuristic, whose call still needs it."""
        with self._lock:
            if self._running:
                raise Error(STATUS.index("BAD_ARGUMENT"), "a call of the context is in progress; close it when that has returned")
            if self.handle:
                self.lib.functions.fmha_destroy(self.handle)
                self.handle = c_void_p()

    def kernel_count(self) -> int:
        """Kernels to choose from; 0 once it is closed."""
        with self._lock:
            return self.lib.functions.fmha_kernel_count(self.handle)

    def keep(self, where: str) -> None:
        """From now on only kernels `c` for which this Python expression is true, as in "c.hdim_q == 128"."""
        self._call(self.lib.functions.fmha_keep_kernels, text("where", where).encode())

    def kernels(self) -> list[dict]:
        """The kernels to choose from: name, gfx_arch, signature and algorithm of each."""
        return json.loads(self.export())["kernels"]

    def export(self) -> str:
        """The same as JSON text, with totals (dispatcher/registry/export.schema.json)."""
        return self._text(self.lib.functions.fmha_export_kernels)

    def correct(self, config: dict) -> dict:
        """The valid kernel configuration that is nearest to one with some or all fields of KernelConfig: "valid", "config",
        "identifier", the rules that it breaks ("broken") and "changes", each with "field", "from", "to" and "why"."""
        return json.loads(self._text(self.lib.functions.fmha_correct_kernel, json.dumps(config).encode()))

    def set_heuristic(self, heuristic: Callable[[int], Iterable[str]] | None) -> None:
        """From now on heuristic(address of the arguments) gives names of kernels, or globs, that are preferred in this order;
        None takes it away. An exception in it is printed, and the library chooses. It may call this context, which then chooses
        as it does without a heuristic; it cannot close it."""
        answer = []  # the text has to stay until the call returns

        def ask(args: int, _: int | None) -> int:
            try:
                answer[:] = [ctypes.create_string_buffer("\n".join(heuristic(args)).encode())]
            except BaseException:  # what a callback of ctypes returns then is no address
                traceback.print_exc()
                return 0
            return ctypes.addressof(answer[0])

        callback = HEURISTIC(ask) if heuristic else HEURISTIC()
        self._call(self.lib.functions.fmha_set_heuristic, callback, None)
        self._heuristics.append(callback)

    def explain(self, args: Structure) -> str:
        """Why these kernels would run, and why not others."""
        return self._text(self.lib.functions.fmha_explain, byref(args))

    def plan(self, args: Structure) -> Any:
        """The kernels that would run: an fmha_run_info."""
        info = self.lib.fresh("fmha_run_info")
        self._call(self.lib.functions.fmha_plan, byref(args), byref(info))
        return info

    def workspace_size(self, args: Structure) -> tuple[int, bool]:
        """Bytes, and whether they are exact or an upper bound."""
        size, exact = c_int64(), c_int32()
        self._call(self.lib.functions.fmha_workspace_size, byref(args), byref(size), byref(exact))
        return size.value, bool(exact.value)

    def prepare_workspace(self, args: Structure, workspace: int, stream: int | None = None) -> None:
        """Prepares the workspace of kernels in device memory. Backward needs it before every run."""
        self._call(self.lib.functions.fmha_prepare_workspace, byref(args), workspace, stream)

    def run_on_host(self, args: Structure) -> Any:
        info = self.lib.fresh("fmha_run_info")
        self._call(self.lib.functions.fmha_run_host, byref(args), byref(info))
        return info

    def run_on_device(self, args: Structure, stream: int | None = None, info: Structure | None = None) -> Any:
        """Starts a launch on `stream` and returns; fills `info` when one is given."""
        self._call(self.lib.functions.fmha_run_device, byref(args), stream, byref(info) if info else None)
        return info

    def time_on_device(self, args: Structure, stream: int | None = None, warm_up: int = 10, repeats: int = 50) -> float:
        """Mean milliseconds of a launch."""
        milliseconds = ctypes.c_double()
        self._call(self.lib.functions.fmha_time_device, byref(args), stream, warm_up, repeats, byref(milliseconds))
        return milliseconds.value

    def allocate(self, size: int) -> int:
        """The address of so many bytes of device memory."""
        memory = c_void_p()
        self._call(self.lib.functions.fmha_device_allocate, size, byref(memory))
        return memory.value

    def release(self, address: int) -> None:
        self._call(self.lib.functions.fmha_device_release, address)

    def upload(self, device: int, host: int, size: int, stream: int | None = None) -> None:
        self._call(self.lib.functions.fmha_device_upload, device, host, size, stream)

    def download(self, host: int, device: int, size: int, stream: int | None = None) -> None:
        self._call(self.lib.functions.fmha_device_download, host, device, size, stream)

    def wait(self, stream: int | None = None) -> None:
        """Returns when everything in the stream is done."""
        self._call(self.lib.functions.fmha_device_wait, stream)

    def _text(self, function: Callable[..., int], *arguments: Any) -> str:
        length, capacity = c_uint64(), 1 << 20
        while True:
            text = ctypes.create_string_buffer(capacity)
            self._call(function, *arguments, text, capacity, byref(length))
            if length.value < capacity:
                return text.value.decode()
            capacity = length.value + 1

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        """A function of the library on this context, whose sentence no other thread's call has replaced."""
        with self._lock:
            if not self.handle:
                raise Error(STATUS.index("BAD_ARGUMENT"), "the context is closed")
            self._running += 1
            try:
                self._check(function(self.handle, *arguments))
            finally:
                self._running -= 1
                if not self._running:
                    del self._heuristics[:-1]

    def _check(self, status: int) -> None:
        if status != 0:
            raise Error(status, self.lib.functions.fmha_last_error(self.handle).decode(errors="backslashreplace"),
                        self.lib.functions.fmha_last_rule(self.handle).decode())
