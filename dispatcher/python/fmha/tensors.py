"""Arrays of the caller, taken as they lie: NumPy's, and those of libraries that speak DLPack or __cuda_array_interface__
(PyTorch, CuPy, JAX). Nothing is copied here."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Iterable, Sequence

import numpy as np

from fmha.formats import BF16, ElementType


@dataclass
class View:
    """Memory of somebody else. Strides count elements; `owner` keeps it alive."""
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    is_bf16: bool = False  # two bytes an element that NumPy has no type for
    on_device: bool = False
    read_only: bool = False
    owner: Any = field(default=None, repr=False)


def view_of(array: Any) -> View:
    """The memory of an array of any library. Raises TypeError for objects that speak none of the protocols, ValueError for
    element types or strides that no kernel reads."""
    if isinstance(array, View):
        return array
    if isinstance(array, np.ndarray):
        return _numpy_view(array)
    # DLPack first: PyTorch's __cuda_array_interface__ calls bfloat16 "<f2" up to 2.4, as if it were float16, and "<V2" since.
    if hasattr(array, "__dlpack__"):
        return _dlpack_view(array)
    if hasattr(array, "__cuda_array_interface__"):
        return _cuda_view(array)
    if hasattr(array, "__array_interface__") or isinstance(array, (list, tuple, float, int)):
        return _numpy_view(np.asarray(array))
    raise TypeError(f"{type(array).__name__} is no array: it has neither __dlpack__ nor __cuda_array_interface__ and is not NumPy's")


def numpy_of(view: View) -> np.ndarray:
    """Host memory as an array that shares it; bfloat16 as its bits."""
    if view.on_device:
        raise ValueError("this array lies on a device, and the kernels run on the host; give a copy on the host")
    if isinstance(view.owner, np.ndarray):
        return view.owner
    return np.asarray(_HostMemory(view))


class _HostMemory:
    """Shows a view to NumPy, which keeps this object, and with it the owner, as long as the array lives."""

    def __init__(self, view: View):
        self.view = view
        size = view.dtype.itemsize
        self.__array_interface__ = {"version": 3, "shape": view.shape, "typestr": view.dtype.str,
                                    "data": (view.address, False), "strides": tuple(size * step for step in view.strides)}


def matches(view: View, element: ElementType) -> bool:
    """Whether the memory holds this format. uint16 is taken for bfloat16, uint8 for 8-bit and packed 4-bit floats."""
    return (view.is_bf16 and element is BF16) or (not view.is_bf16 and view.dtype == element.dtype)


def _elements(strides: Iterable[int], size: int, what: str) -> tuple[int, ...]:
    if any(stride % size for stride in strides):
        raise ValueError(f"{what} has strides of {strides} bytes, which are no multiples of the element's {size} bytes")
    return tuple(stride // size for stride in strides)


def _numpy_view(array: np.ndarray) -> View:
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError("the array has masked elements, which no kernel leaves out; give their values, as filled() does")
    # NumPy gives an empty array strides of 0 along all axes, as if its elements shared their memory.
    strides = _elements(array.strides, array.itemsize, "the array") if array.size else packed_strides(array.shape)
    return View(array.ctypes.data, array.shape, strides, array.dtype, read_only=not array.flags.writeable, owner=array)


def packed_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of an array without gaps, in elements; an axis without elements counts as one of one."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def require_writable(what: str, view: View) -> None:
    """Raises ValueError for memory that a call may not write, or whose elements share it."""
    if view.read_only:
        raise ValueError(f"{what} is read-only, and the call writes it")
    if all(view.shape) and any(step == 0 and extent > 1 for step, extent in zip(view.strides, view.shape)):
        raise ValueError(f"{what} has shape {tuple(view.shape)} and strides {tuple(view.strides)}: a broadcast axis has not the memory for "
                         "what the call writes")


def share_memory(one: View, other: View) -> bool:
    """Whether an element of one lies where an element of the other does. Looks at addresses alone, so that memory of a device will do. Views
    interleaved in a way that takes long to tell apart count as separate."""
    arrays = [np.asarray(_HostMemory(view)) for view in (one, other)]
    if not np.may_share_memory(*arrays):
        return False
    try:
        return np.shares_memory(*arrays, max_work=100_000)
    except RuntimeError:  # NumPy's TooHardError
        return False


def is_packed(view: View) -> bool:
    """Whether the elements follow each other without gaps, the last axis fastest."""
    return all(have == packed for have, packed, extent in zip(view.strides, packed_strides(view.shape), view.shape) if extent > 1)


def _cuda_view(array: Any) -> View:
    told = array.__cuda_array_interface__
    is_bf16 = told["typestr"] == "<V2"  # as ml_dtypes and PyTorch write it
    dtype = np.dtype("<u2" if is_bf16 else told["typestr"])
    shape = tuple(told["shape"])
    strides = told.get("strides")
    steps = packed_strides(shape) if strides is None else _elements(strides, dtype.itemsize, "the array")
    return View(told["data"][0], shape, steps, dtype, is_bf16=is_bf16, on_device=True, read_only=bool(told["data"][1]),
                owner=array)


class _DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_HOST_DEVICES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost
_GPU_DEVICES = (2, 10, 13)  # kDLCUDA, kDLROCM, kDLCUDAManaged
_DTYPES = {(0, 8): "i1", (0, 16): "i2", (0, 32): "i4", (0, 64): "i8", (1, 8): "u1", (1, 16): "u2", (1, 32): "u4",
           (2, 16): "f2", (2, 32): "f4", (2, 64): "f8", (4, 16): "u2", (6, 8): "u1"}


def _dlpack_view(array: Any) -> View:
    try:
        capsule = array.__dlpack__()
    except (BufferError, RuntimeError) as error:  # PyTorch's answer for what needs a gradient
        raise ValueError(f"{type(array).__name__} does not lend its memory: {error}") from error
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    told = _DlTensor.from_address(pointer_of(capsule, b"dltensor"))
    if told.device_type not in _HOST_DEVICES + _GPU_DEVICES:
        raise ValueError(f"DLPack device type {told.device_type} is neither host memory nor a CUDA or ROCm device")
    if told.lanes != 1 or (told.code, told.bits) not in _DTYPES:
        raise ValueError(f"DLPack type code {told.code} with {told.bits} bits and {told.lanes} lanes is not read here")
    shape = tuple(told.shape[: told.ndim])
    strides = tuple(told.strides[: told.ndim]) if told.strides else packed_strides(shape)
    # The capsule stays unconsumed: it frees the producer's memory when it goes, and it goes with the view.
    return View((told.data or 0) + told.byte_offset, shape, strides, np.dtype(_DTYPES[told.code, told.bits]),
                is_bf16=told.code == 4, on_device=told.device_type in _GPU_DEVICES, owner=(array, capsule))
