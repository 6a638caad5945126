"""Which element types of Q, K, V and O belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class FmhaDTypeContractKind(Enum):
    HOMOGENEOUS = "homogeneous"
    ALL_FP8_WITH_BF16_OUTPUT = "all_fp8_with_bf16_output"
    ALL_FP8_WITH_FP32_OUTPUT = "all_fp8_with_fp32_output"
    MIXED_Q_FP8_KV = "mixed_q_fp8_kv"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class FmhaDTypeContract:
    """The element types of a kernel's tensors, and the kind of their combination."""
    data_type: str
    q_dtype: str
    k_dtype: str
    v_dtype: str
    o_dtype: str
    kind: FmhaDTypeContractKind

    @property
    def uses_fp8_kv(self) -> bool:
        return self.k_dtype == "fp8" and self.v_dtype == "fp8"


_ALIASES = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "uint16": "bf16", "float32": "fp32", "float": "fp32",
            "uint8": "fp8", "e4m3": "fp8", "float8_e4m3": "fp8", "float8_e4m3fn": "fp8", "float8_e4m3fnuz": "fp8", "fp8_e4m3": "fp8"}
_OUTPUTS = {"fp8bf16": "bf16", "fp8fp32": "fp32", "fp8fp16": "fp16", "mxfp8": "fp32"}


def _plain(token: Any) -> str:
    text = str(token).lower().removeprefix("torch.").removeprefix("numpy.")
    return _ALIASES.get(text, text)


def _kind(q: str, k: str, v: str, o: str) -> FmhaDTypeContractKind:
    if q == k == v == o:
        return FmhaDTypeContractKind.HOMOGENEOUS
    if q == k == v == "fp8" and o in ("bf16", "fp32"):
        return (FmhaDTypeContractKind.ALL_FP8_WITH_BF16_OUTPUT if o == "bf16" else FmhaDTypeContractKind.ALL_FP8_WITH_FP32_OUTPUT)
    if q == o and q in ("fp16", "bf16") and k == v == "fp8":
        return FmhaDTypeContractKind.MIXED_Q_FP8_KV
    return FmhaDTypeContractKind.UNSUPPORTED


def dtype_contract_from_components(data_type: str, q_dtype: str, k_dtype: str, v_dtype: str, o_dtype: str) -> FmhaDTypeContract:
    parts = [_plain(part) for part in (q_dtype, k_dtype, v_dtype, o_dtype)]
    return FmhaDTypeContract(_plain(data_type), *parts, _kind(*parts))


def dtype_contract_from_data_type(token: str) -> FmhaDTypeContract:
    """The element types that the name of a data type means."""
    name = _plain(token)
    part, output = ("fp8", _OUTPUTS[name]) if name in _OUTPUTS else (name, name)
    return dtype_contract_from_components(name, part, part, part, output)


def dtype_contract_from_signature(mapping: Mapping[str, Any]) -> FmhaDTypeContract:
    """From data_type and, where they are given, q_, k_, v_, o_ or kv_data_type (or _dtype)."""
    base = dtype_contract_from_data_type(mapping["data_type"])

    def given(*names: str, default: str) -> str:
        return next((mapping[key] for name in names for key in (f"{name}_data_type", f"{name}_dtype") if mapping.get(key)), default)

    return dtype_contract_from_components(base.data_type, given("q", default=base.q_dtype), given("k", "kv", default=base.k_dtype),
                                          given("v", "kv", default=base.v_dtype), given("o", default=base.o_dtype))


def get_batch_prefill_dtype_contract(data_type: str, Q: Any, K: Any, V: Any) -> FmhaDTypeContract:
    """From the arrays, where their types tell; O follows the data type."""
    base = dtype_contract_from_data_type(data_type)
    told = {"uint8": "fp8", "uint16": "bf16", "float16": "fp16", "float32": "fp32"}
    parts = [told.get(np.asarray(array).dtype.name, part) for array, part in
             ((Q, base.q_dtype), (K, base.k_dtype), (V, base.v_dtype))]
    return dtype_contract_from_components(base.data_type, *parts, base.o_dtype)


def validate_batch_prefill_input_dtypes(api_family: str, data_type: str, Q: Any, K: Any, V: Any) -> None:
    """Raises ValueError for fp16 or bf16 batch prefill over 8-bit keys or values, which no kernel here computes."""
    if api_family != "batch_prefill" or _plain(data_type) not in ("fp16", "bf16"):
        return
    mixed = [name for name, array in (("K", K), ("V", V)) if np.asarray(array).dtype == np.uint8]
    if mixed:
        raise ValueError(f"batch_prefill does not yet support mixed Q/KV dtypes: {' and '.join(mixed)} hold 8-bit values and data_type "
                         f"is {data_type}. This mixed activation/FP8-KV dtype contract is the one of AITER paged_attention_ragged")
