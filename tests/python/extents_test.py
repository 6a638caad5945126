"""Arrays, numbers and objects that do not fit a call: each is refused with one sentence, before a kernel reads beyond its end."""

import tempfile
import unittest

import numpy as np

import fmha
from client import ARCH, Client, data_of, problem_of, single
from common import random_arrays, softmax_attention
from fmha import families
from fmha_utils import FmhaKernelConfig, FmhaProblem, FmhaRunner, cpu_attention_fwd, quantize_pack_pertensor, setup_fmha_dispatcher

PROB = problem_of(2, 2, 32)
Q, K, V = data_of(PROB)
PACKED = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(64, 2, 128) for array in (Q, K, V)]
STARTS = {"seqstart_q": [0, 32, 64], "seqstart_k": [0, 32, 64]}
PAGES = [np.ascontiguousarray(array.reshape(2, 2, 2, 16, 128).transpose(0, 2, 1, 3, 4)).reshape(4, 2, 16, 128) for array in (K, V)]


class Refusals(Client):
    @classmethod
    def setUpClass(cls):
        cls.all = FmhaRunner.from_prebuilt(ARCH)

    def refused(self, words, *arrays, prob=PROB, runner=None, **keywords):
        told = (runner or self.all).run(*(arrays or (Q, K, V)), prob, **keywords)
        self.assertFalse(told.success, words)
        self.assertIn(words, told.error)

    def test_lengths_have_a_number_an_entry(self):
        paged = {"api_family": "pagedkv", "page_size": 128}
        for given, words in (([5], "seqlen_k has shape [1]; needed: [2]"), ([5, 6, 7], "has shape [3]"), ([[5, 6]], "has shape [1, 2]"),
                             ([5.5, 6.5], "seqlen_k holds float64 values; needed: whole numbers"), ([2**32 + 5, 6], "seqlen_k holds 4294967301; allowed: -2147483648 to 2147483647"),
                             ([-(2**31) - 1, 6], "seqlen_k holds -2147483649; allowed: -2147483648 to 2147483647")):
            self.refused(words, **paged, seqlens_k=given)
        self.refused("needs seqlens_k", **paged, block_table=[[0], [1]])
        self.refused("seqlen_q has shape [1]; needed: [2]", *PACKED, **STARTS, seqlen_q=[3])
        for name in ("fwd", "splitkv"):
            self.refused("seqlen_k has shape [1]", api_family=name, seqlens_k=[3])

    def test_sequences_end_within_their_arrays(self):
        self.refused("seqstart_q ends at 96; the array has 64 positions", *PACKED, **STARTS | {"seqstart_q": [0, 32, 96]})
        self.refused("seqstart_k ends at 96; the array has 64 positions", *PACKED, **STARTS | {"seqstart_k": [0, 32, 96]})
        self.refused("seqstart_k has shape [2]; needed: [3]", *PACKED, **STARTS | {"seqstart_k": [0, 32]})
        self.refused("seqstart_q has shape []", *PACKED, seqstart_q=3, seqstart_k=3)

    def test_arrays_of_heads(self):
        for name in ("alibi_slopes", "sink_logit"):
            bias = {"bias_type": 2} if name == "alibi_slopes" else {}
            self.refused(f"{name} has shape [1]; needed: [2]", **bias, **{name: np.ones(1)})
        self.refused("alibi_slopes has shape [1, 2]; needed: [2, 2]", bias_type=2, alibi_slopes=np.ones((1, 2)))

    def test_descales(self):
        scaled = {"data_type": "fp8bf16", "qscale_type": 2}
        for name in ("q_descale", "k_descale", "v_descale"):
            factors = {other: np.ones((2, 2, 1)) for other in ("q_descale", "k_descale", "v_descale")} | {name: np.ones((1, 2, 1))}
            self.refused(f"{name} has shape [1, 2, 1]; needed: [2, 2, 1]", **scaled, **factors)
        self.refused("q_descale has 2 values; one factor", **scaled | {"qscale_type": 1}, q_descale=[1, 2], k_descale=1, v_descale=1)

    def test_tables_of_pages(self):
        prefill = {"api_family": "batch_prefill", "page_size": 16, "kv_layout": 1, "seqstart_q": [0, 32, 64]}
        table = {"kv_indptr": [0, 2, 4], "kv_page_indices": [0, 1, 2, 3], "kv_last_page_lens": [16, 16]}
        told = self.all.run(PACKED[0], *PAGES, PROB, **prefill, **table)
        self.assertTrue(told.success, told.error)
        rows = told.output.reshape(2, 32, 2, 128).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(rows, cpu_attention_fwd(*single((Q, K, V)), PROB.scale), atol=2e-3)
        for change, words in (({"kv_page_indices": [0, 1, 2]}, "kv_indptr ends at 4; the array has 3"), ({"kv_indptr": [0, 4]}, "kv_indptr has shape [2]"),
                              ({"kv_last_page_lens": [16]}, "kv_last_page_lens has shape [1]; needed: [2]"),
                              ({"kv_page_indices": [0, 1, 2, 9]}, "page 9"), ({"seqlens_k": [3, 4]}, "seqlen_k goes with block_table")):
            self.refused(words, PACKED[0], *PAGES, **prefill, **table | change)
        self.refused("a table of pages needs seqstart_q", PACKED[0], *PAGES, **prefill | {"seqstart_q": None}, **table)
        self.refused("seqlens_k belongs to K and V in pages", api_family="batch_prefill", seqlens_k=[3, 4])
        context = fmha.Context(fmha.load(), ARCH)
        for rows, layout, words in ((PACKED[0][0], "shd", "q has shape .*; needed: 3 axes, shd"), (Q, "shd", "q has shape .*; needed: 3 axes, shd"),
                                    (Q, "bhsd", "layout is bhsd; batch prefill takes packed queries")):
            with self.assertRaisesRegex(ValueError, words):
                families.batch_prefill(context, ARCH, rows, *PAGES, data_type="fp16", page_size=16, page_count=4, layout=layout,
                                       seqstart_q=[0, 32, 64], max_seqlen_k=32, **table)
        with self.assertRaisesRegex(ValueError, "9 pages of 16 keys"):
            families.batch_prefill(fmha.Context(fmha.load(), ARCH), ARCH, PACKED[0], *PAGES, data_type="fp16", page_size=16, page_count=9,
                                   seqstart_q=[0, 32, 64], max_seqlen_k=32, **table)

    def test_packed_rows_over_pages(self):
        pages = [np.zeros((2, 2, 128, 128), np.float16) for _ in range(2)]
        for pool, array in zip(pages, (K, V)):
            pool[::-1, :, :32] = array
        given = {"api_family": "pagedkv", "block_table": [[1], [0]], "seqlens_k": [32, 20], "seqstart_q": [0, 32, 64], "is_group_mode": 1}
        told = self.all.run(PACKED[0], *pages, PROB, **given)
        self.assertTrue(told.success, told.error)
        for b, keys in enumerate((32, 20)):
            expected = softmax_attention(Q[b : b + 1], K[b : b + 1, :, :keys], V[b : b + 1, :, :keys])[0][0]
            np.testing.assert_allclose(told.output[32 * b : 32 * b + 32].transpose(1, 0, 2), expected, atol=3e-3)
        self.refused("seqstart_q ends at 65", PACKED[0], *pages, **given | {"seqstart_q": [0, 32, 65]})

    def test_caches(self):
        prob = problem_of(2, 2, 1)
        q, k, v = data_of(prob)
        cache = np.zeros((2, 2, 16, 128), np.float16)
        given = {"api_family": "appendkv", "prob": prob, "k_cache": cache, "v_cache": cache.copy(), "cache_seqlens": [1, 12]}
        for change, words in (({"cache_seqlens": [1]}, "seqlens_k has shape [1]; needed: [2]"), ({"v_cache": cache[:, :, :8]}, "v has shape [2, 2, 8, 128]"),
                              ({"k_cache": cache[:, :1]}, "k has shape [2, 1, 16, 128]; needed: [any, 2, any, 128]"),
                              ({"k_cache": cache[:1], "v_cache": cache[:1]}, "k has 1 slots, and there are 2 entries")):
            self.refused(words, q, k, v, **given | change)
        table = np.ones((16, 64))
        for cos, sin, words in ((table, table[:1], "rotary_sin has shape [1, 64]; needed: [16, 64]"), (table[:4], table[:4], "rotary_cos has 4 positions; needed: 13"),
                                (table[0], table[0], "rotary_cos has shape [64]")):
            self.refused(words, q, k, v, rope_type=1, rotary_cos=cos, rotary_sin=sin, **given)
        def call(slots):
            return families.append(fmha.Context(fmha.load(), ARCH), ARCH, cache, cache.copy(), k, v, data_type="fp16", seqlens_k=[1, 2],
                                   cache_batch_idx=slots)
        with self.assertRaisesRegex(ValueError, "cache_batch_idx has 5; there are 2 slots"):
            call([5, 0])
        with self.assertRaisesRegex(ValueError, "cache_batch_idx has 2; there are 2 slots"):
            call([2, 0])
        self.assertEqual(call([1, 0]).args.place.page_count, 2)  # the library knows how many slots there are

    def test_what_backward_reads(self):
        lse = np.zeros((2, 2, 32), np.float32)
        for arrays, words in (((Q[:, :, :3], lse, Q), "o has shape [2, 2, 3, 128]"), ((Q, lse[:, :, :3], Q), "lse has shape [2, 2, 3]; needed: [2, 2, 32]"),
                              ((Q, lse, Q[:1]), "d_o has shape [1, 2, 32, 128]")):
            told = self.all.run_bwd(Q, K, V, *arrays, PROB)
            self.assertFalse(told.success)
            self.assertIn(words, told.error)
        told = self.all.run_bwd(Q, K, V, Q, lse, Q, PROB, has_dropout=True, p_drop=0.5, randval=np.zeros((2, 2, 32, 31), np.uint8))
        self.assertIn("randval has shape [2, 2, 32, 31]; needed: [2, 2, 32, 32]", told.error)

    def test_data_that_a_family_does_not_read(self):
        self.refused("splitkv takes no p_drop", api_family="splitkv", has_dropout=1, p_drop=0.2)
        self.refused("fwd takes no block_table", block_table=[[0], [1]])
        self.refused("pagedkv takes no k_cache", api_family="pagedkv", k_cache=K)
        told = self.all.run(Q, K, V, PROB, num_splits=4, page_size=1, kv_layout=0, kv_lookup=1, p_drop=0, qscale_type=0, verify_fp8=0)
        self.assertTrue(told.success, "settings of other families are the tile engine's habit")

    def test_numbers_keep_their_value(self):
        for keywords, words in (({"window_left": 2**64 + 3, "mask_type": 3}, "window_left is 18446744073709551619; allowed: "),
                                ({"window_left": "3", "mask_type": 3}, "window_left is '3'; a whole number is needed"),
                                ({"has_dropout": 1, "p_drop": 0.2, "seed": -1}, "seed is -1; allowed: 0 to 18446744073709551615"),
                                ({"has_dropout": 1, "p_drop": "x"}, "p_drop is 'x'; a number is needed"),
                                ({"api_family": "pagedkv", "page_size": "a"}, "page_size is 'a'; a whole number is needed"),
                                ({"api_family": "splitkv", "num_splits": 2.5}, "num_splits is 2.5; a whole number is needed")):
            self.refused(words, **keywords)
        told = self.all.run(Q, K, V, PROB, mask_type=np.int64(3), window_left=np.int64(3), window_right=np.int32(0))
        self.assertTrue(told.success, told.error)

    def test_problems(self):
        for prob, words in ((None, "prob is a NoneType; needed: FmhaProblem"), ({"batch": 1}, "prob is a dict"),
                            (FmhaProblem(-1, 2, 2, 32, 32, 128, 128), "prob.batch is -1; a size is 0 or more"),
                            (FmhaProblem("2", 2, 2, 32, 32, 128, 128), "prob.batch is '2'; a whole number is needed")):
            self.refused(words, prob=prob)
        self.assertTrue(self.all.run(Q, K, V, FmhaProblem(*(np.int64(size) for size in (2, 2, 2, 32, 32, 128, 128)))).success)


