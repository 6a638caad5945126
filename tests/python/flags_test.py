"""Flags of the runner and their data: a feature that is asked for is computed or refused, never left out."""

import unittest
import warnings

import numpy as np

from common import causal, random_arrays, softmax_attention
from fmha_utils import FmhaKernelConfig, FmhaProblem, FmhaRunner, setup_fmha_dispatcher

PROBLEM = FmhaProblem(batch=2, nhead_q=4, nhead_k=2, seqlen_q=33, seqlen_k=50, hdim_q=64, hdim_v=64)
Q, K, V = random_arrays(41, PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape())
LOGITS = np.float32([0.5, -1.0, 2.0, 0.0])


def runner_of(**fields):
    result = setup_fmha_dispatcher(FmhaKernelConfig(**{"hdim_q": 64, "hdim_v": 64, "gfx_arch": "gfx950"} | fields))
    assert result.success, result.error
    return result.runner


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = FmhaRunner.from_prebuilt("gfx950")

    def right(self, result, expected, limit=3e-3):
        self.assertTrue(result.success, result.error)
        np.testing.assert_allclose(result.output, expected, atol=limit)

    def refused(self, result, words):
        self.assertFalse(result.success)
        self.assertRegex(result.error, words)


class Sinks(Case):
    def test_a_configuration_with_sinks_needs_them(self):
        for family in ("fwd", "fwd_splitkv", "fwd_pagedkv"):
            self.refused(runner_of(sink=True, family=family).run(Q, K, V, PROBLEM),
                         "sink=True of the configuration needs sink_size or sink_logit")
        self.refused(runner_of().run(Q, K, V, PROBLEM, has_sink=True), "has_sink needs sink_size or sink_logit")
        self.refused(runner_of().run(Q, K, V, PROBLEM, has_sink=True, sink_size=np.int64(0)), "has_sink needs")

    def test_with_their_data_they_are_computed(self):
        weights = softmax_attention(Q, K, V)[2]
        lse = softmax_attention(Q, K, V)[1]
        share = 1 / (1 + np.exp(LOGITS[None, :, None] - lse))  # the sink's logit joins the denominator
        expected = (weights * share[..., None]) @ np.repeat(V, 2, 1).astype(np.float64)
        self.right(runner_of(sink=True).run(Q, K, V, PROBLEM, sink_logit=LOGITS), expected)
        seen = causal(33, 50) & ((np.arange(50)[None] >= np.arange(33)[:, None] - 3) | (np.arange(50)[None] < 2))
        self.right(runner_of(sink=True, mask="generic").run(Q, K, V, PROBLEM, mask_type=1, window_left=3, window_right=0, sink_size=2),
                   softmax_attention(Q, K, V, visible=seen)[0])

    def test_an_argument_wins_over_the_configuration(self):
        runner = runner_of(sink=True)
        self.right(runner.run(Q, K, V, PROBLEM, has_sink=0), softmax_attention(Q, K, V)[0])
        self.refused(runner.run(Q, K, V, PROBLEM, has_sink=0, sink_logit=LOGITS), "has_sink is 0, and sink_logit is given; they go together")

    def test_families_without_sinks(self):
        self.refused(self.all.run(Q, K, V, PROBLEM, api_family="appendkv", has_sink=1),
                     "has_sink needs sink_size or sink_logit, which appendkv does not take")
        for fields in ({"sink": True}, {"skip_min_seqlen_q": True}):
            told = setup_fmha_dispatcher(FmhaKernelConfig(family="bwd_dq_dk_dv", gfx_arch="gfx950", **fields))
            self.assertRegex(told.error, "Codegen failed: there is no kernel of gfx950 for bwd_dq_dk_dv, fp16, batch mode with (has_sink|skip)")


class Skipped(Case):
    def test_entries_of_few_rows(self):
        runner = runner_of(mode="group", skip_min_seqlen_q=True)
        self.refused(runner.run(Q, K, V, PROBLEM), "skip_min_seqlen_q=True of the configuration needs min_seqlen_q")
        self.right(runner.run(Q, K, V, PROBLEM, has_skip=0), softmax_attention(Q, K, V)[0])
        self.right(runner.run(Q, K, V, PROBLEM, min_seqlen_q=32), softmax_attention(Q, K, V)[0])
        result = runner.run(Q, K, V, PROBLEM, min_seqlen_q=33)
        self.right(result, np.zeros(PROBLEM.o_shape()))  # both entries
        self.refused(runner.run(Q, K, V, PROBLEM, has_skip=0, min_seqlen_q=33), "has_skip is 0, and min_seqlen_q is given")

    def test_both_names_of_the_flag(self):
        for name in ("has_skip", "skip_min_seqlen_q"):
            self.refused(self.all.run(Q, K, V, PROBLEM, **{name: 1}), "has_skip needs min_seqlen_q$")
        self.refused(self.all.run(Q, K, V, PROBLEM, has_skip=1, skip_min_seqlen_q=0), "they mean the same")

    def test_families_that_skip_nothing(self):
        for family in ("splitkv", "pagedkv", "batch_prefill"):
            self.refused(self.all.run(Q, K, V, PROBLEM, api_family=family, has_skip=1),
                         f"has_skip needs min_seqlen_q, which {family} does not take")
            self.refused(self.all.run(Q, K, V, PROBLEM, api_family=family, min_seqlen_q=5), f"{family} takes no min_seqlen_q")


