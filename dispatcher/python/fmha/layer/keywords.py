"""What a run is told beside its arrays: keywords and the families that read them, and flags that go together with data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fmha.calls import BIASES, MASKS
from fmha.layer.config import FmhaKernelConfig, FmhaProblem
from fmha.values import flag, number_of, real_number, shown, text, whole_number

API_FAMILIES = {"fwd": "fwd", "splitkv": "splitkv", "fwd_splitkv": "splitkv", "pagedkv": "pagedkv", "fwd_pagedkv": "pagedkv",
                "appendkv": "appendkv", "fwd_appendkv": "appendkv", "batch_prefill": "batch_prefill"}
KEYWORDS = frozenset("""is_v_rowmajor perm is_group_mode window_left window_right traits_hdim_q traits_hdim_v num_splits paged_kv
    page_size seqlen_knew rope_type kv_layout kv_lookup skip_min_seqlen_q qscale_type verify_fp8 scale bias alibi_slopes logits_soft_cap
    p_drop seed offset sink_size sink_logit lse randval seqstart_q seqstart_k seqlen_q seqlen_k max_seqlen_q max_seqlen_k min_seqlen_q
    block_table seqlens_k k_cache v_cache cache_seqlens rotary_cos rotary_sin q_descale k_descale v_descale kv_indptr
    kv_page_indices kv_last_page_lens stream q_rotate""".split())

# Keywords that bring data, and which families take them. The dispatcher's clients give every family all settings, such as
# num_splits; data that a family has no place for would be left out of the result.
_SCORES = "bias alibi_slopes logits_soft_cap sink_logit sink_size lse seqstart_q seqlens_k"
_LENGTHS = "seqstart_k seqlen_q seqlen_k max_seqlen_q max_seqlen_k"
_DESCALES = "q_descale k_descale v_descale"
_DATA = {name: frozenset(words.split()) for name, words in {
    "fwd": f"{_SCORES} {_LENGTHS} {_DESCALES} min_seqlen_q p_drop randval",
    "splitkv": f"{_SCORES} {_LENGTHS} {_DESCALES} block_table",
    "pagedkv": f"{_SCORES} {_DESCALES} block_table",
    "batch_prefill": f"{_SCORES} {_DESCALES} block_table kv_indptr kv_page_indices kv_last_page_lens",
    "appendkv": "k_cache v_cache cache_seqlens rotary_cos rotary_sin block_table",
    "bwd": f"bias alibi_slopes sink_logit seqstart_q seqlens_k {_LENGTHS} p_drop randval"}.items()}
_ALL_DATA = frozenset().union(*_DATA.values())

# Flags whose data may also come alone, and the fields of a configuration that they follow.
_CARRIED = {"has_sink": ("sink", ("sink_size", "sink_logit")), "has_skip": ("skip_min_seqlen_q", ("min_seqlen_q",))}


def given(keywords: dict[str, Any]) -> dict[str, Any]:
    """Without those that are None, which clients give for what they do not have."""
    return {name: value for name, value in keywords.items() if value is not None}


def _is_data(value: Any) -> bool:
    """Whether a value brings something: 0 says the same as no value."""
    return value is not None and not (isinstance(value, (bool, int, float, np.generic)) and value == 0)


def refuse_others_data(family: str, keywords: dict[str, Any]) -> None:
    """Raises ValueError for data that this family has no place for."""
    for name in sorted(_ALL_DATA - _DATA[family]):
        if _is_data(keywords.get(name)):
            raise ValueError(f"{family} takes no {name}; allowed: {', '.join(sorted(_DATA[family]))}")


def refuse_other_layouts(family: str, prob: FmhaProblem, keywords: dict[str, Any]) -> None:
    """Raises ValueError for head sizes that are not those of the arrays, and for layouts that this family does not read: where extents are
    equal, no shape would tell them."""
    for name, own in (("traits_hdim_q", prob.hdim_q), ("traits_hdim_v", prob.hdim_v)):
        if whole_number(name, keywords.get(name, 0)) not in (0, own):
            raise ValueError(f"{name} is {shown(keywords[name])}, and the arrays have {own} channels; allowed: 0 and {own}")
    if family != "fwd" and not flag("is_v_rowmajor", keywords.get("is_v_rowmajor", 1)):
        raise ValueError(f"is_v_rowmajor is 0, and {family} reads V [B,H,S,D] only; allowed: 1")
    if family == "appendkv" and not flag("perm", keywords.get("perm", 1)):
        raise ValueError("perm is 0, and appendkv takes [B,H,S,D] only; allowed: 1")


def _require_partners(family: str, wish: dict[str, Any], asked: dict[str, Any], keywords: dict[str, Any]) -> None:
    """Raises ValueError for a feature without its data, and for data of a feature that the call says it lacks."""
    for name, datum in (("has_dropout", "p_drop"), ("has_logits", "logits_soft_cap")):
        if wish.get(name, False) != (real_number(datum, keywords.get(datum, 0)) != 0):
            raise ValueError(f"{name} is {int(wish.get(name, False))}, and {datum} is {keywords.get(datum, 'not given')}; they go together")
    for name, (field, data) in _CARRIED.items():
        has = [datum for datum in data if _is_data(keywords.get(datum))]
        if wish.get(name) and not has:
            taken = [datum for datum in data if datum in _DATA[family]]
            what = f"{field}=True of the configuration" if asked[name] is None else name
            raise ValueError(f"{what} needs {' or '.join(taken or data)}" + ("" if taken else f", which {family} does not take"))
        if asked.get(name) is not None and not wish[name] and has:
            raise ValueError(f"{name} is 0, and {has[0]} is given; they go together")
    if "lse" in keywords and asked.get("has_lse") is not None and flag("lse", keywords["lse"]) != wish["has_lse"]:
        raise ValueError(f"has_lse is {int(wish['has_lse'])}, and lse is {int(flag('lse', keywords['lse']))}; they mean the same")


def stored_bytes(config: FmhaKernelConfig | None, asked: Any, keywords: dict[str, Any]) -> Any:
    """Forward's random bytes for kernels that read them instead of drawing them anew, else None. Raises ValueError where a flag and the
    bytes do not agree."""
    has = keywords.get("randval") is not None
    configured = config is not None and "storerandval" in config.dropout_variant
    stores = flag("is_store_randval", has or configured if asked is None else asked)
    if stores != has:
        raise ValueError(f"is_store_randval is {int(stores)}, and randval, forward's random bytes, is {'given' if has else 'not given'}; "
                         "they go together")
    return keywords.get("randval")


def wishes(family: str, config: FmhaKernelConfig | None, asked: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Every wish, from the call or else from the configuration, and as `options` the keywords of `families` that they mean."""
    for name in sorted(set(keywords) - KEYWORDS):
        warnings.warn(f"FmhaRunner.run ignores {name}; known keywords: {', '.join(sorted(KEYWORDS))}", stacklevel=6)
    config = config or FmhaKernelConfig()
    if "has_skip" in asked and keywords.get("skip_min_seqlen_q") is not None:
        skips = flag("skip_min_seqlen_q", keywords["skip_min_seqlen_q"])
        if asked["has_skip"] is not None and flag("has_skip", asked["has_skip"]) != skips:
            raise ValueError(f"has_skip is {int(not skips)}, and skip_min_seqlen_q is {int(skips)}; they mean the same")
        asked = {**asked, "has_skip": skips}
    configured = {"mask_type": config.mask, "bias_type": config.bias, "has_lse": config.lse, "has_dropout": config.dropout,
                  "has_logits": config.logits, "has_sink": config.sink, "has_skip": config.skip_min_seqlen_q, "data_type": config.data_type}
    wish = {name: configured[name] if value is None else value for name, value in asked.items()}
    wish |= {name: flag(name, value) for name, value in wish.items() if name.startswith("has_")}
    text("data_type", wish["data_type"])
    mask, bias = number_of(wish["mask_type"], MASKS, "mask_type"), number_of(wish["bias_type"], BIASES, "bias_type")
    _require_partners(family, wish, asked, keywords)
    for number, datum in ((1, "bias"), (2, "alibi_slopes")):
        if (bias == number) != (keywords.get(datum) is not None):
            raise ValueError(f"bias_type is {bias}, and {datum} is {'given' if bias != number else 'not given'}; they go together")
    left, right = keywords.get("window_left", -1), keywords.get("window_right", -1)
    if mask in (1, 2) and left == -1 and right == -1:
        right = 0  # the mask alone means causal
    options = {"data_type": wish["data_type"], "mask": mask, "window": (left, right), "scale": keywords.get("scale"),
               "bias": keywords.get("bias"), "alibi_slopes": keywords.get("alibi_slopes"), "stream": keywords.get("stream"),
               "sink_logit": keywords.get("sink_logit")}
    return wish | {"options": options}
