"""The runner: calls by the conventions of the dispatcher's Python layer."""

from __future__ import annotations

import threading
from typing import Any, Callable

import numpy as np

from fmha import families, formats
from fmha.calls import KV_LAYOUTS, KV_LOOKUPS, MASKS, QSCALES, ROPES, Call
from fmha.extents import require_shape
from fmha.layer import live, shapes
from fmha.layer.config import FmhaKernelConfig, FmhaProblem, checked_problem
from fmha.layer.keywords import API_FAMILIES, given, refuse_other_layouts, refuse_others_data, stored_bytes, wishes
from fmha.layer.quantize import quantised
from fmha.layer.results import FmhaResult
from fmha.library import Context, Error
from fmha.tensors import numpy_of, view_of
from fmha.values import flag, number_of, shown, text, whole_number

Planned = tuple[Call, shapes.Unpack]  # a call, and how its outputs come into the caller's layout


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
        live.add(self)

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
    def released(self) -> bool:
        """Whether `cleanup` has freed it."""
        return self._closed

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
        said = given(keywords)
        return self._guarded("Kernel", lambda: self._run(Q, K, V, checked_problem(prob), api_family, wish, said))

    def run_bwd(self, Q: Any, K: Any, V: Any, out: Any, LSE: Any, dO: Any, prob: FmhaProblem, data_type: str | None = None,
                mask_type: Any = None, bias_type: Any = None, has_dropout: Any = None, has_dbias: Any = None,
                is_deterministic: Any = None, is_group_mode: Any = None, is_store_randval: Any = None, tile_n0: int = 128,
                **keywords: Any) -> FmhaResult:
        """(dQ, dK, dV) from forward's output and LSE [B,Hq,Sq], natural logarithm. tile_n0 is the kernel's own."""
        wish = {"mask_type": mask_type, "bias_type": bias_type, "has_dropout": has_dropout, "data_type": data_type}
        more = {"dbias": has_dbias, "deterministic": is_deterministic, "group": is_group_mode, "randval": is_store_randval}
        said = given(keywords)
        return self._guarded("BWD kernel", lambda: self._run_bwd(Q, K, V, out, LSE, dO, checked_problem(prob), wish, more, said))

    def _guarded(self, what: str, run: Callable[[], FmhaResult]) -> FmhaResult:
        with self._lock:
            try:
                return run()
            except Error as error:
                return FmhaResult(False, error=f"{what} failed (rc={error.status}): {error}")
            except (ValueError, TypeError, RuntimeError, MemoryError) as error:
                return FmhaResult(False, error=f"{what} failed: {error}")

    def _run(self, q: Any, k: Any, v: Any, prob: FmhaProblem, api: str | None, wish: dict[str, Any],
             keywords: dict[str, Any]) -> FmhaResult:
        family = text("api_family", api if api is not None else self.config.family if self.config is not None else "fwd")
        if family not in API_FAMILIES:
            raise ValueError(f"api_family {shown(family)} is not known; allowed: {', '.join(API_FAMILIES)}"
                             + ("; gradients are run_bwd's" if family.startswith("bwd") else ""))
        context = self._opened()
        name = API_FAMILIES[family]
        refuse_others_data(name, keywords)
        wish = wishes(name, self.config, wish, keywords)
        refuse_other_layouts(name, prob, keywords)
        if name == "appendkv":
            return self._append(context, q, k, v, prob, wish, keywords)
        wish["options"] |= {"lse": flag("lse", keywords.get("lse", wish["has_lse"])), "soft_cap": keywords.get("logits_soft_cap", 0.0),
                            "sink": keywords.get("sink_size", 0)}
        call, unpack = getattr(self, f"_{name}")(context, q, k, v, prob, wish["options"], keywords)
        call.run(self.WARM_UP, self.REPEATS)
        result = self._timed(call, prob, wish["options"], products=1)
        result.output = unpack.rows(call.output("o"))
        for extra in ("lse", "randval"):
            if extra in call.outputs:
                setattr(result, extra, unpack.heads(call.output(extra)))
        return result

    def _group(self, keywords: dict[str, Any]) -> bool:
        configured = self.config is not None and self.config.mode == "group"
        return flag("is_group_mode", keywords.get("is_group_mode", configured)) or keywords.get("seqstart_q") is not None

    def _placed(self, q: Any, k: Any, v: Any, prob: FmhaProblem, keywords: dict[str, Any], v_column: bool = False) -> tuple:
        """Q, K and V as a family takes them; their layout, their lengths and a bias that is packed as they are; and how outputs come back."""
        heads_first = flag("perm", keywords.get("perm", 1))
        if "seqlens_k" in keywords and "seqlen_k" in keywords:
            raise ValueError("seqlens_k and seqlen_k are both given; at most one is allowed")
        lengths = {name.replace("seqlens", "seqlen"): keywords[name] for name in
                   ("seqstart_q", "seqstart_k", "seqlen_q", "seqlen_k", "seqlens_k", "max_seqlen_q", "max_seqlen_k", "min_seqlen_q")
                   if name in keywords}
        is_packed = "seqstart_q" in lengths
        shapes.check_shapes({"Q": q, "K": k, "V": v}, shapes.expected_shapes(prob, heads_first, v_column, is_packed))
        if is_packed:
            return (q, k, v), {"layout": "shd", **lengths}, shapes.Unpack()
        if not self._group(keywords):
            return (q, k, v), {"layout": "bhsd" if heads_first else "bshd", **lengths}, shapes.Unpack()
        if v_column:
            raise ValueError("is_group_mode packs V [B,H,S,D]; give column-major values packed, with seqstart_q and seqstart_k")
        if not heads_first:
            q, k, v = (shapes.turned(array) for array in (q, k, v))
        lengths |= {"seqstart_q": shapes.evenly(prob.batch, prob.seqlen_q), "seqstart_k": shapes.evenly(prob.batch, prob.seqlen_k),
                    "bias": shapes.packed_table(keywords.get("bias"), prob)}
        return (tuple(shapes.packed(array) for array in (q, k, v)), {"layout": "shd", **lengths},
                shapes.Unpack(prob.batch, not heads_first))

    def _fwd(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
             keywords: dict[str, Any]) -> Planned:
        column = not flag("is_v_rowmajor", keywords.get("is_v_rowmajor", self.config is None or self.config.vlayout == "r"))
        arrays, placed, unpack = self._placed(q, k, v, prob, keywords, column)
        randval = flag("randval", keywords.get("randval"))
        drop = (keywords.get("p_drop", 0.0), keywords.get("seed", 0), keywords.get("offset", 0))
        scales = self._scales(keywords)
        if options["data_type"].startswith("mx") and number_of(scales["qscale"], QSCALES, "qscale_type") == 0:
            scales["qscale"] = "mx"
        return families.forward(context, self.arch, *arrays, v_column=column, randval=randval, dropout=drop, **scales,
                                **(options | placed)), unpack

    def _splitkv(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
                 keywords: dict[str, Any]) -> Planned:
        splits = keywords.get("num_splits", 4)
        if self._paged(keywords):
            arrays, placed, unpack = self._paged_arrays(q, k, v, prob, keywords)
        else:
            arrays, placed, unpack = self._placed(q, k, v, prob, keywords)
        return families.splitkv(context, self.arch, *arrays, num_splits=splits, **self._scales(keywords), **(options | placed)), unpack

    def _pagedkv(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, options: dict[str, Any],
                 keywords: dict[str, Any]) -> Planned:
        arrays, placed, unpack = self._paged_arrays(q, k, v, prob, keywords)
        return families.paged(context, self.arch, *arrays, **self._scales(keywords), **(options | placed)), unpack

    def _paged(self, keywords: dict[str, Any]) -> bool:
        """Whether the call is over pages, as it says, or the configuration, or a table that is there."""
        has_table = keywords.get("block_table") is not None
        paged = flag("paged_kv", keywords.get("paged_kv", has_table or (self.config is not None and self.config.paged_kv)))
        if has_table and not paged:
            raise ValueError("paged_kv is 0, and block_table is given; they go together")
        return paged

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
        heads_first = flag("perm", keywords.get("perm", 1))
        expected = shapes.expected_shapes(prob, heads_first, False, False)
        if keywords.get("block_table") is not None:
            placed = {"block_table": keywords["block_table"], "seqlens_k": keywords.get("seqlens_k")}
            if keywords.get("seqstart_q") is not None:
                return (q, k, v), {"layout": "shd", "seqstart_q": keywords["seqstart_q"], **placed}, shapes.Unpack()
            shapes.check_shapes({"Q": q}, expected)
            return (q, k, v), {"layout": "bhsd" if heads_first else "bshd", **placed}, shapes.Unpack()
        if keywords.get("seqstart_q") is not None:
            raise ValueError("seqstart_q packs the rows of Q; it needs K and V in pages, and a block_table")
        shapes.check_shapes({"Q": q, "K": k, "V": v}, expected)
        if not heads_first:
            q, k, v = (shapes.turned(array) for array in (q, k, v))
        size = self._page_size(keywords, 128)
        lengths = keywords.get("seqlens_k", np.full(prob.batch, prob.seqlen_k, np.int32))
        if (most := shapes.most("seqlen_k", lengths)) > prob.seqlen_k:  # the rest of a page would count
            raise ValueError(f"seqlens_k has {most}; K has {prob.seqlen_k} keys an entry")
        placed = {"block_table": shapes.identity_table(prob.batch, prob.seqlen_k, size), "seqlens_k": lengths}
        pages = (shapes.paged(k, size), shapes.paged(v, size))
        if not self._group(keywords):
            return (q, *pages), {"layout": "bhsd", **placed}, shapes.Unpack(0, not heads_first)
        placed |= {"seqstart_q": shapes.evenly(prob.batch, prob.seqlen_q), "bias": shapes.packed_table(keywords.get("bias"), prob)}
        return (shapes.packed(q), *pages), {"layout": "shd", **placed}, shapes.Unpack(prob.batch, not heads_first)

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
        unpack, heads_first = shapes.Unpack(), flag("perm", keywords.get("perm", 1))
        if "block_table" in named or "kv_indptr" in named:
            if keywords.get("seqstart_q") is None:
                raise ValueError("a table of pages needs seqstart_q: where the rows of each entry begin in Q [tokens, heads, channels]")
            rows, starts, pages = q, keywords["seqstart_q"], (k, v)
        elif named or keywords.get("seqstart_q") is not None:
            alone = next(iter(named), "seqstart_q")
            raise ValueError(f"{alone} belongs to K and V in pages, which need kv_indptr or block_table")
        else:
            shapes.check_shapes({"Q": q, "K": k, "V": v}, shapes.expected_shapes(prob, heads_first, False, False))
            if not heads_first:
                q, k, v = (shapes.turned(array) for array in (q, k, v))
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
            unpack = shapes.Unpack(prob.batch, not heads_first)
            options = {**options, "bias": shapes.packed_table(options["bias"], prob)}
        call = families.batch_prefill(context, self.arch, rows, *pages, page_size=size, page_count=view_of(pages[0]).shape[0],
                                      seqstart_q=starts, kv_layout=layout, max_seqlen_k=prob.seqlen_k, qscale=qscale, **scales, **named,
                                      **options)
        return call, unpack

    def _caches(self, k: Any, v: Any, prob: FmhaProblem, keywords: dict[str, Any]) -> tuple[list[Any], Any, Any, int]:
        """Copies of the caller's caches, or else empty ones as long as the new tokens; the keys that entries have; the table, of pages of the
        caller or of those that caches [B,H,S,D] are cut into; and how many keys such caches have, else 0."""
        said = [name for name in ("k_cache", "v_cache", "cache_seqlens") if name in keywords]
        if said and len(said) < 3:
            raise ValueError(f"{' and '.join(said)} given without the rest of k_cache, v_cache and cache_seqlens; they go together")
        table, lengths = keywords.get("block_table"), keywords.get("cache_seqlens", np.zeros(prob.batch, np.int32))
        if table is not None and not said:
            raise ValueError("block_table needs k_cache and v_cache, which are the pages, and cache_seqlens")
        if said:
            caches = [array if shapes.is_device(array) else np.array(numpy_of(view_of(array)))
                      for array in (keywords["k_cache"], keywords["v_cache"])]
        else:
            caches = [np.zeros(view_of(array).shape, view_of(array).dtype) for array in (k, v)]
        if not self._paged(keywords) or table is not None:
            return caches, lengths, table, 0
        require_shape("k_cache", caches[0], prob.batch, prob.nhead_k, None, prob.hdim_q)
        keys, tokens = view_of(caches[0]).shape[2], view_of(k).shape[2]
        require_shape("v_cache", caches[1], prob.batch, prob.nhead_k, keys, prob.hdim_v)
        if (most := shapes.most("cache_seqlens", lengths)) + tokens > keys:  # the rest of a page would take them
            raise ValueError(f"an entry has {most} keys and is to get {tokens}; its cache has room for {keys}")
        size = self._page_size(keywords, 128)
        return [shapes.paged(cache, size) for cache in caches], lengths, shapes.identity_table(prob.batch, keys, size), keys

    def _append(self, context: Context, q: Any, k: Any, v: Any, prob: FmhaProblem, wish: dict[str, Any],
                keywords: dict[str, Any]) -> FmhaResult:
        """K and V are the new tokens. Without k_cache, v_cache and cache_seqlens the cache is empty and as long as they are."""
        tokens = whole_number("seqlen_knew", keywords.get("seqlen_knew", prob.seqlen_k))
        new = {"K": (prob.batch, prob.nhead_k, tokens, prob.hdim_q), "V": (prob.batch, prob.nhead_k, tokens, prob.hdim_v)}
        shapes.check_shapes({"K": k, "V": v}, new)
        if wish["has_lse"]:
            raise ValueError("has_lse is 1, and appendkv computes no LSE; allowed: 0")
        caches, lengths, table, keys = self._caches(k, v, prob, keywords)
        rope = keywords.get("rope_type", self.config.rope if self.config else 0)
        rotates = number_of(rope, ROPES, "rope_type") != 0
        for name in ("rotary_cos", "rotary_sin"):
            if rotates != (keywords.get(name) is not None):
                raise ValueError(f"rope_type is {shown(rope)}, and {name} is {'not given' if rotates else 'given'}; they go together")
        rotated = q if flag("q_rotate", keywords.get("q_rotate", rotates)) else None
        if rotated is not None:
            shapes.check_shapes({"Q": q}, {"Q": prob.q_shape()})
            rotated = rotated if shapes.is_device(rotated) else np.array(numpy_of(view_of(rotated)))
        call = families.append(context, self.arch, *caches, k, v, data_type=wish["data_type"], q=rotated, nhead_q=prob.nhead_q,
                               seqlens_k=lengths, rope=rope,
                               rotary_cos=keywords.get("rotary_cos"), rotary_sin=keywords.get("rotary_sin"),
                               has_mask=bool(number_of(wish["mask_type"], MASKS, "mask_type")), block_table=table, stream=keywords.get("stream"))
        call.run(0, 1)  # once: it works in place
        host = {name: cache if shapes.is_device(cache) else call.output(name) for name, cache in zip("kv", caches)}
        if keys:
            host = {name: shapes.unpaged(pages, prob.batch, keys) for name, pages in host.items()}
        result = FmhaResult(True, np.zeros(prob.o_shape(), np.float32), call.milliseconds, kernel=call.kernel, k_cache=host["k"],
                            v_cache=host["v"])
        if rotated is not None:
            result.q_rotated = rotated if shapes.is_device(rotated) else call.output("q")
        return result

    def _run_bwd(self, q: Any, k: Any, v: Any, o: Any, lse: Any, d_o: Any, prob: FmhaProblem, wish: dict[str, Any],
                 more: dict[str, Any], keywords: dict[str, Any]) -> FmhaResult:
        config = self.config or FmhaKernelConfig()
        context = self._opened()
        refuse_others_data("bwd", keywords)
        options = wishes("bwd", self.config, wish, keywords)["options"]
        refuse_other_layouts("bwd", prob, keywords)
        randval = stored_bytes(self.config, more["randval"], keywords)
        if more["group"] is not None:
            keywords = {**keywords, "is_group_mode": more["group"]}
        (q, k, v), placed, unpack = self._placed(q, k, v, prob, keywords)
        if unpack.entries:
            turn = shapes.turned if unpack.turned else lambda array: array
            b, h, s, d = prob.o_shape()
            for what, array, shape in (("out", o, (b, s, h, d) if unpack.turned else (b, h, s, d)),
                                       ("dO", d_o, (b, s, h, d) if unpack.turned else (b, h, s, d)), ("LSE", lse, (b, h, s))):
                require_shape(what, array, *shape)
            o, d_o, lse = shapes.packed(turn(o)), shapes.packed(turn(d_o)), shapes.packed_heads(lse, prob.batch)
            randval = shapes.packed_table(randval, prob)
        drop = (keywords.get("p_drop", 0.0), keywords.get("seed", 0), keywords.get("offset", 0))
        wants = {name: flag(name, configured if more[name] is None else more[name])
                 for name, configured in (("dbias", config.dbias), ("deterministic", config.deterministic))}
        wants["d_sink"] = keywords.get("sink_logit") is not None
        call = families.backward(context, self.arch, q, k, v, o, lse, d_o, dropout=drop, randval=randval, **wants, **(options | placed))
        call.run(0, 1)  # once: gradients are added to what a launch finds
        result = self._timed(call, prob, options, products=2.5)
        gradients = [unpack.rows(call.output(name)) for name in ("dq", "dk", "dv")]
        heads_axis = "shd" if gradients[0].ndim == 3 else "bhsd" if keywords.get("perm", 1) else "bshd"
        result.output = (gradients[0], *(families.shared_heads(array, prob.nhead_k, heads_axis) for array in gradients[1:]))
        for extra, told in (("dbias", unpack.heads), ("d_sink", np.asarray)):
            if extra in call.outputs:
                setattr(result, extra, told(call.output(extra)))
        return result

    def _timed(self, call: Call, prob: FmhaProblem, options: dict[str, Any], products: float) -> FmhaResult:
        seconds = call.milliseconds * 1e-3
        if seconds <= 0:
            return FmhaResult(True, kernel=call.kernel)
        share = shapes.visible_pairs(prob, options["mask"], *options["window"]) / max(prob.seqlen_q * prob.seqlen_k, 1)
        tflops = prob.num_ops / seconds / 1e12
        return FmhaResult(True, time_ms=call.milliseconds, tflops=tflops, kernel=call.kernel, work_tflops=tflops * share * products)
