"""Number formats that NumPy lacks, as bits: bfloat16 and the 8-bit and 4-bit floats. Encoding rounds to the nearest value,
ties to the even code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fmha.values import shown


@dataclass(frozen=True)
class ElementType:
    """A storage format. `dtype` holds its bits; `bits` is 4 for two elements a byte."""
    name: str
    dtype: np.dtype
    bits: int


def _element(name: str, dtype: Any, bits: int) -> ElementType:
    return ElementType(name, np.dtype(dtype), bits)


FP32, FP16, BF16 = _element("fp32", np.float32, 32), _element("fp16", np.float16, 16), _element("bf16", np.uint16, 16)
E4M3, E5M2 = _element("fp8", np.uint8, 8), _element("bf8", np.uint8, 8)
E4M3_FNUZ, E5M2_FNUZ = _element("fp8_fnuz", np.uint8, 8), _element("bf8_fnuz", np.uint8, 8)
E2M1 = _element("fp4", np.uint8, 4)
E8M0 = _element("e8m0", np.uint8, 8)
UINT8 = _element("uint8", np.uint8, 8)  # random bytes, which are no floats


@dataclass(frozen=True)
class DataType:
    """A tag of kernels: its number in the C interface and the formats of inputs, output and elementwise bias."""
    name: str
    code: int
    inputs: ElementType
    output: ElementType
    bias: ElementType


_TAGS = {
    "fp32": (0, FP32, FP32, FP32), "fp16": (1, FP16, FP16, FP16), "bf16": (2, BF16, BF16, BF16),
    "fp8": (3, E4M3, E4M3, FP32), "bf8": (4, E5M2, E5M2, E5M2), "fp8bf16": (5, E4M3, BF16, FP32),
    "fp8fp32": (6, E4M3, FP32, FP32), "mxfp8": (7, E4M3, FP32, FP32), "mxfp4": (8, E2M1, FP32, FP32),
}
_FNUZ = {E4M3: E4M3_FNUZ, E5M2: E5M2_FNUZ}
DATA_TYPES = tuple(_TAGS)


def data_type(name: str, arch: str) -> DataType:
    """The formats of a data type on an architecture; gfx942 has its own 8-bit floats. Raises ValueError for an unknown name."""
    if not isinstance(name, str) or name not in _TAGS:
        raise ValueError(f"data type {shown(name)} is not known; allowed: {', '.join(DATA_TYPES)}")
    code, *formats = _TAGS[name]
    own = arch == "gfx942"
    return DataType(name, code, *(_FNUZ.get(format, format) if own else format for format in formats))


def encode(values: np.ndarray, element: ElementType) -> np.ndarray:
    """The bits of `values` in a format. Arrays that already hold bits of the format (uint16 for bf16, uint8 for 8 and 4 bits) and floats
    of its own type pass as they are, without a copy. 4-bit values are packed along the last axis, the first in the low half."""
    values = np.asarray(values)
    if values.dtype == element.dtype:
        return values
    if element is UINT8:
        raise ValueError(f"{values.dtype} values are no random bytes; give uint8")
    if not np.issubdtype(values.dtype, np.floating):
        raise ValueError(f"{values.dtype} values are neither numbers nor bits of {element.name}; give floats or "
                         f"{element.dtype.name} bits")
    if element in (FP32, FP16):
        with np.errstate(over="ignore"):
            return values.astype(element.dtype)
    if element is BF16:
        return _bf16_bits(values)
    codes = _nearest(values, element)
    if element.bits == 8:
        return codes
    if values.shape[-1] % 2 != 0:
        raise ValueError(f"fp4 values are packed in pairs, so that the last axis of {values.shape} must be even")
    return codes[..., 0::2] | (codes[..., 1::2] << np.uint8(4))


def decode(bits: np.ndarray, element: ElementType) -> np.ndarray:
    """The values of bits: float16 for fp16, float32 for every other format."""
    bits = np.asarray(bits)
    if element in (FP32, FP16):
        return bits.view(element.dtype) if bits.dtype != element.dtype else bits
    if element is BF16:
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    table = table_of(element)
    if element.bits == 8:
        return table[bits]
    pairs = np.stack([table[bits & np.uint8(15)], table[bits >> np.uint8(4)]], axis=-1)
    return pairs.reshape(*bits.shape[:-1], -1)


def _bf16_bits(values: np.ndarray) -> np.ndarray:
    single = _to_odd(values) if values.dtype == np.float64 else values.astype(np.float32)
    bits = single.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(single), quiet, rounded).astype(np.uint16)


def _to_odd(values: np.ndarray) -> np.ndarray:
    """float32 that remembers in its last bit that it was inexact, so that rounding once more is rounding once."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    toward = np.where(np.abs(single.astype(np.float64)) > np.abs(values),
                      np.nextafter(single, np.float32(0)), single).astype(np.float32)
    inexact = np.isfinite(values) & (toward.astype(np.float64) != values)
    bits = toward.view(np.uint32)
    return np.where(inexact, bits | np.uint32(1), bits).view(np.float32)


@lru_cache(maxsize=None)
def table_of(element: ElementType) -> np.ndarray:
    """The value of every code of a format of at most 8 bits, as float32."""
    codes = np.arange(1 << element.bits, dtype=np.int64)
    if element is E8M0:
        values = np.exp2(codes - 127.0)
        values[255] = np.nan
        return values.astype(np.float32)
    mantissa_bits, bias = {"fp8": (3, 7), "fp8_fnuz": (3, 8), "bf8": (2, 15), "bf8_fnuz": (2, 16), "fp4": (1, 1)}[element.name]
    magnitude = codes & ((1 << (element.bits - 1)) - 1)
    exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    values = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    values = np.where(codes >> (element.bits - 1), -values, values)
    if element is E4M3:
        values[[0x7F, 0xFF]] = np.nan
    if element is E5M2:
        values[[0x7C, 0xFC]] = np.inf, -np.inf
        values[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    if element in (E4M3_FNUZ, E5M2_FNUZ):
        values[0x80] = np.nan
    return values.astype(np.float32)


def largest(element: ElementType) -> float:
    """The largest finite value of a format of at most 8 bits."""
    table = table_of(element)
    return float(table[np.isfinite(table)].max())


def _nearest(values: np.ndarray, element: ElementType) -> np.ndarray:
    """Codes of the nearest values; beyond the largest one its code, as the conversions of the hardware saturate."""
    table = table_of(element)
    half = 1 << (element.bits - 1)
    positive = table[:half].astype(np.float64)
    positive = positive[np.isfinite(positive)]  # ascending with the code
    wide = values.astype(np.float64)
    middle = (positive[1:] + positive[:-1]) / 2
    size = np.abs(wide)
    codes = np.searchsorted(middle, size, side="left")
    tie = (codes < len(middle)) & (size == middle[np.minimum(codes, len(middle) - 1)]) & (codes % 2 == 1)
    codes = np.where(tie, codes + 1, codes)
    fnuz = element in (E4M3_FNUZ, E5M2_FNUZ)
    negative = np.signbit(wide) & ~((codes == 0) & fnuz)  # there the code of -0 means NaN
    codes = np.where(negative, codes | half, codes)
    nan = {"fp8": 0x7F, "bf8": 0x7E, "fp4": 0}.get(element.name, 0x80)
    return np.where(np.isnan(wide), nan, codes).astype(np.uint8)
