"""The library by pointers."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from fmha import find, formats
from fmha.calls import MASKS, number_of
from fmha.families import shared_heads
from fmha.layer.config import FmhaProblem
from fmha.library import BWD, Context, Error, Library


class FmhaDispatcherLib:
    """One libfmha.so. `initialize` opens all kernels of an architecture, on the host."""

    SEARCH_PATHS = ("build/host/lib/libfmha.so", "build/command/lib/libfmha.so", "lib/libfmha.so")

    def __init__(self, lib: ctypes.CDLL, path: Path):
        self._lib, self.path = lib, Path(path)
        self.library = Library(str(path))
        self._context: Context | None = None

    @classmethod
    def find(cls) -> FmhaDispatcherLib | None:
        """The library that this package would use; None without one that can be loaded."""
        try:
            return cls.load(find.library())
        except (OSError, Error):
            return None

    @classmethod
    def load(cls, path: str) -> FmhaDispatcherLib:
        """The library at `path`. OSError when it cannot be loaded."""
        return cls(ctypes.CDLL(path), Path(path))

    def initialize(self, arch: str = "gfx950") -> bool:
        """Opens the kernels of an architecture; False when there are none."""
        self.cleanup()
        try:
            self._context = Context(self.library, arch)
        except Error:
            return False
        return self.kernel_count() > 0

    def kernel_count(self) -> int:
        """Kernels to choose from; 0 before `initialize` and after `cleanup`."""
        return self._context.kernel_count() if self._context is not None else 0

    def cleanup(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            context.close()

    def run_bwd(self, q: Any, k: Any, v: Any, o: Any, lse: Any, do_grad: Any, dq: Any, dk: Any, dv: Any, prob: FmhaProblem,
                data_type: str = "fp16", mask_type: int = 0, bias_type: int = 0, has_dropout: bool = False, has_dbias: bool = False,
                is_deterministic: bool = False, is_group_mode: bool = False, is_store_randval: bool = False,
                tile_n0: int = 128) -> tuple[int, float]:
        """(status, milliseconds) of gradients over dense [B,H,S,D] host memory. Features whose data this call has no argument for
        are refused with a status of 1 (bias, dropout, packed sequences); `FmhaRunner.run_bwd` takes them."""
        if self._context is None:
            return -1, 0.0
        if bias_type or has_dropout or has_dbias or is_group_mode or is_store_randval:
            return 1, 0.0
        lib = self.library
        args = lib.arguments(BWD)
        shape = args.shape
        shape.data_type = formats.data_type(data_type, "").code
        for name in ("batch", "nhead_q", "nhead_k", "seqlen_q", "seqlen_k", "hdim_q", "hdim_v"):
            setattr(shape, name, int(getattr(prob, name)))

        def dense(pointer: Any, heads: int, rows: int, width: int) -> Any:
            address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
            return lib.tensor(address, heads * rows * width, rows * width, width, 1)

        rows, keys = (prob.nhead_q, prob.seqlen_q), (prob.nhead_k, prob.seqlen_k)
        args.q, args.dq = dense(q, *rows, prob.hdim_q), dense(dq, *rows, prob.hdim_q)
        args.k, args.v = dense(k, *keys, prob.hdim_q), dense(v, *keys, prob.hdim_v)
        # The kernels write a head for every query head.
        element = formats.data_type(data_type, "").inputs
        full = {name: np.empty((prob.batch, prob.nhead_q, prob.seqlen_k, width), element.dtype)
                for name, width in (("dk", prob.hdim_q), ("dv", prob.hdim_v))}
        args.dk, args.dv = (dense(array.ctypes.data, prob.nhead_q, *array.shape[2:]) for array in full.values())
        args.o, args.d_o = dense(o, *rows, prob.hdim_v), dense(do_grad, *rows, prob.hdim_v)
        args.lse = dense(lse, *rows, 1)
        row_sums = (ctypes.c_float * (prob.batch * prob.nhead_q * prob.seqlen_q))()
        args.d = dense(ctypes.addressof(row_sums), *rows, 1)
        args.deterministic = int(is_deterministic)
        args.mask.type = number_of(mask_type, MASKS, "mask_type")
        args.mask.window_left, args.mask.window_right = -1, 0 if mask_type in (1, 2) else -1
        try:
            milliseconds = self._context.run_on_host(args).milliseconds
        except Error as error:
            return error.status, 0.0
        for pointer, array in ((dk, full["dk"]), (dv, full["dv"])):
            shared = formats.encode(shared_heads(formats.decode(array, element), prob.nhead_k), element)
            ctypes.memmove(pointer, np.ascontiguousarray(shared).ctypes.data, shared.nbytes)
        return 0, milliseconds