class Layouts(Case):
    """What no shape tells where extents are equal."""

    def test_head_sizes_of_other_arrays(self):
        for name in ("traits_hdim_q", "traits_hdim_v"):
            for value in (0, 64):
                self.right(self.all.run(Q, K, V, PROBLEM, **{name: value}), softmax_attention(Q, K, V)[0])
            self.refused(self.all.run(Q, K, V, PROBLEM, **{name: 999}), f"{name} is 999, and the arrays have 64 channels; allowed: 0 and 64")

    def test_values_by_columns(self):
        problem = FmhaProblem(1, 2, 2, 64, 64, 64, 64)
        arrays = random_arrays(6, problem.q_shape(), problem.k_shape(), problem.v_shape())
        for family in ("splitkv", "pagedkv", "batch_prefill", "appendkv"):
            self.refused(self.all.run(*arrays, problem, api_family=family, is_v_rowmajor=0), f"is_v_rowmajor is 0, and {family} reads V")

    def test_a_table_and_its_flag(self):
        problem = FmhaProblem(1, 2, 2, 4, 128, 128, 128)
        arrays = random_arrays(6, problem.q_shape(), problem.k_shape(), problem.v_shape())
        told = {"api_family": "splitkv", "block_table": np.int32([[0]]), "seqlens_k": [100]}
        self.right(self.all.run(*arrays, problem, **told), softmax_attention(arrays[0], arrays[1][:, :, :100], arrays[2][:, :, :100])[0])
        self.refused(self.all.run(*arrays, problem, paged_kv=0, **told), "paged_kv is 0, and block_table is given")
        self.refused(self.all.run(*arrays, problem, api_family="pagedkv", seqlens_k=[129]), "seqlens_k has 129; K has 128 keys an entry")


class Backward(Case):
    ARGUMENTS = (Q, K, V, Q, np.zeros((2, 4, 33), np.float32), Q, PROBLEM)

    def test_stored_bytes(self):
        drop = {"has_dropout": 1, "p_drop": 0.5}
        kept = np.zeros((2, 4, 33, 50), np.uint8)
        self.refused(self.all.run_bwd(*self.ARGUMENTS, is_store_randval=True, **drop),
                     "is_store_randval is 1, and randval, forward's random bytes, is not given")
        self.refused(self.all.run_bwd(*self.ARGUMENTS, is_store_randval=False, randval=kept, **drop), "is_store_randval is 0, and randval")
        runner = runner_of(family="bwd_dq_dk_dv", dropout=True, dropout_variant="dropout_wg16_storerandval")
        self.refused(runner.run_bwd(*self.ARGUMENTS, **drop), "is_store_randval is 1")
        self.assertTrue(runner.run_bwd(*self.ARGUMENTS, randval=kept, **drop).success)

    def test_sink_logits_have_gradients(self):
        o, lse, _ = softmax_attention(Q, K, V)
        total = np.logaddexp(lse, LOGITS[None, :, None])  # LSE counts the sink
        share = np.exp(lse - total)
        o = o * share[..., None]
        result = self.all.run_bwd(Q, K, V, o.astype(np.float16), total.astype(np.float32), Q, PROBLEM, sink_logit=LOGITS)
        self.assertTrue(result.success, result.error)
        expected = -((1 - share) * (o * Q.astype(np.float64)).sum(-1)).sum((0, 2))
        np.testing.assert_allclose(result.d_sink, expected, rtol=2e-2, atol=2e-2)
        self.assertIsNone(self.all.run_bwd(*self.ARGUMENTS).d_sink)


class Words(Case):
    def test_lse_by_two_names(self):
        self.refused(self.all.run(Q, K, V, PROBLEM, has_lse=0, lse=True), "has_lse is 0, and lse is 1; they mean the same")
        self.assertEqual(self.all.run(Q, K, V, PROBLEM, has_lse=1, lse=True).lse.shape, (2, 4, 33))
        self.refused(self.all.run(Q, K, V, PROBLEM, api_family="appendkv", has_lse=1), "appendkv computes no LSE")

    def test_a_warning_names_the_line_of_the_caller(self):
        for call in (lambda: self.all.run(Q, K, V, PROBLEM, causl=1), lambda: self.all.run_bwd(*Backward.ARGUMENTS, causl=1)):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                call()
            self.assertEqual([warning.filename for warning in seen], [__file__])

    def test_flags_of_a_configuration(self):
        self.assertEqual(setup_fmha_dispatcher(FmhaKernelConfig(lse=2)).error, "lse is 2; allowed: 0 and 1")


if __name__ == "__main__":
    unittest.main()
