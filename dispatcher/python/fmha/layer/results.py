"""Results, and the comparison of outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fmha.layer.config import FmhaKernelConfig


@dataclass
class FmhaResult:
    """What a run gave. `output` is O, or (dQ, dK, dV) after `run_bwd`; fields behind `error` are those that were asked for.
    `tflops` counts forward's whole products, `work_tflops` what this call had to compute."""
    success: bool
    output: Any = None
    time_ms: float = 0.0
    tflops: float = 0.0
    error: str = ""
    lse: Any = None
    randval: Any = None
    dbias: Any = None
    d_sink: Any = None
    k_cache: Any = None
    v_cache: Any = None
    q_rotated: Any = None
    kernel: str = ""
    work_tflops: float = 0.0


@dataclass
class FmhaSetupResult:
    """What a set-up gave. With success there is a runner and a library_path that `FmhaRunner.from_library` takes. `kernels` are the
    names of what runs, `notes` the preferences that no kernel meets, `target` is host or device."""
    success: bool
    config: FmhaKernelConfig | None = None
    runner: Any = None
    library_path: str = ""
    error: str = ""
    build_time_s: float = 0.0
    kernels: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    target: str = ""


class FmhaValidator:
    """Compares an output with a reference."""

    def __init__(self, rtol: float = 1e-2, atol: float = 1e-2):
        self.rtol, self.atol = rtol, atol

    def check(self, output: Any, reference: Any) -> tuple[bool, float, float]:
        """(all close, largest absolute difference, largest difference relative to |reference| + 1e-6), in fp32. NaN is never
        close. Raises ValueError for empty arrays and for shapes that differ."""
        got, want = np.asarray(output, np.float32), np.asarray(reference, np.float32)
        if got.shape != want.shape:
            raise ValueError(f"output has shape {got.shape}, the reference {want.shape}")
        if got.size == 0:
            raise ValueError("there is nothing to compare: the arrays are empty")
        with np.errstate(invalid="ignore"):
            difference = np.abs(got - want)
            difference = np.where(got == want, np.float32(0), difference)  # infinities that agree
            relative = difference / (np.abs(want) + np.float32(1e-6))
        close = bool(np.allclose(got, want, rtol=self.rtol, atol=self.atol))
        return close, float(difference.max()), float(relative.max())
