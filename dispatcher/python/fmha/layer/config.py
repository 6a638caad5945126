"""Problems, kernel configurations and their helpers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass, fields
from typing import Any

from fmha.arch import FALLBACK
from fmha.values import flag, whole_number


@dataclass
class FmhaProblem:
    """Sizes of an attention problem. They are checked when the problem is used."""
    batch: int = 2
    nhead_q: int = 8
    nhead_k: int = 8
    seqlen_q: int = 128
    seqlen_k: int = 128
    hdim_q: int = 128
    hdim_v: int = 128

    @property
    def scale(self) -> float:
        """1 / sqrt(hdim_q)."""
        return float(self.hdim_q) ** -0.5

    @property
    def num_ops(self) -> int:
        """Multiplications and additions of both products, as without a mask."""
        return 2 * int(self.batch) * int(self.nhead_q) * int(self.seqlen_q) * int(self.seqlen_k) * (
            int(self.hdim_q) + int(self.hdim_v))

    def q_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.nhead_q, self.seqlen_q, self.hdim_q

    def k_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.nhead_k, self.seqlen_k, self.hdim_q

    def v_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.nhead_k, self.seqlen_k, self.hdim_v

    def o_shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.nhead_q, self.seqlen_q, self.hdim_v


def checked_problem(prob: Any) -> FmhaProblem:
    """The sizes that an object has, as ints. Raises TypeError for an object without them, ValueError for a value that is no size."""
    names = [field.name for field in fields(FmhaProblem)]
    if not all(hasattr(prob, name) for name in names):
        raise TypeError(f"prob is a {type(prob).__name__}; needed: FmhaProblem")
    sizes = {name: whole_number(f"prob.{name}", getattr(prob, name)) for name in names}
    for name, size in sizes.items():
        if size < 0:
            raise ValueError(f"prob.{name} is {size}; a size is 0 or more")
    return FmhaProblem(**sizes)


# Fields that the dispatcher's names of configurations leave out.
_NOT_IN_NAMES = frozenset({"gfx_arch", "vlayout", "tile_bwd6", "tile_bwd7", "tile_bwd8", "num_wave_groups", "use_trload",
                           *(f"wave_{axis}{stage}" for axis in "mnk" for stage in range(3)),
                           *(f"warp_{axis}{stage}" for axis in "mnk" for stage in (1, 2))})


@dataclass
class FmhaKernelConfig:
    """A kernel: what it computes, and how it is wished to do it. Tile, waves and pipeline are preferences; the nearest kernel
    that exists is taken (`fmha.choose`)."""
    family: str = "fwd"
    data_type: str = "fp16"
    mode: str = "batch"
    vlayout: str = "r"
    hdim_q: int = 128
    hdim_v: int = 128
    gfx_arch: str = FALLBACK

    tile_m0: int = 128
    tile_n0: int = 128
    tile_k0: int = 32
    tile_n1: int = 128
    tile_k1: int = 32
    tile_k0max: int = 128
    tile_bwd6: int = 0
    tile_bwd7: int = 0
    tile_bwd8: int = 0

    wave_m0: int = 4
    wave_n0: int = 1
    wave_k0: int = 1
    wave_m1: int = 4
    wave_n1: int = 1
    wave_k1: int = 1
    wave_m2: int = 1
    wave_n2: int = 1
    wave_k2: int = 1

    warp_m0: int = 32
    warp_n0: int = 32
    warp_k0: int = 16
    warp_m1: int = 32
    warp_n1: int = 32
    warp_k1: int = 16
    warp_m2: int = 16
    warp_n2: int = 16
    warp_k2: int = 16

    pad_s: int = 1
    pad_sk: int = 1
    pad_d: int = 1
    pad_dv: int = 1

    pipeline: str = "qr_async"
    block_per_cu: int = -1
    num_wave_groups: int = 1

    mask: str = "no"
    bias: str = "no"
    lse: bool = False
    dropout: bool = False
    qscale: str = "no"
    rope: str = "none"
    logits: bool = False
    paged_kv: bool = False
    sink: bool = False
    skip_min_seqlen_q: bool = False
    page_size: int = 1
    kv_memory_layout: str = "vectorized"
    kv_lookup_table: str = "sglang"
    deterministic: bool = False
    dbias: bool = False
    dropout_variant: str = ""
    tile_tag: str = ""
    use_trload: bool = False

    @property
    def tile(self) -> tuple[int, ...]:
        """(m0, n0, k0, n1, k1, k0max), and three more for the main stage of backward."""
        tile = (self.tile_m0, self.tile_n0, self.tile_k0, self.tile_n1, self.tile_k1, self.tile_k0max)
        if self.family == "bwd_dq_dk_dv" and self.tile_bwd6 > 0:
            tile += (self.tile_bwd6, self.tile_bwd7, self.tile_bwd8)
        return tile

    @property
    def wave(self) -> tuple[int, ...]:
        return tuple(getattr(self, f"wave_{axis}{stage}") for stage in range(3) for axis in "mnk")

    @property
    def warp(self) -> tuple[int, ...]:
        return tuple(getattr(self, f"warp_{axis}{stage}") for stage in range(3) for axis in "mnk")

    @property
    def padding(self) -> tuple[int, int, int, int]:
        """(s, sk, d, dv) as they were given."""
        return self.pad_s, self.pad_sk, self.pad_d, self.pad_dv

    @property
    def name(self) -> str:
        """A name that leaves out some fields; `key` tells configurations apart."""
        heads = f"h{self.hdim_q}" if self.hdim_q == self.hdim_v else f"h{self.hdim_q}x{self.hdim_v}"
        tile = "x".join(map(str, self.tile[:6])) + (f".{self.tile_tag}" if self.tile_tag else "")
        parts = [f"fmha_{self.family}_{self.data_type}", self.mode, heads, self.pipeline, f"t{tile}",
                 f"w{self.warp_m0}x{self.warp_n0}x{self.warp_k0}", "pad" + "".join(str(int(pad)) for pad in self.padding),
                 f"mask={self.mask}", f"bias={self.bias}"]
        flags = (("lse", self.lse), ("drop", self.dropout), ("logits", self.logits), ("sink", self.sink),
                 ("skip", self.skip_min_seqlen_q))
        parts += [f"{flag}=1" for flag, value in flags if value]
        parts += [f"qs={self.qscale}"] if self.qscale != "no" else []
        parts += ["pkv=1"] if self.paged_kv else []
        parts += [f"rope={self.rope}"] if self.rope != "none" else []
        parts += [f"ps={self.page_size}"] if self.page_size != 1 else []
        parts += [f"kvl={self.kv_memory_layout}"] if self.kv_memory_layout != "vectorized" else []
        parts += [f"kvt={self.kv_lookup_table}"] if self.kv_lookup_table != "sglang" else []
        parts += [f"{flag}=1" for flag, value in (("det", self.deterministic), ("dbias", self.dbias)) if value]
        parts += [f"drv={self.dropout_variant}"] if self.dropout_variant not in ("", "no") else []
        return "_".join([*parts, f"bpc={self.block_per_cu}"])

    @property
    def name_says_all(self) -> bool:
        """Whether no other configuration has this name: the fields that it leaves out have their defaults."""
        return all(getattr(self, field.name) == field.default for field in fields(FmhaKernelConfig) if field.name in _NOT_IN_NAMES)

    @property
    def key(self) -> str:
        """Sixteen digits that follow from every field, the same for equal configurations."""
        values = [int(value) if isinstance(value, bool) else value for value in astuple(checked_config(self))]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]

    def to_codegen_json(self) -> str:
        """The configuration as one line of JSON, grouped as generators of kernels take it."""
        signature = {name: getattr(self, name) for name in
                     ("family", "data_type", "mode", "vlayout", "hdim_q", "hdim_v", "mask", "bias", "lse", "dropout", "qscale", "rope",
                      "logits", "paged_kv")}
        signature |= {"fp8_static_quant": False, "skip_min_seqlen_q": self.skip_min_seqlen_q, "sink": self.sink, "dbias": self.dbias,
                      "store_randval": "storerandval" in self.dropout_variant}
        signature |= {name: getattr(self, name) for name in
                      ("deterministic", "dropout_variant", "kv_memory_layout", "kv_lookup_table", "page_size")}
        algorithm = {"pipeline": self.pipeline, "tile": list(self.tile), "wave": list(self.wave), "warp": list(self.warp),
                     "padding": list(self.padding), "block_per_cu": self.block_per_cu, "num_wave_groups": self.num_wave_groups,
                     "max_splits_log2": 0, "max_seq_len_q": 0, "use_trload": self.use_trload}
        return json.dumps({"arch": self.gfx_arch, "signature": signature, "algorithm": algorithm}, default=lambda value: value.item())


def checked_config(config: Any) -> FmhaKernelConfig:
    """A copy with Python's own types, so that changes of the caller's object do not reach a runner. Raises TypeError for another object,
    ValueError for a field of another kind."""
    if not isinstance(config, FmhaKernelConfig):
        raise TypeError(f"config is a {type(config).__name__}; needed: FmhaKernelConfig")
    values: dict[str, Any] = {}
    for field in fields(FmhaKernelConfig):
        value, kind = getattr(config, field.name), type(field.default)
        if kind is str and (not isinstance(value, str) or (field.name == "gfx_arch" and not value)):
            raise ValueError(f"{field.name} is {value!r}; a text such as {field.default or 'no'!r} is needed")
        values[field.name] = (str(value) if kind is str else flag(field.name, value) if kind is bool else whole_number(field.name, value))
    return FmhaKernelConfig(**values)


@dataclass
class FmhaKernelSpec:
    """A kernel in few words, for lists of them."""
    name: str
    hdim: int = 128
    pipeline: str = "qr_async"
    tile_m0: int = 128
    tile_n0: int = 128
    tile_k0: int = 32


def spec_to_config(spec: FmhaKernelSpec, dtype: str = "fp16", arch: str = FALLBACK) -> FmhaKernelConfig:
    """The configuration of a spec: head sizes and the tile numbers that follow from them."""
    return FmhaKernelConfig(data_type=dtype, hdim_q=spec.hdim, hdim_v=spec.hdim, gfx_arch=arch, pipeline=spec.pipeline,
                            tile_m0=spec.tile_m0, tile_n0=spec.tile_n0, tile_k0=spec.tile_k0, tile_n1=spec.hdim, tile_k1=spec.tile_k0,
                            tile_k0max=spec.hdim)


def num_splits_heuristic_ck(batch: int, nheads: int, seqlen_q: int, tile_m0: int = 128, num_cus: int = 304,
                            min_util_rate: float = 0.85) -> int:
    """The least of 1, 2, 4, 8, 16, 32 splits that keeps a share of the compute units busy; 1 when none does."""
    blocks = batch * nheads * -(-seqlen_q // tile_m0)
    return next((splits for splits in (1, 2, 4, 8, 16, 32) if blocks * splits >= num_cus * min_util_rate), 1)
