"""The names of the dispatcher's Python layer, so that its examples and tools run on these kernels: on a GPU of the asked
architecture when there is one, else on the host. docs/python.md says how each behaves."""

from __future__ import annotations

import shutil
import subprocess  # noqa: F401, clients replace it here
from pathlib import Path

import numpy as np

from fmha import find, formats
from fmha.arch import detect_gpu_arch
from fmha.layer.config import FmhaKernelConfig, FmhaKernelSpec, FmhaProblem, num_splits_heuristic_ck, spec_to_config
from fmha.layer.contract import get_batch_prefill_dtype_contract
from fmha.layer.contract import validate_batch_prefill_input_dtypes as _validate_batch_prefill_input_dtypes
from fmha.layer.cpu import cpu_attention_bwd, cpu_attention_fwd, cpu_attention_fwd_with_intermediates
from fmha.layer.dispatcher_lib import FmhaDispatcherLib
from fmha.layer.jit import FmhaRegistry, setup_fmha_dispatcher, setup_multiple_fmha_dispatchers
from fmha.layer.live import release_all
from fmha.layer.quantize import quantize_pack_per_token_head, quantize_pack_pertensor
from fmha.layer.results import FmhaResult, FmhaSetupResult, FmhaValidator
from fmha.layer.runner import FmhaRunner

__all__ = [
    "FmhaDispatcherLib", "FmhaKernelConfig", "FmhaKernelSpec", "FmhaProblem", "FmhaRegistry", "FmhaResult", "FmhaRunner",
    "FmhaSetupResult", "FmhaValidator", "cleanup_fmha", "cpu_attention_bwd", "cpu_attention_fwd",
    "cpu_attention_fwd_with_intermediates", "detect_gpu_arch", "fmha_compile_flags", "get_batch_prefill_dtype_contract",
    "get_dispatcher_root", "num_splits_heuristic_ck", "quantize_pack_per_token_head", "quantize_pack_pertensor",
    "reset_for_example", "setup_fmha_dispatcher", "setup_multiple_fmha_dispatchers", "spec_to_config",
]


def get_dispatcher_root() -> Path:
    """The folder above the one of this module."""
    return Path(__file__).resolve().parent.parent


def _find_hipcc() -> str:
    """ROCm's compiler driver, by its usual places and then by name."""
    places = (Path("/opt/rocm/bin/hipcc"), Path("/opt/rocm/hip/bin/hipcc"))
    return next((str(place) for place in places if place.is_file()), shutil.which("hipcc") or "hipcc")


def _find_static_lib() -> Path | None:
    """The library that kernels are run with."""
    try:
        path = Path(find.library())
    except FileNotFoundError:
        return None
    return path if path.is_file() else None


def fmha_compile_flags(arch: str, hipcc: str = "", family: str = "") -> list[str]:
    """A compiler line for kernels of Composable Kernel on an architecture, the compiler first. Our own kernels are compiled by
    `fmha build`, which needs none of it."""
    base = arch.split(":")[0]
    flags = [hipcc or _find_hipcc(), "-std=c++17", "-O3", "-fPIC", f"--offload-arch={arch}", "-Wno-undefined-func-template"]
    if base.startswith("gfx9"):
        flags += ["-DCK_USE_XDL", "-DCK_TILE_FMHA_FWD_FAST_EXP2=1"]
        flags += ["-DCK_USE_GFX950"] if base == "gfx950" else ["-DCK_USE_GFX94"] if base.startswith("gfx94") else []
    else:
        flags += ["-DCK_USE_WMMA", "-DCK_TILE_FMHA_FWD_FAST_EXP2=0"]
    if base == "gfx1250":
        flags += ["-DCK_TILE_USE_UNIFIED_FRAMEWORK=0"]
    if family.startswith("bwd"):
        flags += ["-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3"]
    return flags


def _float32_to_bf16(array: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16 values, uint16."""
    return formats.encode(np.asarray(array, np.float32), formats.BF16)


def _bf16_to_float32(bits: np.ndarray) -> np.ndarray:
    """The values of bfloat16 bits, float32."""
    return formats.decode(np.asarray(bits, np.uint16), formats.BF16)


def cleanup_fmha() -> None:
    """Frees what all live runners hold, after the runs that they are in: they fail from then on as after their own `cleanup`, and new
    set-ups work. Never raises."""
    release_all()


def reset_for_example() -> None:
    """The same, under the name that examples call before they begin."""
    release_all()