class Options(unittest.TestCase):
    """Of the functions on arrays: none is left out of a call without a word."""

    def test_options_without_effect_are_refused(self):
        context = fmha.Context(fmha.load(), "gfx950")
        o, lse = np.zeros_like(Q), np.zeros(Q.shape[:3], np.float32)
        cache = {"block_table": [[0], [1]], "seqlens_k": [9, 9], "data_type": "fp16"}
        pool = np.zeros((2, 2, 128, 128), np.float16)
        for call, words in ((lambda: fmha.attention(Q, K, V, window=(3, 0)), r"window \(3, 0\) is given without a mask"),
                            (lambda: fmha.attention_backward(Q, K, V, o, lse, o, window=(-1, 0)), r"window \(-1, 0\) is given without a mask"),
                            (lambda: fmha.attention(Q, K, V, seqstart_q=[0, 9, 32]), "seqstart_q says where packed sequences begin"),
                            (lambda: fmha.attention(Q, K, V, context=context, arch="gfx942"), "arch is 'gfx942', and the context has kernels of gfx950"),
                            (lambda: families.paged(context, "gfx950", Q, pool, pool, seqlen_k=[1, 1], **cache), "seqlens_k and seqlen_k are both given"),
                            (lambda: families.splitkv(context, "gfx950", Q, K, V, data_type="fp16", seqlens_k=[9, 9], seqlen_k=[9, 9]), "both given")):
            with self.assertRaisesRegex(ValueError, words):
                call()
        fmha.attention(Q, K, V, window=(-1, -1), context=context, arch="gfx950")

    def test_tables_have_a_column_for_every_key(self):
        starts = {"layout": "shd", "seqstart_q": [0, 5, 64], "seqstart_k": [0, 10, 64]}
        o, lse = np.zeros_like(PACKED[0]), np.zeros((2, 64), np.float32)
        bias = np.zeros((2, 64, 9), np.float16)
        words = "max_seqlen_k is 9; an entry has 54 keys"
        with self.assertRaisesRegex(ValueError, words):
            fmha.attention(*PACKED, **starts, max_seqlen_k=9, randval=True, dropout=(0.5, 1, 0))
        with self.assertRaisesRegex(ValueError, words):
            fmha.attention_backward(*PACKED, o, lse, o, **starts, max_seqlen_k=9, bias=bias, dbias=True)
        fmha.attention(*PACKED, **starts, max_seqlen_k=9, bias=bias, seqlen_k=[9, 3])
        fmha.attention(*PACKED, **starts, max_seqlen_k=9, bias=bias, cu_seqlen_k=[0, 9, 12])
        context = fmha.Context(fmha.load(), ARCH)
        options = {"data_type": "fp16", "page_size": 16, "page_count": 4, "seqstart_q": [0, 5, 64], "bias": bias, "max_seqlen_k": 9}
        listed = {"kv_indptr": [0, 2, 4], "kv_page_indices": [0, 1, 2, 3]}
        for place, keys in ((listed | {"kv_last_page_lens": [16, 3]}, 32), ({"block_table": [[0, 1], [2, 3]], "seqlens_k": [9, 20]}, 20)):
            with self.assertRaisesRegex(ValueError, f"max_seqlen_k is 9; an entry has {keys} keys"):
                families.batch_prefill(context, ARCH, PACKED[0], *PAGES, **options, **place)
        families.batch_prefill(context, ARCH, PACKED[0], *PAGES, **options, block_table=[[0], [2]], seqlens_k=[9, 2]).run()

    def test_a_table_over_no_key_has_no_column(self):
        q, k = PACKED[0], PACKED[1][:0]
        result = fmha.attention(q, k, k, layout="shd", seqstart_q=[0, 32, 64], seqstart_k=[0, 0, 0], bias=np.zeros((64, 0), np.float16), lse=True)
        self.assertTrue(np.isneginf(result.lse).all())

    def test_a_bias_over_a_cache_ends_with_the_longest_entry(self):
        context = fmha.Context(fmha.load(), ARCH)
        pool = random_arrays(24, (2, 2, 128, 128), (2, 2, 128, 128))
        (wide,) = random_arrays(25, (2, 2, 32, 128))
        cache = {"data_type": "fp16", "block_table": [[1], [0]], "seqlens_k": [40, 33]}
        for family in (families.paged, families.splitkv):
            full, cut = (family(context, ARCH, Q, *pool, bias=bias, **cache).run().output("o") for bias in (wide, wide[..., :40]))
            np.testing.assert_array_equal(full, cut)
            with self.assertRaisesRegex(ValueError, "does not broadcast"):
                family(context, ARCH, Q, *pool, bias=wide[..., :39], **cache)

    def test_flags_and_random_bytes(self):
        o, lse = np.zeros_like(Q), np.zeros(Q.shape[:3], np.float32)
        for keywords, words in (({"deterministic": "no"}, "deterministic is 'no'; a whole number"), ({"reduce_dk_dv": 2}, "reduce_dk_dv is 2; allowed: 0 and 1"),
                                ({"dropout": (0.5, 1, 0), "randval": np.zeros((2, 2, 32, 32))}, "float64 values are no random bytes; give uint8")):
            with self.assertRaisesRegex(ValueError, words):
                fmha.attention_backward(Q, K, V, o, lse, o, **keywords)
        with self.assertRaisesRegex(ValueError, "has_mask is 'x'"):
            families.append(fmha.Context(fmha.load(), ARCH), ARCH, K, V, K, V, data_type="fp16", seqlens_k=[0, 0], has_mask="x")


