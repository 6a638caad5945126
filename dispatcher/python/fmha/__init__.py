"""Fused multi-head attention on NumPy arrays and on the tensors of a device, through libfmha.so.

    result = fmha.attention(q, k, v, mask="causal", lse=True)

`fmha.load`, `fmha.Context` and the structures below them are the C interface itself and need nothing but Python; arrays need
NumPy. `fmha_utils` has the same kernels under the names of the dispatcher's Python layer."""

from typing import Any

from fmha.library import (ABI_VERSION, ARGUMENTS, BATCH, BATCH_PREFILL, BF16, BF8, BOTTOM_RIGHT, BWD, FP16, FP32, FP8, FP8BF16,
                          FP8FP32, FWD, FWD_APPENDKV, FWD_PAGEDKV, FWD_SPLITKV, GROUP, MXFP4, MXFP8, NO_MASK, SCALARS, STATUS,
                          TEXTS, TOP_LEFT, WINDOW_GENERIC, Context, Error, FieldLayout, Library, load, workspace_place)

_OF_ARRAYS = {"attention": "functions", "attention_backward": "functions", "Attention": "functions", "Gradients": "functions",
              "DeviceArray": "memory", "detect_gpu_arch": "arch", "device_arch": "arch"}

__all__ = ["ABI_VERSION", "ARGUMENTS", "BATCH", "BATCH_PREFILL", "BF16", "BF8", "BOTTOM_RIGHT", "BWD", "FP16", "FP32", "FP8",
           "FP8BF16", "FP8FP32", "FWD", "FWD_APPENDKV", "FWD_PAGEDKV", "FWD_SPLITKV", "GROUP", "MXFP4", "MXFP8", "NO_MASK",
           "SCALARS", "STATUS", "TEXTS", "TOP_LEFT", "WINDOW_GENERIC", "Context", "Error", "FieldLayout", "Library", "load",
           "workspace_place", *_OF_ARRAYS]


def __getattr__(name: str) -> Any:
    """Names that work on arrays are imported when they are first used, so that the others do without NumPy."""
    if name not in _OF_ARRAYS:
        raise AttributeError(f"module fmha has no attribute {name}")
    from importlib import import_module
    return getattr(import_module(f"fmha.{_OF_ARRAYS[name]}"), name)
