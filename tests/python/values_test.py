"""Values of every kind where another kind is needed: one sentence, and no exception from inside. Runs never raise."""

import unittest
from pathlib import Path

import numpy as np

import fmha
from common import random_arrays
from fmha import reference, values
from fmha.layer.keywords import KEYWORDS
from fmha_utils import FmhaProblem, FmhaRunner

PROBLEM = FmhaProblem(batch=2, nhead_q=2, nhead_k=2, seqlen_q=16, seqlen_k=16, hdim_q=32, hdim_v=32)
Q, K, V = random_arrays(5, PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape())
STRANGE = (-1, 2**31, 2**64, 1e300, float("nan"), float("inf"), "", "x", "\N{SNOWMAN}\0", b"x", [], [1, 2], {}, object(), np.zeros(0),
           np.zeros((2, 3)), np.zeros((2, 2, 16, 32), np.complex64), np.array("a"), np.array([None]), np.arange(3, dtype=np.int32) * 10**8)
# What Python and NumPy say of a value that nobody looked at.
FROM_INSIDE = ("truth value", "object is not", "has no attribute", "to unpack", "cannot convert", "could not convert", "argument must be",
               "cannot reshape", "index out of range", "not supported between", "size-1 arrays")
FAMILIES = (None, "fwd", "fwd_splitkv", "fwd_pagedkv", "fwd_appendkv", "batch_prefill")
OWN = ("mask_type", "bias_type", "has_lse", "has_dropout", "has_logits", "has_sink", "has_skip", "api_family", "data_type")


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runner = FmhaRunner.from_prebuilt("gfx950")

    def one_sentence(self, result, call):
        if result.success:
            return False
        self.assertFalse([words for words in FROM_INSIDE if words in result.error], f"{call}: {result.error}")
        self.assertLess(len(result.error), 1000, call)
        self.assertNotIn("\n", result.error, call)
        return True

    def test_every_keyword_of_every_family(self):
        refused = 0
        for family in FAMILIES:
            for name in (*sorted(KEYWORDS), *OWN):
                for value in STRANGE:
                    result = self.runner.run(Q, K, V, PROBLEM, **{"api_family": family, name: value})
                    refused += self.one_sentence(result, (family, name, value))
        self.assertGreater(refused, 2000)

    def test_backward(self):
        lse = np.zeros((2, 2, 16), np.float32)
        refused = 0
        for name in (*sorted(KEYWORDS), "mask_type", "bias_type", "has_dropout", "has_dbias", "is_deterministic", "is_group_mode", "data_type",
                     "is_store_randval"):
            for value in STRANGE:
                refused += self.one_sentence(self.runner.run_bwd(Q, K, V, Q, lse, Q, PROBLEM, **{name: value}), ("bwd", name, value))
        self.assertGreater(refused, 400)

    def test_arrays_of_backward(self):
        for place in range(6):
            for value in (*STRANGE, None):
                for told in ({}, {"is_group_mode": 1}, {"is_group_mode": 1, "perm": 0}):
                    arrays = [Q, K, V, Q, np.zeros((2, 2, 16), np.float32), Q]
                    if "perm" in told:
                        arrays = [array.swapaxes(1, 2) if array.ndim == 4 else array for array in arrays]
                    arrays[place] = value
                    self.assertTrue(self.one_sentence(self.runner.run_bwd(*arrays, PROBLEM, **told), (place, value, told)), (place, value, told))

    def test_caches(self):
        for name in ("k_cache", "v_cache", "cache_seqlens", "block_table"):
            for value in STRANGE:
                if name == "cache_seqlens" and isinstance(value, list) and value:
                    continue  # which is right
                for paged in (0, 1):
                    told = {"k_cache": K, "v_cache": V, "cache_seqlens": [0, 0], "seqlen_knew": 2, "paged_kv": paged, name: value}
                    call = (name, value, paged)
                    self.assertTrue(self.one_sentence(self.runner.run(Q, K[:, :, :2], V[:, :, :2], PROBLEM, api_family="appendkv", **told), call), call)

    def test_arrays(self):
        for place in range(3):
            for value in (*STRANGE, None):
                for family in FAMILIES:
                    if (family, place) == ("fwd_appendkv", 0):
                        continue  # which rotates no queries here, and does not look at them
                    arrays = [Q, K, V]
                    arrays[place] = value
                    result = self.runner.run(*arrays, PROBLEM, api_family=family)
                    self.assertTrue(self.one_sentence(result, (family, place, value)), (family, place, value))

    def test_none_is_what_was_not_given(self):
        plain = self.runner.run(Q, K, V, PROBLEM)
        again = self.runner.run(Q, K, V, PROBLEM, p_drop=None, seed=None, logits_soft_cap=None, window_left=None, perm=None, page_size=None)
        self.assertTrue(again.success, again.error)
        self.assertEqual(plain.output.tobytes(), again.output.tobytes())

    def test_pages_of_batch_prefill(self):
        problem = FmhaProblem(1, 2, 2, 16, 16, 128, 128)
        arrays = random_arrays(5, problem.q_shape(), problem.k_shape(), problem.v_shape())
        for size in (1, 4, 12):
            self.assertIn(f"page_size is {size}; vectorized pages need a multiple of 8",
                          self.runner.run(*arrays, problem, api_family="batch_prefill", kv_layout="vectorized", page_size=size).error)
        self.assertIn("k has shape [16, 128]; needed: [any, any, any, any]",
                      self.runner.run(arrays[0][0].swapaxes(0, 1), arrays[1][0, 0], arrays[2][0, 0], problem, api_family="batch_prefill",
                                      seqstart_q=np.array([0, 16], np.int32), kv_indptr=np.array([0, 1], np.int32), kv_layout="linear").error)