class Configurations(unittest.TestCase):
    def test_fields_of_another_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            for fields, words in (({"hdim_q": 0}, "hdim_q is 0; a head has 1 channel or more"), ({"hdim_v": -64}, "hdim_v is -64; a head"),
                                  ({"hdim_q": "64"}, "hdim_q is '64'; a whole number is needed"), ({"tile_m0": 1.5}, "tile_m0 is 1.5"),
                                  ({"pad_d": "x"}, "pad_d is 'x'"), ({"dropout_variant": None}, "dropout_variant is None; a text"),
                                  ({"gfx_arch": ""}, "gfx_arch is ''; a text such as 'gfx950'"), ({"gfx_arch": None}, "gfx_arch is None"),
                                  ({"family": "bwd_dq_dk_dv", "dropout_variant": "foo"}, "dropout_variant 'foo' is not known; allowed: no, dropout_wg16"),
                                  ({"qscale": "foo"}, "qscale 'foo' is not known; allowed: no, pertensor, "),
                                  ({"family": "fwd_appendkv", "rope": "foo"}, "rope 'foo' is not known; allowed: none, interleaved"),
                                  ({"hdim_q": 512, "hdim_v": 512}, "with hdim_q >= 512; there is 32, 64, 80, ")):
                told = setup_fmha_dispatcher(FmhaKernelConfig(**fields), folder)
                self.assertFalse(told.success, fields)
                self.assertIn(words, told.error)

    def test_numbers_of_numpy(self):
        config = FmhaKernelConfig(hdim_q=np.int64(64), hdim_v=np.int32(64), lse=np.bool_(False))
        same = FmhaKernelConfig(hdim_q=64, hdim_v=64)
        self.assertEqual((config.key, config.to_codegen_json()), (same.key, same.to_codegen_json()))
        with tempfile.TemporaryDirectory() as folder:
            told = setup_fmha_dispatcher(config, folder)
            self.assertTrue(told.success, told.error)

    def test_pages_have_keys(self):
        with self.assertRaisesRegex(ValueError, "page_size is 0; a page has 1 key or more"):
            quantize_pack_pertensor(Q, K, V, 0)
        with self.assertRaisesRegex(ValueError, "2 query heads are no multiple of 0 key heads"):
            cpu_attention_fwd(Q, K[:, :0], V[:, :0], 1.0)


class Quantised(Client):
    def test_verify_fp8_quantises_floats(self):
        arrays = random_arrays(3, (2, 2, 32, 128), (2, 2, 40, 128), (2, 2, 40, 128))
        prob = problem_of(2, 2, 32, seqlen_k=40)
        for name, number in (("pertensor", 1), ("per_token_head", 5)):
            for layout in ("linear", "vectorized"):
                runner = self.jit(family="batch_prefill", mode="group", data_type="fp8bf16", qscale=name, paged_kv=True, page_size=16,
                                  kv_memory_layout=layout)
                told = runner.run(*arrays, prob, qscale_type=number, verify_fp8=1)
                self.right(told, softmax_attention(*arrays)[0], 0.1)
                self.assertIn(name, told.kernel)
                self.assertIn("qscale needs q_descale", runner.run(*arrays, prob, qscale_type=number).error)


if __name__ == "__main__":
    unittest.main()
