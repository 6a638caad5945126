"""The runner: calls by the conventions of the dispatcher's Python layer."""

from __future__ import annotations

import threading
import warnings
from typing import Any, Callable

import numpy as np

from fmha import families, formats
from fmha.calls import BIASES, KV_LAYOUTS, KV_LOOKUPS, MASKS, QSCALES, ROPES, Call
from fmha.layer import shapes
from fmha.layer.config import FmhaKernelConfig, FmhaProblem, checked_problem
from fmha.layer.quantize import quantised
from fmha.layer.results import FmhaResult
from fmha.library import Context, Error
from fmha.tensors import view_of
from fmha.values import flag, number_of, real_number, shown, text, whole_number

API_FAMILIES = {"fwd": "fwd", "splitkv": "splitkv", "fwd_splitkv": "splitkv", "pagedkv": "pagedkv", "fwd_pagedkv": "pagedkv",
                "appendkv": "appendkv", "fwd_appendkv": "appendkv", "batch_prefill": "batch_prefill"}
KEYWORDS = frozenset("""is_v_rowmajor perm is_group_mode window_left window_right traits_hdim_q traits_hdim_v num_splits paged_kv
    page_size seqlen_knew rope_type kv_layout kv_lookup skip_min_seqlen_q qscale_type verify_fp8 scale bias alibi_slopes logits_soft_cap
    p_drop seed offset sink_size sink_logit lse randval seqstart_q seqstart_k seqlen_q seqlen_k max_seqlen_q max_seqlen_k min_seqlen_q
    block_table seqlens_k k_cache v_cache cache_seqlens rotary_cos rotary_sin q_descale k_descale v_descale kv_indptr
    kv_page_indices kv_last_page_lens stream q_rotate""".split())

Planned = tuple[Call, Callable[[Any], Any]]  # a call, and a function that brings its output into the caller's layout

# Keywords that bring data, and which families take them. The dispatcher's clients give every family all settings, such as
# num_splits; data that a family has no place for would be left out of the result.
_SCORES = "bias alibi_slopes logits_soft_cap sink_logit sink_size lse seqstart_q seqlens_k"
_LENGTHS = "seqstart_k seqlen_q seqlen_k max_seqlen_q max_seqlen_k min_seqlen_q"
_DESCALES = "q_descale k_descale v_descale"
_DATA = {name: frozenset(words.split()) for name, words in {
    "fwd": f"{_SCORES} {_LENGTHS} {_DESCALES} p_drop randval", "splitkv": f"{_SCORES} {_LENGTHS} {_DESCALES} block_table",
    "pagedkv": f"{_SCORES} {_DESCALES} block_table",
    "batch_prefill": f"{_SCORES} {_DESCALES} block_table kv_indptr kv_page_indices kv_last_page_lens",
    "appendkv": "k_cache v_cache cache_seqlens rotary_cos rotary_sin block_table",
    "bwd": f"bias alibi_slopes sink_logit seqstart_q seqlens_k {_LENGTHS} p_drop randval"}.items()}
_ALL_DATA = frozenset().union(*_DATA.values())


def _given(keywords: dict[str, Any]) -> dict[str, Any]:
    """Without those that are None, which clients give for what they do not have."""
    return {name: value for name, value in keywords.items() if value is not None}


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, (bool, int, float)) and value == 0)


def _refuse_others_data(family: str, keywords: dict[str, Any]) -> None:
    """Raises ValueError for data that this family has no place for."""
    for name in sorted(_ALL_DATA - _DATA[family]):
        if _is_given(keywords.get(name)):
            raise ValueError(f"{family} takes no {name}; allowed: {', '.join(sorted(_DATA[family]))}")


