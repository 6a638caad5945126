"""The side that kernels run on, and its memory: the process's own, or a device's, which objects own."""

from __future__ import annotations

from ctypes import c_void_p
from typing import Any

import numpy as np

from fmha.library import Context, Error
from fmha.tensors import View, numpy_of, view_of


class DeviceArray:
    """Device memory that goes with this object. Speaks __cuda_array_interface__, so that CuPy and PyTorch take it as it is;
    `numpy()` copies it to the host."""

    def __init__(self, context: Context, shape: tuple[int, ...], dtype: Any):
        self.context, self.shape, self.dtype = context, tuple(shape), np.dtype(dtype)
        self.address = context.allocate(self.nbytes)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "strides": None}

    def upload(self, array: np.ndarray) -> DeviceArray:
        """Copies a host array of the same size here, and waits for it."""
        array = np.ascontiguousarray(array)
        if array.nbytes != self.nbytes:
            raise ValueError(f"{array.nbytes} bytes do not fill {self.nbytes} bytes of device memory")
        if array.nbytes:
            self.context.upload(self.address, array.ctypes.data, array.nbytes)
            self.context.wait()
        return self

    def numpy(self) -> np.ndarray:
        array = np.empty(self.shape, self.dtype)
        if array.nbytes:
            self.context.download(array.ctypes.data, self.address, array.nbytes)
            self.context.wait()
        return array

    def __reduce__(self) -> Any:
        raise TypeError("a DeviceArray owns its memory, which a copy would free once more; numpy() copies it to the host")

    def free(self) -> None:
        """Returns the memory; a second call does nothing."""
        address, self.address = self.address, None
        if address and self.context.handle:
            self.context.release(address)

    def __del__(self) -> None:
        if getattr(self, "address", None):
            try:
                self.free()
            except Error:  # a lost device has no memory left to return
                pass


class HostSide:
    """Kernels on the processor: every array is the caller's own."""
    name = "host"

    def __init__(self, context: Context):
        self.context = context

    def put(self, array: Any) -> View:
        """The array where kernels can read it."""
        view = view_of(array)
        return view_of(numpy_of(view)) if view.on_device else view

    def new(self, shape: tuple[int, ...], dtype: Any, fill: float | None = None) -> np.ndarray:
        return np.empty(shape, dtype) if fill is None else np.full(shape, fill, dtype)

    def fetch(self, array: np.ndarray) -> np.ndarray:
        return array

    def run(self, args: Any, warm_up: int, repeats: int) -> tuple[str, float]:
        """Runs once, because the processor's clock is good enough. The kernels' names and the milliseconds."""
        info = self.context.run_on_host(args)
        return info.kernel.decode(), info.milliseconds


class DeviceSide:
    """Kernels on a device. Host arrays are copied there; device arrays are read where they are."""
    name = "device"

    def __init__(self, context: Context, stream: int | None = None):
        self.context, self.stream = context, c_void_p(stream) if stream else None

    def put(self, array: Any) -> View:
        view = view_of(array)
        if view.on_device:
            return view
        host = numpy_of(view)
        # Strides of 0, which repeat, stay: the axis is copied once.
        unique = host[tuple(slice(0, 1) if stride == 0 and extent > 1 else slice(None)
                            for stride, extent in zip(host.strides, host.shape))]
        copy = view_of(DeviceArray(self.context, unique.shape, unique.dtype).upload(unique))
        copy.strides = tuple(0 if step == 0 and extent > 1 else own
                             for step, extent, own in zip(view.strides, view.shape, copy.strides))
        copy.shape, copy.is_bf16 = view.shape, view.is_bf16
        return copy

    def new(self, shape: tuple[int, ...], dtype: Any, fill: float | None = None) -> DeviceArray:
        array = DeviceArray(self.context, shape, dtype)
        return array if fill is None else array.upload(np.full(shape, fill, dtype))

    def fetch(self, array: DeviceArray) -> np.ndarray:
        return array.numpy()

    def run(self, args: Any, warm_up: int, repeats: int) -> tuple[str, float]:
        """Runs `warm_up` and then `repeats` times and waits. The kernels' names and the mean milliseconds of the latter."""
        name = self.context.plan(args).kernel.decode()
        return name, self.context.time_on_device(args, self.stream, warm_up, repeats)


def side_of(context: Context, stream: int | None = None) -> HostSide | DeviceSide:
    """Where the kernels of a context run."""
    return DeviceSide(context, stream) if context.on_device else HostSide(context)
