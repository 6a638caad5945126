"""The library by pointers."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np

from fmha import find, formats
from fmha.formats import FP32, ElementType
from fmha.layer.config import FmhaProblem, checked_problem
from fmha.layer.results import FmhaResult
from fmha.layer.runner import FmhaRunner
from fmha.library import Error, Library
from fmha.tensors import View, numpy_of, packed_strides


def _array(pointer: Any, shape: tuple[int, ...], element: ElementType) -> np.ndarray:
    """Dense memory of the caller, as an array that shares it."""
    address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    if not address:
        raise ValueError(f"a pointer is NULL; memory of shape {shape} is needed there")
    return numpy_of(View(int(address), shape, packed_strides(shape), element.dtype))


class FmhaDispatcherLib:
    """One libfmha.so. `initialize` opens all kernels of an architecture, on the host. A run gives a status: 0; -1 before
    `initialize`; -2 for a call that fails, with the reason in `error` and on stderr."""

    SEARCH_PATHS = ("build/host/lib/libfmha.so", "build/command/lib/libfmha.so", "lib/libfmha.so")

    def __init__(self, lib: ctypes.CDLL, path: Path):
        self._lib, self.path = lib, Path(path)
        self.library = Library(str(path))
        self.error = ""
        self._runner: FmhaRunner | None = None

    @classmethod
    def find(cls) -> FmhaDispatcherLib | None:
        """The library that this package would use; None without a library that can be loaded."""
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
            self._runner = FmhaRunner(self, arch)
        except RuntimeError as error:
            self.error = str(error)
            return False
        return self.kernel_count() > 0

    def kernel_count(self) -> int:
        """Kernels to choose from; 0 before `initialize` and after `cleanup`."""
        return self._runner.kernel_count if self._runner is not None else 0

    def cleanup(self) -> None:
        """Frees the kernels; a second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cleanup()

    def run_fwd(self, q: Any, k: Any, v: Any, o: Any, prob: FmhaProblem, mask_type: int = 0, bias_type: int = 0, has_lse: int = 0,
                has_dropout: int = 0, traits_hdim_q: int = 0, traits_hdim_v: int = 0, data_type: str = "fp16",
                **keywords: Any) -> tuple[int, float]:
        """(status, milliseconds) of attention over dense [B,H,S,D] host memory. `keywords` are those of `FmhaRunner.run`: a bias, a
        soft-cap and dropout need their data. The head sizes are those of `prob`; LSE is computed and not returned."""
        def run(runner: FmhaRunner, prob: FmhaProblem) -> float:
            kind = formats.data_type(data_type, runner.arch)
            arrays = [_array(pointer, shape, kind.inputs)
                      for pointer, shape in ((q, prob.q_shape()), (k, prob.k_shape()), (v, prob.v_shape()))]
            result = runner.run(*arrays, prob, mask_type, bias_type, has_lse, has_dropout, data_type=data_type, traits_hdim_q=traits_hdim_q,
                                traits_hdim_v=traits_hdim_v, **keywords)
            return self._checked(result, ((o, prob.o_shape(), kind.output),))

        return self._status(run, prob)

    def run_bwd(self, q: Any, k: Any, v: Any, o: Any, lse: Any, do_grad: Any, dq: Any, dk: Any, dv: Any, prob: FmhaProblem,
                data_type: str = "fp16", mask_type: int = 0, bias_type: int = 0, has_dropout: bool = False, has_dbias: bool = False,
                is_deterministic: bool = False, is_group_mode: bool = False, is_store_randval: bool = False,
                tile_n0: int = 128, **keywords: Any) -> tuple[int, float]:
        """(status, milliseconds) of gradients over dense [B,H,S,D] host memory; heads of K and V that are shared get the sums.
        `keywords` are those of `FmhaRunner.run_bwd`: a bias and dropout need their data. Group mode packs sequences of the problem's
        length. dbias and random bytes are outputs that this call has no argument for, and refused; `FmhaRunner` gives both."""
        def run(runner: FmhaRunner, prob: FmhaProblem) -> float:
            for name, asked in (("has_dbias", has_dbias), ("is_store_randval", is_store_randval)):
                if asked:
                    raise ValueError(f"{name} asks for an output that this call has no argument for; FmhaRunner gives it as an array")
            kind = formats.data_type(data_type, runner.arch)
            shapes = {"q": prob.q_shape(), "k": prob.k_shape(), "v": prob.v_shape(), "o": prob.o_shape()}
            arrays = [_array(pointer, shapes[name], kind.inputs) for pointer, name in ((q, "q"), (k, "k"), (v, "v"), (o, "o"))]
            lse_array = _array(lse, prob.o_shape()[:3], FP32)
            result = runner.run_bwd(*arrays, lse_array, _array(do_grad, shapes["o"], kind.inputs), prob, data_type, mask_type, bias_type,
                                    has_dropout, False, is_deterministic, is_group_mode, None, tile_n0, **keywords)
            return self._checked(result, ((dq, shapes["q"], kind.inputs), (dk, shapes["k"], kind.inputs), (dv, shapes["v"], kind.inputs)))

        return self._status(run, prob)

    @staticmethod
    def _checked(result: FmhaResult, places: tuple[tuple[Any, tuple[int, ...], ElementType], ...]) -> float:
        """Writes the output, or the outputs, to the caller's memory; the milliseconds. Raises ValueError for a run that failed."""
        if not result.success:
            raise ValueError(result.error)
        outputs = result.output if isinstance(result.output, tuple) else (result.output,)
        for (pointer, shape, element), output in zip(places, outputs):
            _array(pointer, shape, element)[...] = formats.encode(output, element)
        return result.time_ms

    def _status(self, run: Callable[[FmhaRunner, FmhaProblem], float], prob: Any) -> tuple[int, float]:
        if self._runner is None or self._runner.released:
            self.error = "initialize was not called, or found no kernels, or what it opened was released"
            return -1, 0.0
        try:
            milliseconds = run(self._runner, checked_problem(prob))
        except (ValueError, TypeError) as error:
            self.error = str(error)
            print(f"fmha: {self.error}", file=sys.stderr)
            return -2, 0.0
        self.error = ""
        return 0, milliseconds
