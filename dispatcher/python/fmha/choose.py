"""From a wished kernel to the nearest that exists. What a kernel computes has to be as wished; how it does it (pipeline, tile,
waves) is a preference, and every preference that is not met is told."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable

from fmha.formats import DATA_TYPES
from fmha.library import Context, Error, Library

FAMILIES = ("fwd", "fwd_splitkv", "fwd_splitkv_combine", "fwd_pagedkv", "fwd_appendkv", "batch_prefill", "bwd_dot_do_o",
            "bwd_dq_dk_dv", "bwd_convert_dq")
_ATTENDS = ("fwd", "fwd_pagedkv", "fwd_splitkv", "batch_prefill")
_MAIN = (*_ATTENDS, "bwd_dq_dk_dv")
_COMPANIONS = {"fwd_splitkv": ("fwd_splitkv_combine",), "bwd_dq_dk_dv": ("bwd_dot_do_o", "bwd_convert_dq")}
_MASKS = {"no": ("none",), "top_left": ("causal", "generic"), "bottom_right": ("causal", "generic"), "generic": ("generic",)}
_BIASES = {"no": "none", "bias": "elementwise", "alibi": "alibi"}
_QSCALES = {"no": "none"} | {name: name for name in ("pertensor", "blockscale", "kv_blockscale", "per_token_head")}
_ROPES = {name: name for name in ("none", "interleaved", "half_rotated")}
_KV_LAYOUTS = {name: name for name in ("vectorized", "linear")}
_DROPOUTS = {name: name for name in ("", "no", "dropout_wg16", "dropout_wg32", "dropout_wg16_storerandval", "dropout_wg32_storerandval")}
_LAYOUTS = {"r": "row", "c": "column"}
_LOOKUPS = {"vllm": "vllm_2d", "sglang": "sglang_1d"}
TILE = ("m0", "n0", "k0", "n1", "k1", "k0max")


class NoKernel(ValueError):
    """No kernel meets the wishes; the sentence names the wish that leaves none."""


@dataclass
class Choice:
    """The nearest kernel; beside it what runs where it may not, and the kernels of the stages around it; and the preferences
    that it does not meet."""
    kernel: dict[str, Any]
    companions: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [kernel["name"] for kernel in (self.kernel, *self.companions)]

    @property
    def where(self) -> str:
        """The expression that is true for exactly these kernels."""
        return "c.name in [" + ", ".join(f"'{name}'" for name in self.names) + "]"


class Catalogue:
    """The kernels of architectures, listed once a family, data type and mode."""

    def __init__(self, lib: Library):
        self.lib, self._lists = lib, {}

    def kernels(self, arch: str, family: str, data_type: str, mode: str) -> list[dict[str, Any]]:
        key = (arch, family, data_type, mode)
        if key not in self._lists:
            with Context(self.lib, arch) as context:
                try:
                    context.keep(f"c.family == '{family}' and c.data_type == '{data_type}' and c.mode == '{mode}'")
                    self._lists[key] = context.kernels()
                except Error as error:
                    if error.status != 3:
                        raise
                    self._lists[key] = []
        return self._lists[key]


def choose(catalogue: Catalogue, config: Any) -> Choice:
    """The nearest kernel to a configuration (an `FmhaKernelConfig`), with the stages that it needs. Raises NoKernel, and fmha.Error
    for an unknown architecture."""
    for what, value, known in (("family", config.family, FAMILIES), ("data_type", config.data_type, DATA_TYPES),
                               ("mode", config.mode, ("batch", "group"))):
        if value not in known:
            raise NoKernel(f"{what} {value!r} is not known; allowed: {', '.join(known)}")
    for what, value in zip(("pad_s", "pad_sk", "pad_d", "pad_dv"), config.padding):
        if value not in (known := (0, 1, 8) if "d" in what[4:] else (0, 1)):
            raise NoKernel(f"{what} is {value}; allowed: {', '.join(map(str, known))}")
    here = f"{config.gfx_arch} for {config.family}, {config.data_type}, {config.mode} mode"
    kernels = catalogue.kernels(config.gfx_arch, config.family, config.data_type, config.mode)
    if not kernels:
        raise NoKernel(f"there is no kernel of {here}")
    for what, wish, fits in _wishes(config):
        left = [kernel for kernel in kernels if fits(kernel)]
        if not left:
            raise NoKernel(f"there is no kernel of {here} with {what} {wish}" + _present(kernels, what))
        kernels = left
    notes = []
    padded = [kernel for kernel in kernels if _pads(kernel, config)]
    if not padded:
        notes.append("padding " + "".join(str(int(pad)) for pad in config.padding) + " does not exist here")
    kernel = min(padded or kernels, key=lambda kernel: _distance(kernel, config))
    fallback = []
    if limit := _limit(kernel):
        free = [other for other in padded or kernels if not _limit(other)]
        fallback = [min(free, key=lambda kernel: _distance(kernel, config))] if free else _halves(kernel, padded or kernels, config)
        notes.append(f"{kernel['name']} takes problems with {limit} only"
                     + "".join(f"; others run on {other['name']}" for other in fallback))
    companions = [other for family in _COMPANIONS.get(config.family, ())
                  for other in catalogue.kernels(config.gfx_arch, family, config.data_type, config.mode)
                  if _accompanies(other, kernel)]
    for family in _COMPANIONS.get(config.family, ()):
        if family != "bwd_convert_dq" and not any(other["family"] == family for other in companions):
            raise NoKernel(f"{config.family} needs a kernel of {family}, and {config.gfx_arch} has none for {config.data_type}, "
                           f"{config.mode} mode")
    return Choice(kernel, fallback + companions, notes + _unmet(kernel, config))


def _limit(kernel: dict[str, Any]) -> str:
    """The conditions of a kernel on the sizes of a problem, empty when it takes all."""
    algorithm = kernel["algorithm"]
    longest = algorithm["max_seq_len_q"]
    return " and ".join(filter(None, (algorithm["constraint"], f"seqlen_q <= {longest}" if longest > 0 else "")))


def _halves(kernel: dict[str, Any], kernels: list[dict[str, Any]], config: Any) -> list[dict[str, Any]]:
    """Of kernels none of which takes all queries: the nearest one for short queries and the nearest for all that are longer, less the one
    whose limit `kernel` has."""
    def limits(kernel: dict[str, Any]) -> tuple[str, int]:
        return kernel["algorithm"]["constraint"], kernel["algorithm"]["max_seq_len_q"]

    nearest = {limits(other): other for other in sorted(kernels, key=lambda kernel: _distance(kernel, config), reverse=True)}
    for constraint, longest in nearest:
        pair = ("", longest), (f"max_seqlen_q_gt_{longest}", 0)
        if not constraint and pair[1] in nearest:
            return [nearest[limit] for limit in pair if limit != limits(kernel)]
    return []


def _accompanies(other: dict[str, Any], main: dict[str, Any]) -> bool:
    """Whether a kernel of another stage shares the head dimension, and where it matters the determinism, of the main one."""
    what = "hdim_q" if other["family"] == "bwd_convert_dq" else "hdim_v"
    return other["signature"][what] == main["signature"][what] and (
        other["family"] != "bwd_convert_dq"
        or other["signature"]["is_deterministic"] == main["signature"]["is_deterministic"])


def _wishes(config: Any) -> list[tuple[str, Any, Callable[[dict[str, Any]], bool]]]:
    """The features that the kernel must have, in the order of the search."""
    family = config.family
    wishes: list[tuple[str, Any, Callable]] = []

    def equal(what: str, wish: Any, families: tuple[str, ...]) -> None:
        if family in families:
            wishes.append((what, wish, lambda kernel: kernel["signature"][what] == wish))

    def known(what: str, value: Any, table: dict[str, Any]) -> Any:
        if value not in table:
            raise NoKernel(f"{what} {value!r} is not known; allowed: {', '.join(name for name in table if name)}")
        return table[value]

    for what, size in (("hdim_q", config.hdim_q), ("hdim_v", config.hdim_v)):
        if size < 1 and family in _MAIN:
            raise NoKernel(f"{what} is {size}; a head has 1 channel or more")
        wishes.append((what, f">= {size}", lambda kernel, what=what, size=size: _takes(kernel, what, size)))
    if config.hdim_q == config.hdim_v == 128:
        wishes.append(("hdim_q", "128", lambda kernel: kernel["algorithm"]["constraint"] != "hdim_not_128"))
    equal("v_layout", known("vlayout", config.vlayout, _LAYOUTS), (*_MAIN, "fwd_appendkv"))
    if family in _MAIN:
        classes = known("mask", config.mask, _MASKS)
        wishes.append(("mask", classes[0], lambda kernel: kernel["signature"]["mask"] in classes))
    equal("bias", known("bias", config.bias, _BIASES), _MAIN)
    equal("has_lse", bool(config.lse), ("fwd", "fwd_pagedkv", "batch_prefill"))
    equal("has_dropout", bool(config.dropout), _MAIN)
    equal("has_logits_soft_cap", bool(config.logits), _MAIN)
    qscale = known("qscale", config.qscale, _QSCALES)
    equal("qscale", "mx" if config.data_type.startswith("mx") else qscale, _MAIN)
    equal("rope", known("rope", config.rope, _ROPES), ("fwd_appendkv",))
    equal("use_paged_kv", bool(config.paged_kv) or family in ("fwd_pagedkv", "batch_prefill"), (*_ATTENDS, "fwd_appendkv"))
    equal("kv_layout", known("kv_memory_layout", config.kv_memory_layout, _KV_LAYOUTS), ("batch_prefill",))
    equal("kv_lookup", known("kv_lookup_table", config.kv_lookup_table, _LOOKUPS), ("batch_prefill",))
    equal("page_size", config.page_size, ("batch_prefill",))
    equal("has_dbias", bool(config.dbias), ("bwd_dq_dk_dv",))
    equal("is_deterministic", bool(config.deterministic), ("bwd_dq_dk_dv", "bwd_convert_dq"))
    equal("is_store_randval", "storerandval" in known("dropout_variant", config.dropout_variant, _DROPOUTS), ("bwd_dq_dk_dv",))
    for what, wish in (("has_sink", config.sink), ("skip_min_seqlen_q", config.skip_min_seqlen_q)):
        if wish and family in _MAIN:
            wishes.append((what, True, lambda kernel, what=what: kernel["signature"][what]))
    return wishes


def _takes(kernel: dict[str, Any], what: str, size: int) -> bool:
    """Whether a kernel takes a head dimension: its own, or a smaller one with padding. Stages that do not see it say 0."""
    own = kernel["signature"][what]
    pad = kernel["algorithm"]["pad"]["d" if what == "hdim_q" else "dv"]
    return own in (0, size) or (own > size and pad != 0 and size % pad == 0)


def _present(kernels: list[dict[str, Any]], what: str) -> str:
    present = sorted({kernel["signature"][what] for kernel in kernels})
    return f"; there is {', '.join(map(str, present))}"


def _pads(kernel: dict[str, Any], config: Any) -> bool:
    """Whether a kernel handles every ragged extent that the configuration asks for. Its own head dimensions need no padding."""
    pad = kernel["algorithm"]["pad"]
    if config.family in ("fwd_splitkv_combine", "bwd_dot_do_o", "bwd_convert_dq", "fwd_appendkv"):
        return True
    needs_rows = (not config.pad_s or pad["s"]) and (not config.pad_sk or pad["sk"])
    if config.family in ("batch_prefill", "bwd_dq_dk_dv"):
        needs_rows = True  # these mask their tails whatever the flags say
    return needs_rows and all(kernel["signature"][what] == size or not wish or 0 < pad[axis] <= wish for what, size, axis, wish in
                              (("hdim_q", config.hdim_q, "d", int(config.pad_d)), ("hdim_v", config.hdim_v, "dv", int(config.pad_dv))))


def wished_tile(config: Any) -> tuple[int, ...]:
    """The tile of a configuration. Columns of O and padded query depth follow the head sizes when they were left at 128."""
    tile = list(config.tile[:6])
    if config.tile_n1 == 128:
        tile[3] = config.hdim_v
    if config.tile_k0max == 128:
        tile[5] = config.hdim_q
    return tuple(tile)


def _distance(kernel: dict[str, Any], config: Any) -> tuple:
    signature, algorithm = kernel["signature"], kernel["algorithm"]
    tile = sum(abs(math.log2(algorithm["tile"][name] / wish)) if algorithm["tile"][name] > 0 and wish > 0 else 0.0
               for name, wish in zip(TILE, wished_tile(config)))
    warp = sum(algorithm["warp"][name] != wish for name, wish in zip(("m0", "n0", "k0"), config.warp))
    lacks = sum(algorithm["pad"][axis] == 0 and bool(wish) for axis, wish in (("d", config.pad_d), ("dv", config.pad_dv)))
    pad = sum(int(algorithm["pad"][axis]) != int(wish) for axis, wish in zip(("s", "sk", "d", "dv"), config.padding))
    surplus = sum(bool(signature[what]) != bool(wish) for what, wish in
                  (("skip_min_seqlen_q", config.skip_min_seqlen_q), ("is_store_randval", False)))
    return (signature["hdim_q"] - config.hdim_q + signature["hdim_v"] - config.hdim_v,
            config.family in _MAIN and signature["mask"] not in _MASKS[config.mask][:1], algorithm["pipeline"] != config.pipeline,
            lacks, tile, _limit(kernel) != "", warp, pad, surplus,
            algorithm["use_trload"] != config.use_trload, algorithm["tile_tag"] != config.tile_tag,
            config.block_per_cu not in (-1, algorithm["block_per_cu"]), algorithm["selection_rank"], kernel["name"])


def _unmet(kernel: dict[str, Any], config: Any) -> list[str]:
    """The preferences that a kernel does not meet, a sentence each."""
    algorithm, notes = kernel["algorithm"], []
    if algorithm["pipeline"] != config.pipeline:
        notes.append(f"pipeline {config.pipeline} does not exist here; {algorithm['pipeline']} runs")
    own = tuple(algorithm["tile"][name] for name in TILE)
    if own != wished_tile(config):
        notes.append(f"tile {'x'.join(map(str, wished_tile(config)))} does not exist here; {'x'.join(map(str, own))} runs")
    if config.block_per_cu not in (-1, algorithm["block_per_cu"]):
        notes.append(f"block_per_cu {config.block_per_cu} does not exist here; {algorithm['block_per_cu']} runs")
    return notes