class Functions(unittest.TestCase):
    def test_options_of_attention(self):
        for name in ("mask", "window", "scale", "arch", "dropout", "data_type", "layout", "soft_cap", "sink"):
            for value in STRANGE:
                try:
                    fmha.attention(Q, K, V, **{name: value})
                except (ValueError, fmha.Error) as error:
                    self.assertFalse([words for words in FROM_INSIDE if words in str(error)], f"{name}={value!r}: {error}")

    def test_texts_and_paths_reach_the_library_whole(self):
        """C ends a text at a NUL: a filter lost its second half, and kept more kernels."""
        with fmha.Context(fmha.load(), "gfx950") as context:
            with self.assertRaisesRegex(ValueError, "^where is .*; a text without a NUL is needed"):
                context.keep("c.hdim_q == 128\0 and c.hdim_v == 64")
        for arch in ("gfx950\0x", 5):
            for call in (lambda: fmha.Context(fmha.load(), arch), lambda: reference.attention(Q, K, V, data_type="fp16", arch=arch)):
                self.assertRaisesRegex(ValueError, "^arch is ", call)
        for folder in ("", b"", "a\0b", 5):
            self.assertRaisesRegex(ValueError, "^kernels_dir is .*; a path is needed", lambda: fmha.Context(fmha.load(), kernels_dir=folder))
        for folder in ("/none/\udcff", b"/none/\xff", Path("/none/\udcff")):
            self.assertRaisesRegex(fmha.Error, "/none/.*/manifest.json: No such file", lambda: fmha.Context(fmha.load(), kernels_dir=folder))

    def test_a_closed_context(self):
        context = fmha.Context(fmha.load(), "gfx950")
        context.close()
        for call in (context.kernels, lambda: context.keep("True"), lambda: fmha.attention(Q, K, V, context=context)):
            self.assertRaisesRegex(fmha.Error, "^BAD_ARGUMENT: the context is closed$", call)
        self.assertEqual(context.kernel_count(), 0)

    def test_what_is_asked_for(self):
        """By any spelling of yes and no; a word is neither."""
        for yes, no in ((True, False), (1, 0), (np.True_, np.False_), (True, None)):
            self.assertEqual(fmha.attention(Q, K, V, lse=yes).lse.shape, (2, 2, 16))
            self.assertIsNone(fmha.attention(Q, K, V, lse=no, randval=no).lse)
        with self.assertRaisesRegex(ValueError, "^randval is 'no'"):
            fmha.attention(Q, K, V, randval="no", dropout=(0.5, 1, 1))
        for name in ("dbias", "d_sink"):
            with self.assertRaisesRegex(ValueError, f"^{name} is 'no'"):
                fmha.attention_backward(Q, K, V, Q, np.zeros((2, 2, 16), np.float32), Q, **{name: "no"})

    def test_an_unknown_keyword_is_named(self):
        for call in (lambda: fmha.attention(Q, K, V, causl=True),
                     lambda: fmha.attention_backward(Q, K, V, Q, np.zeros((2, 2, 16), np.float32), Q, causl=True)):
            with self.assertRaisesRegex(ValueError, "^causl is no keyword of this call, and no length: seqstart_q, "):
                call()

    def test_windows_and_dropout_in_any_sequence(self):
        one = fmha.attention(Q, K, V, mask="generic", window=(3, 2), dropout=(0.25, 7, 1)).o
        other = fmha.attention(Q, K, V, mask="generic", window=np.array([3, 2]), dropout=[0.25, 7, 1]).o
        self.assertEqual(one.tobytes(), other.tobytes())
        with self.assertRaisesRegex(ValueError, r"window is \(1, 2, 3\); needed: \(left, right\)"):
            fmha.attention(Q, K, V, window=(1, 2, 3))
        with self.assertRaisesRegex(ValueError, r"dropout is 0.5; needed: \(probability, seed, offset\)"):
            fmha.attention(Q, K, V, dropout=0.5)


class Readers(unittest.TestCase):
    def test_flags(self):
        for value, expected in ((None, False), (0, False), (False, False), (1, True), (True, True), (np.bool_(True), True), (1.0, True)):
            self.assertIs(values.flag("f", value), expected)
        for value in (2, -1, "1", 0.5, float("nan"), [], np.zeros(2)):
            with self.assertRaisesRegex(ValueError, "^f is "):
                values.flag("f", value)

    def test_names_and_numbers(self):
        table = {"no": 0, "yes": 1}
        self.assertEqual([values.number_of(value, table, "w") for value in ("yes", 1, True, np.int64(0), 1.0)], [1, 1, 1, 0, 1])
        for value in ("maybe", 2, 0.5, None, b"no", float("inf"), [0]):
            with self.assertRaisesRegex(ValueError, "^w .* is not known; allowed: no, yes$"):
                values.number_of(value, table, "w")

    def test_a_value_is_shown_in_one_short_line(self):
        for value in (np.zeros((9, 9)), "x" * 999, object()):
            self.assertLessEqual(len(values.shown(value)), 80)
            self.assertNotIn("\n", values.shown(value))


if __name__ == "__main__":
    unittest.main()