class FmhaRunner:
    """Runs the kernels of one set-up. Several runners are independent of each other; each may be used by any thread. What it
    holds is freed with it, or by `cleanup`."""

    HIP_MEMCPY_H2D = 1
    HIP_MEMCPY_D2H = 2
    WARM_UP, REPEATS = 10, 50  # launches on a device; the host runs once

    def __init__(self, dispatch_lib: Any, arch: str = "gfx950"):
        """Over all kernels of an architecture, on the host, with a library of `FmhaDispatcherLib`. RuntimeError when it cannot."""
        self._setup(lambda: Context(dispatch_lib.library, arch), str(dispatch_lib.path), arch, None)
        self._opened()

    @classmethod
    def _over(cls, opener: Callable[[], Context], library_path: str, arch: str, config: FmhaKernelConfig | None) -> FmhaRunner:
        """A runner that opens its context when it is first used."""
        runner = cls.__new__(cls)
        runner._setup(opener, library_path, arch, config)
        return runner

    def _setup(self, opener: Callable[[], Context], path: str, arch: str, config: FmhaKernelConfig | None) -> None:
        self._opener, self._path, self.arch, self.config = opener, path, arch, config
        self._context: Context | None = None
        self._closed = False
        self._lock = threading.RLock()

    @classmethod
    def from_prebuilt(cls, arch: str | None = None) -> FmhaRunner:
        """Over all kernels of an architecture (default: that of this machine's GPU). RuntimeError without libfmha.so."""
        from fmha.arch import detect_gpu_arch
        from fmha.layer.dispatcher_lib import FmhaDispatcherLib
        lib = FmhaDispatcherLib.find()
        if lib is None:
            raise RuntimeError("libfmha.so was not found; build it with ./run build, or name its folder in FMHA_LIBRARY_DIR")
        return cls(lib, arch or detect_gpu_arch())

    @classmethod
    def from_library(cls, path: Any, arch: str | None = None) -> FmhaRunner:
        """From the library_path of a set-up, or over all kernels with a libfmha.so. OSError when there is no such file."""
        from fmha.layer.jit import runner_of
        return runner_of(path, arch)

    def _opened(self) -> Context:
        if self._closed:
            raise Error(-1, "the runner was cleaned up")
        if self._context is None:
            try:
                self._context = self._opener()
            except Error as error:
                raise RuntimeError(str(error)) from error
        return self._context

    @property
    def kernel_count(self) -> int:
        """Kernels to choose from; 0 after cleanup."""
        with self._lock:
            return 0 if self._closed else self._opened().kernel_count()

    @property
    def library_path(self) -> str:
        return self._path

    def cleanup(self) -> None:
        """Frees everything; a second call does nothing. Runs fail afterwards."""
        with self._lock:
            context, self._context, self._closed = self._context, None, True
            if context is not None:
                context.close()

    def run(self, Q: Any, K: Any, V: Any, prob: FmhaProblem, mask_type: Any = None, bias_type: Any = None, has_lse: Any = None,
            has_dropout: Any = None, has_logits: Any = None, has_sink: Any = None, has_skip: Any = None,
            api_family: str | None = None, data_type: str | None = None, **keywords: Any) -> FmhaResult:
        """Attention of a problem. What is left out follows the configuration of the set-up. Arrays are [B,H,S,D] unless perm=0 says
        [B,S,H,D]; with seqstart_q and seqstart_k, [tokens,H,D]. Never raises for a call that fails: `error` says why."""
        wish = {"mask_type": mask_type, "bias_type": bias_type, "has_lse": has_lse, "has_dropout": has_dropout,
                "has_logits": has_logits, "has_sink": has_sink, "has_skip": has_skip, "data_type": data_type}
        given = _given(keywords)
        return self._guarded("Kernel", lambda: self._run(Q, K, V, checked_problem(prob), api_family, wish, given))

    def run_bwd(self, Q: Any, K: Any, V: Any, out: Any, LSE: Any, dO: Any, prob: FmhaProblem, data_type: str | None = None,
                mask_type: Any = None, bias_type: Any = None, has_dropout: Any = None, has_dbias: Any = None,
                is_deterministic: Any = None, is_group_mode: Any = None, is_store_randval: Any = None, tile_n0: int = 128,
                **keywords: Any) -> FmhaResult:
        """(dQ, dK, dV) from forward's output and LSE [B,Hq,Sq], natural logarithm. tile_n0 is the kernel's own."""
        wish = {"mask_type": mask_type, "bias_type": bias_type, "has_dropout": has_dropout, "data_type": data_type}
        more = {"dbias": has_dbias, "deterministic": is_deterministic, "group": is_group_mode, "randval": is_store_randval}
        given = _given(keywords)
        return self._guarded("BWD kernel", lambda: self._run_bwd(Q, K, V, out, LSE, dO, checked_problem(prob), wish, more, given))

    def _guarded(self, what: str, run: Callable[[], FmhaResult]) -> FmhaResult:
        with self._lock:
            try:
                return run()
            except Error as error:
                return FmhaResult(False, error=f"{what} failed (rc={error.status}): {error}")
            except (ValueError, TypeError, RuntimeError, MemoryError) as error:
                return FmhaResult(False, error=f"{what} failed: {error}")

    def _flags(self, wish: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Every wish, from the call or else from the configuration, and the keywords of `families` that they mean."""
        for name in sorted(set(keywords) - KEYWORDS):
            warnings.warn(f"FmhaRunner.run ignores {name}; known keywords: {', '.join(sorted(KEYWORDS))}", stacklevel=5)
        config = self.config or FmhaKernelConfig()
        configured = {"mask_type": config.mask, "bias_type": config.bias, "has_lse": config.lse, "has_dropout": config.dropout,
                      "has_logits": config.logits, "has_sink": False, "has_skip": False, "data_type": config.data_type}
        wish = {name: configured[name] if value is None else value for name, value in wish.items()}
        wish |= {name: flag(name, value) for name, value in wish.items() if name.startswith("has_")}
        text("data_type", wish["data_type"])
        mask, bias = number_of(wish["mask_type"], MASKS, "mask_type"), number_of(wish["bias_type"], BIASES, "bias_type")
        needs = (("has_dropout", "p_drop"), ("has_logits", "logits_soft_cap"))
        for name, datum in needs:
            if wish.get(name, False) != (real_number(datum, keywords.get(datum, 0)) != 0):
                raise ValueError(f"{name} is {int(wish.get(name, False))}, and {datum} is {keywords.get(datum, 'not given')}; they go together")
        for number, datum in ((1, "bias"), (2, "alibi_slopes")):
            if (bias == number) != (keywords.get(datum) is not None):
                raise ValueError(f"bias_type is {bias}, and {datum} is {'given' if bias != number else 'not given'}; they go together")
        if wish.get("has_sink") and not whole_number("sink_size", keywords.get("sink_size", 0)) and keywords.get("sink_logit") is None:
            raise ValueError("has_sink needs sink_size or sink_logit")
        left, right = keywords.get("window_left", -1), keywords.get("window_right", -1)
        if mask in (1, 2) and left == -1 and right == -1:
            right = 0  # the mask alone means causal
        options = {"data_type": wish["data_type"], "mask": mask, "window": (left, right), "scale": keywords.get("scale"),
                   "bias": keywords.get("bias"), "alibi_slopes": keywords.get("alibi_slopes"), "stream": keywords.get("stream"),
                   "sink_logit": keywords.get("sink_logit")}
        return wish | {"options": options}

    def _run(self, q: Any, k: Any, v: Any, prob: FmhaProblem, api: str | None, wish: dict[str, Any],
             keywords: dict[str, Any]) -> FmhaResult:
        family = text("api_family", api if api is not None else self.config.family if self.config is not None else "fwd")
        if family not in API_FAMILIES:
            raise ValueError(f"api_family {shown(family)} is not known; allowed: {', '.join(API_FAMILIES)}"
                             + ("; gradients are run_bwd's" if family.startswith("bwd") else ""))
        context = self._opened()
        name = API_FAMILIES[family]
        _refuse_others_data(name, keywords)
        wish = self._flags(wish, keywords)
        if name == "appendkv":
            return self._append(context, q, k, v, prob, wish, keywords)
        wish["options"] |= {"lse": flag("lse", keywords.get("lse", wish["has_lse"])), "soft_cap": keywords.get("logits_soft_cap", 0.0),
                            "sink": keywords.get("sink_size", 0)}
        call, unpack = getattr(self, f"_{name}")(context, q, k, v, prob, wish["options"], keywords)
        call.run(self.WARM_UP, self.REPEATS)
        output = unpack(call.output("o"))
        result = self._timed(call, prob, wish["options"], products=1)
        result.output = output
        for extra in ("lse", "randval"):
            if extra in call.outputs:
                setattr(result, extra, call.output(extra))
        return result

    def _group(self, keywords: dict[str, Any]) -> bool:
        configured = self.config is not None and self.config.mode == "group"
        return flag("is_group_mode", keywords.get("is_group_mode", configured)) or keywords.get("seqstart_q") is not None

    def _placed(self, q: Any, k: Any, v: Any, prob: FmhaProblem, keywords: dict[str, Any], v_column: bool = False) -> tuple:
        """Q, K and V as a family takes them, their layout and lengths, and a function that brings the output into the caller's layout."""
        heads_first = flag("perm", keywords.get("perm", 1))
        lengths = {name: keywords[name] for name in ("seqstart_q", "seqstart_k", "seqlen_q", "seqlen_k", "max_seqlen_q", "max_seqlen_k",
                                                     "min_seqlen_q") if keywords.get(name) is not None}
        if keywords.get("seqlens_k") is not None:
            lengths["seqlen_k"] = keywords["seqlens_k"]
        is_packed = "seqstart_q" in lengths
        shapes.check_shapes({"Q": q, "K": k, "V": v}, shapes.expected_shapes(prob, heads_first, v_column, is_packed))
        if is_packed:
            return (q, k, v), {"layout": "shd", **lengths}, lambda o: o
        if not self._group(keywords):
            return (q, k, v), {"layout": "bhsd" if heads_first else "bshd", **lengths}, lambda o: o
        if not heads_first or v_column:
            raise ValueError("is_group_mode packs [B,H,S,D] arrays; for others give packed arrays with seqstart_q and seqstart_k")
        lengths |= {"seqstart_q": shapes.evenly(prob.batch, prob.seqlen_q), "seqstart_k": shapes.evenly(prob.batch, prob.seqlen_k)}
        return (tuple(shapes.packed(array) for array in (q, k, v)), {"layout": "shd", **lengths},
                lambda o: shapes.unpacked(o, prob.batch))

    def _fwd(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
             keywords: dict[str, Any]) -> Planned:
        column = not flag("is_v_rowmajor", keywords.get("is_v_rowmajor", self.config is None or self.config.vlayout == "r"))
        arrays, placed, unpack = self._placed(q, k, v, prob, keywords, column)
        randval = flag("randval", keywords.get("randval"))
        drop = (keywords.get("p_drop", 0.0), keywords.get("seed", 0), keywords.get("offset", 0))
        scales = self._scales(keywords)
        if options["data_type"].startswith("mx") and number_of(scales["qscale"], QSCALES, "qscale_type") == 0:
            scales["qscale"] = "mx"
        return families.forward(context, self.arch, *arrays, v_column=column, randval=randval, dropout=drop, **scales, **placed,
                                **options), unpack

    def _splitkv(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
                 keywords: dict[str, Any]) -> Planned:
        splits = keywords.get("num_splits", 4)
        if flag("paged_kv", keywords.get("paged_kv", self.config.paged_kv if self.config else 0)):
            arrays, placed, unpack = self._paged_arrays(q, k, v, prob, keywords)
        else:
            arrays, placed, unpack = self._placed(q, k, v, prob, keywords)
        return families.splitkv(context, self.arch, *arrays, num_splits=splits, **self._scales(keywords), **placed, **options), unpack

    def _pagedkv(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
                 keywords: dict[str, Any]) -> Planned:
        arrays, placed, unpack = self._paged_arrays(q, k, v, prob, keywords)
        return families.paged(context, self.arch, *arrays, **self._scales(keywords), **placed, **options), unpack

    def _scales(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """How 8-bit inputs are scaled: by the call, else by the configuration."""
        scales = {name: keywords.get(name) for name in ("q_descale", "k_descale", "v_descale")}
        return {"qscale": keywords.get("qscale_type", self.config.qscale if self.config else 0), **scales}

    def _page_size(self, keywords: dict[str, Any], least: int) -> int:
        size = keywords.get("page_size", 0)
        if isinstance(size, int) and size == 0:
            size = self.config.page_size if self.config else 1
        return max(whole_number("page_size", size), least)

    def _paged_arrays(self, q: Any, k: Any, v: Any, prob: FmhaProblem, keywords: dict[str, Any]) -> tuple:
        """K and V as pages: those of the caller with block_table, else cut from [B,H,S,D] in pages of at least 128 keys."""
        if keywords.get("block_table") is not None:
            placed = {"block_table": keywords["block_table"], "seqlens_k": keywords.get("seqlens_k")}
            if keywords.get("seqstart_q") is not None:
                return (q, k, v), {"layout": "shd", "seqstart_q": keywords["seqstart_q"], **placed}, lambda o: o
            shapes.check_shapes({"Q": q}, {"Q": prob.q_shape()})
            return (q, k, v), {"layout": "bhsd", **placed}, lambda o: o
        if keywords.get("seqstart_q") is not None:
            raise ValueError("seqstart_q packs the rows of Q; it needs K and V in pages, and a block_table")
        shapes.check_shapes({"Q": q, "K": k, "V": v}, shapes.expected_shapes(prob, True, False, False))
        size = self._page_size(keywords, 128)
        lengths = keywords.get("seqlens_k", np.full(prob.batch, prob.seqlen_k, np.int32))
        placed = {"block_table": shapes.identity_table(prob.batch, prob.seqlen_k, size), "seqlens_k": lengths}
        pages = (shapes.paged(k, size), shapes.paged(v, size))
        if not self._group(keywords):
            return (q, *pages), {"layout": "bhsd", **placed}, lambda o: o
        placed["seqstart_q"] = shapes.evenly(prob.batch, prob.seqlen_q)
        return (shapes.packed(q), *pages), {"layout": "shd", **placed}, lambda o: shapes.unpacked(o, prob.batch)

    def _batch_prefill(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
                       keywords: dict[str, Any]) -> Planned:
        """Q packed, and K and V as pages: those of the caller with a table, else cut from [B,H,S,D]."""
        config = self.config or FmhaKernelConfig()
        size = self._page_size(keywords, 1)
        layout = number_of(keywords.get("kv_layout", config.kv_memory_layout), KV_LAYOUTS, "kv_layout")
        lookup = number_of(keywords.get("kv_lookup", config.kv_lookup_table), KV_LOOKUPS, "kv_lookup")
        qscale = number_of(keywords.get("qscale_type", config.qscale), QSCALES, "qscale_type")
        scales = {name: keywords.get(name) for name in ("q_descale", "k_descale", "v_descale")}
        tables = ("block_table", "seqlens_k", "kv_indptr", "kv_page_indices", "kv_last_page_lens")
        named = {name: keywords[name] for name in tables if keywords.get(name) is not None}
        unpack = lambda o: o
        if "block_table" in named or "kv_indptr" in named:
            if keywords.get("seqstart_q") is None:
                raise ValueError("a table of pages needs seqstart_q: where the rows of each entry begin in Q [tokens, heads, channels]")
            rows, starts, pages = q, keywords["seqstart_q"], (k, v)
        elif named or keywords.get("seqstart_q") is not None:
            given = next(iter(named), "seqstart_q")
            raise ValueError(f"{given} belongs to K and V in pages, which need kv_indptr or block_table")
        else:
            shapes.check_shapes({"Q": q, "K": k, "V": v}, shapes.expected_shapes(prob, True, False, False))
            starts = shapes.evenly(prob.batch, prob.seqlen_q)
            table = shapes.identity_table(prob.batch, prob.seqlen_k, size)
            element = formats.data_type(options["data_type"], self.arch).inputs
            if flag("verify_fp8", keywords.get("verify_fp8")) and qscale in (1, 5) and options["data_type"].startswith("fp8"):
                rows, pages, scales = quantised(q, k, v, size, qscale, layout == 0, element)
            else:
                rows, pages = shapes.packed(q), [shapes.paged(array, size) for array in (k, v)]
                if layout == 0:  # a vector holds elements as they are stored
                    pages = [shapes.vectorized(formats.encode(page, element), of_values) for page, of_values in zip(pages, (False, True))]
            if lookup == 0:
                named = {"block_table": table, "seqlens_k": np.full(prob.batch, prob.seqlen_k, np.int32)}
            else:
                named = {"kv_indptr": shapes.evenly(prob.batch, table.shape[1]), "kv_page_indices": table.reshape(-1),
                         "kv_last_page_lens": np.full(prob.batch, (prob.seqlen_k - 1) % size + 1, np.int32)}
            unpack = lambda o: shapes.unpacked(o, prob.batch)
        call = families.batch_prefill(context, self.arch, rows, *pages, page_size=size, page_count=view_of(pages[0]).shape[0],
                                      seqstart_q=starts, kv_layout=layout, max_seqlen_k=prob.seqlen_k, qscale=qscale, **scales, **named,
                                      **options)
        return call, unpack

    def _append(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, wish: dict[str, Any],
                keywords: dict[str, Any]) -> FmhaResult:
        """K and V are the new tokens. Without k_cache, v_cache and cache_seqlens the cache is empty and as long as they are."""
        tokens = whole_number("seqlen_knew", keywords.get("seqlen_knew", prob.seqlen_k))
        new = {"K": (prob.batch, prob.nhead_k, tokens, prob.hdim_q), "V": (prob.batch, prob.nhead_k, tokens, prob.hdim_v)}
        shapes.check_shapes({"K": k, "V": v}, new)
        caches = [keywords.get(name) for name in ("k_cache", "v_cache")]
        if caches[0] is None:
            caches = [np.zeros(np.asarray(array).shape, np.asarray(array).dtype) for array in (k, v)]
        else:
            caches = [cache if shapes.is_device(cache) else np.array(cache) for cache in caches]
        rope = keywords.get("rope_type", self.config.rope if self.config else 0)
        rotated = q if flag("q_rotate", keywords.get("q_rotate", number_of(rope, ROPES, "rope_type") != 0)) else None
        rotated = rotated if rotated is None or shapes.is_device(rotated) else np.array(rotated)
        call = families.append(context, self.arch, *caches, k, v, data_type=wish["data_type"], q=rotated, nhead_q=prob.nhead_q,
                               seqlens_k=keywords.get("cache_seqlens", np.zeros(prob.batch, np.int32)), rope=rope,
                               rotary_cos=keywords.get("rotary_cos"), rotary_sin=keywords.get("rotary_sin"),
                               has_mask=bool(number_of(wish["mask_type"], MASKS, "mask_type")), block_table=keywords.get("block_table"),
                               stream=keywords.get("stream"))
        call.run(0, 1)  # once: it works in place
        host = {name: cache if shapes.is_device(cache) else call.output(name) for name, cache in zip("kv", caches)}
        result = FmhaResult(True, np.zeros(prob.o_shape(), np.float32), call.milliseconds, kernel=call.kernel, k_cache=host["k"],
                            v_cache=host["v"])
        if rotated is not None:
            result.q_rotated = rotated if shapes.is_device(rotated) else call.output("q")
        return result

    def _run_bwd(self, q: Any, k: Any, v: Any, o: Any, lse: Any, d_o: Any, prob: FmhaProblem, wish: dict[str, Any],
                 more: dict[str, Any], keywords: dict[str, Any]) -> FmhaResult:
        config = self.config or FmhaKernelConfig()
        context = self._opened()
        _refuse_others_data("bwd", keywords)
        options = self._flags({**wish, "has_lse": False, "has_logits": False, "has_sink": False}, keywords)["options"]
        if flag("is_group_mode", more["group"]) or (more["group"] is None and config.mode == "group"):
            keywords = {**keywords, "is_group_mode": 1}
        (q, k, v), placed, unpack = self._placed(q, k, v, prob, keywords)
        if placed["layout"] == "shd" and keywords.get("seqstart_q") is None:
            o, d_o = shapes.packed(o), shapes.packed(d_o)
            lse = np.ascontiguousarray(np.asarray(lse, np.float32).swapaxes(0, 1)).reshape(prob.nhead_q, -1)
        drop = (keywords.get("p_drop", 0.0), keywords.get("seed", 0), keywords.get("offset", 0))
        wants = {name: flag(name, configured if more[name] is None else more[name])
                 for name, configured in (("dbias", config.dbias), ("deterministic", config.deterministic))}
        call = families.backward(context, self.arch, q, k, v, o, lse, d_o, dropout=drop, randval=keywords.get("randval"), **wants,
                                 **placed, **options)
        call.run(0, 1)  # once: gradients are added to what a launch finds
        result = self._timed(call, prob, options, products=2.5)
        gradients = [unpack(call.output(name)) for name in ("dq", "dk", "dv")]
        heads_axis = "shd" if gradients[0].ndim == 3 else "bhsd" if keywords.get("perm", 1) else "bshd"
        result.output = (gradients[0], *(families.shared_heads(array, prob.nhead_k, heads_axis) for array in gradients[1:]))
        for extra in ("dbias", "d_sink"):
            if extra in call.outputs:
                setattr(result, extra, call.output(extra))
        return result

    def _timed(self, call: Call, prob: FmhaProblem, options: dict[str, Any], products: float) -> FmhaResult:
        seconds = call.milliseconds * 1e-3
        if seconds <= 0:
            return FmhaResult(True, kernel=call.kernel)
        share = shapes.visible_pairs(prob, options["mask"], *options["window"]) / max(prob.seqlen_q * prob.seqlen_k, 1)
        tflops = prob.num_ops / seconds / 1e12
        return FmhaResult(True, time_ms=call.milliseconds, tflops=tflops, kernel=call.kernel, work_tflops=tflops * share * products)
