"""Arrays of the runner go in and come out as the caller has them, whatever a family packs or cuts into pages."""

import unittest

import numpy as np

from common import DlTensor, random_arrays, softmax_attention, softmax_gradients
from flags_test import Case, runner_of
from fmha_utils import FmhaProblem

PROBLEM = FmhaProblem(batch=2, nhead_q=4, nhead_k=2, seqlen_q=33, seqlen_k=50, hdim_q=64, hdim_v=64)
Q, K, V, D_O = random_arrays(43, PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape(), PROBLEM.o_shape())
(BIAS,) = random_arrays(44, (2, 4, 33, 50))


def turned(array):
    return array.transpose(0, 2, 1, 3)


class Group(Case):
    """Sequences of one length, which the runner packs."""

    def test_lse_and_random_bytes(self):
        drop = {"has_dropout": 1, "p_drop": 0.25, "seed": 7, "randval": True, "lse": True}
        batch, group = (self.all.run(Q, K, V, PROBLEM, is_group_mode=mode, **drop) for mode in (0, 1))
        self.assertTrue(batch.success and group.success, batch.error + group.error)
        self.assertEqual((group.lse.shape, group.randval.shape), ((2, 4, 33), (2, 4, 33, 50)))
        for name in ("output", "lse", "randval"):
            np.testing.assert_array_equal(getattr(group, name), getattr(batch, name))

    def test_forward_feeds_backward(self):
        forward = self.all.run(Q, K, V, PROBLEM, is_group_mode=1, lse=True)
        result = self.all.run_bwd(Q, K, V, forward.output, forward.lse, D_O, PROBLEM, is_group_mode=True)
        self.assertTrue(result.success, result.error)
        for got, expected in zip(result.output, softmax_gradients(Q, K, V, D_O)):
            np.testing.assert_allclose(got, expected, atol=5e-3)
        self.refused(self.all.run_bwd(Q, K, V, forward.output, forward.lse.swapaxes(0, 1).reshape(4, 66), D_O, PROBLEM, is_group_mode=True),
                     r"LSE has shape \[4, 66\]; needed: \[2, 4, 33\]")
        self.refused(self.all.run_bwd(Q, K, V, forward.output.reshape(1, 4, 66, 64), forward.lse, D_O, PROBLEM, is_group_mode=True), "out has shape")

    def test_an_argument_wins_over_the_configuration(self):
        runner = runner_of(family="bwd_dq_dk_dv", mode="group")
        self.refused(runner.run_bwd(Q, K, V, Q, np.zeros((2, 4, 33), np.float32), D_O, PROBLEM, is_group_mode=False), "bwd fp16 batch")

    def test_bias_of_any_shape_that_broadcasts(self):
        for family in ("fwd", "splitkv", "pagedkv", "batch_prefill"):
            for bias in (BIAS, BIAS[:1, :1], BIAS[0, 1]):
                told = {} if family == "batch_prefill" else {"is_group_mode": 1}
                result = self.all.run(Q, K, V, PROBLEM, api_family=family, bias_type=1, bias=bias, page_size=16, **told)
                self.right(result, softmax_attention(Q, K, V, bias=bias.astype(np.float64))[0])

    def test_gradient_of_the_bias(self):
        o, lse, _ = softmax_attention(Q, K, V, bias=BIAS.astype(np.float64))
        batch, group = (self.all.run_bwd(Q, K, V, o.astype(np.float16), lse.astype(np.float32), D_O, PROBLEM, is_group_mode=mode, bias_type=1,
                                         bias=BIAS, has_dbias=True) for mode in (False, True))
        self.assertTrue(group.success, group.error)
        np.testing.assert_array_equal(group.dbias, batch.dbias)

    def test_random_bytes_of_forward(self):
        drop = {"has_dropout": 1, "p_drop": 0.25, "seed": 7}
        forward = self.all.run(Q, K, V, PROBLEM, randval=True, lse=True, **drop)
        batch, group = (self.all.run_bwd(Q, K, V, forward.output, forward.lse, D_O, PROBLEM, is_group_mode=mode, randval=forward.randval, **drop)
                        for mode in (False, True))
        self.assertTrue(batch.success and group.success, batch.error + group.error)
        for one, other in zip(group.output, batch.output):
            np.testing.assert_array_equal(one, other)

    def test_packed_bias_of_split_kv(self):
        rows = [np.ascontiguousarray(turned(array)).reshape(-1, array.shape[1], 64) for array in (Q, K, V)]
        packed = np.ascontiguousarray(BIAS.swapaxes(0, 1)).reshape(4, 66, 50)
        told = {"seqstart_q": [0, 33, 66], "seqstart_k": [0, 50, 100], "bias_type": 1, "bias": packed, "api_family": "splitkv"}
        result = self.all.run(*rows, PROBLEM, **told)
        self.assertTrue(result.success, result.error)
        expected = softmax_attention(Q, K, V, bias=BIAS.astype(np.float64))[0]
        np.testing.assert_allclose(result.output, turned(expected).reshape(66, 4, 64), atol=3e-3)


class Empty(Case):
    def test_no_queries_and_no_keys(self):
        for rows, keys in ((0, 50), (33, 0), (0, 0)):
            problem = FmhaProblem(2, 4, 2, rows, keys, 64, 64)
            arrays = [np.zeros(shape, np.float16) for shape in (problem.q_shape(), problem.k_shape(), problem.v_shape())]
            o, lse = np.zeros(problem.o_shape(), np.float16), np.full((2, 4, rows), -np.inf, np.float32)
            for family, told in (("fwd", {}), ("splitkv", {}), ("splitkv", {"num_splits": 0}), ("pagedkv", {}), ("batch_prefill", {"page_size": 16})):
                for mode in (0, 1):
                    result = self.all.run(*arrays, problem, api_family=family, is_group_mode=mode, lse=True, **told)
                    self.right(result, o)
                    np.testing.assert_array_equal(result.lse, lse)
            for mode in (0, 1):
                result = self.all.run_bwd(*arrays, o, lse, o, problem, is_group_mode=mode)
                self.assertTrue(result.success, result.error)
                for gradient, array in zip(result.output, arrays):
                    np.testing.assert_array_equal(gradient, array)


class PositionsFirst(Case):
    """perm=0: [B,S,H,D] in and out. With as many positions as heads no shape would tell."""

    def test_every_family(self):
        problem = FmhaProblem(2, 4, 4, 4, 4, 128, 128)
        arrays = random_arrays(45, problem.q_shape(), problem.k_shape(), problem.v_shape())
        expected = turned(softmax_attention(*arrays)[0])
        for family, told in (("fwd", {}), ("fwd", {"is_group_mode": 1}), ("splitkv", {}), ("splitkv", {"paged_kv": 1}), ("pagedkv", {}),
                             ("pagedkv", {"is_group_mode": 1}), ("batch_prefill", {"page_size": 16})):
            result = self.all.run(*map(turned, arrays), problem, api_family=family, perm=0, lse=True, **told)
            self.right(result, expected)
            np.testing.assert_allclose(result.lse, softmax_attention(*arrays)[1], atol=1e-4)
        self.refused(self.all.run(*arrays, problem, api_family="appendkv", perm=0), "perm is 0, and appendkv takes")

    def test_pages_of_the_caller(self):
        problem = FmhaProblem(2, 4, 4, 4, 100, 128, 128)
        q, k, v = random_arrays(45, problem.q_shape(), problem.k_shape(), problem.v_shape())
        pages = [np.concatenate([array, np.zeros((2, 4, 28, 128), np.float16)], axis=2) for array in (k, v)]
        told = {"block_table": np.int32([[0], [1]]), "seqlens_k": [100, 100], "perm": 0}
        for family in ("pagedkv", "splitkv"):
            self.right(self.all.run(turned(q), *pages, problem, api_family=family, **told), turned(softmax_attention(q, k, v)[0]))

    def test_backward_in_group_mode(self):
        o, lse, _ = softmax_attention(Q, K, V)
        arrays = [turned(array) for array in (Q, K, V, o.astype(np.float16))]
        result = self.all.run_bwd(*arrays, lse, turned(D_O), PROBLEM, perm=0, is_group_mode=True)
        self.assertTrue(result.success, result.error)
        for got, expected in zip(result.output, softmax_gradients(Q, K, V, D_O)):
            np.testing.assert_allclose(got, turned(expected), atol=5e-3)


class Caches(Case):
    PROBLEM = FmhaProblem(2, 4, 2, 1, 3, 128, 128)
    NEW = random_arrays(46, PROBLEM.k_shape(), PROBLEM.v_shape())
    CACHE = random_arrays(47, (2, 2, 16, 128), (2, 2, 16, 128))

    def append(self, runner=None, q=None, **told):
        return (runner or self.all).run(q, *self.NEW, self.PROBLEM, api_family="appendkv", **told)

    def test_a_cache_is_whole(self):
        whole = {"k_cache": self.CACHE[0], "v_cache": self.CACHE[1], "cache_seqlens": [4, 9]}
        for name in whole:
            self.refused(self.append(**{key: value for key, value in whole.items() if key != name}), "given without the rest of k_cache")
        self.assertTrue(self.append(**whole).success)
        self.refused(self.append(block_table=np.int32([[0], [1]])), "block_table needs k_cache")

    def test_a_cache_that_is_cut_into_pages(self):
        """The caller has [B,H,S,D] before and after; kernels over pages run."""
        runner = runner_of(family="fwd_appendkv", paged_kv=True, hdim_q=128, hdim_v=128, pipeline="appendkv")
        plain, paged = (self.append(one, k_cache=self.CACHE[0], v_cache=self.CACHE[1], cache_seqlens=[4, 9]) for one in (None, runner))
        self.assertTrue(paged.success, paged.error)
        self.assertIn("paged", paged.kernel)
        for name in ("k_cache", "v_cache"):
            np.testing.assert_array_equal(getattr(paged, name), getattr(plain, name))
        np.testing.assert_array_equal(self.append(runner).k_cache, self.NEW[0])
        self.refused(self.append(runner, k_cache=self.CACHE[0], v_cache=self.CACHE[1], cache_seqlens=[4, 14]),
                     "an entry has 14 keys and is to get 3; its cache has room for 16")

    def test_rotation(self):
        tables = dict(zip(("rotary_cos", "rotary_sin"), random_arrays(48, (32, 64), (32, 64))))
        self.refused(self.append(rope_type=1, rotary_cos=tables["rotary_cos"]), "rope_type is 1, and rotary_sin is not given")
        self.refused(self.append(**tables), "rope_type is 0, and rotary_cos is given; they go together")
        (q,) = random_arrays(49, (2, 2, 1, 128))
        self.refused(self.append(q=q, rope_type=1, **tables), r"Q has shape \(2, 2, 1, 128\), the problem needs \(2, 4, 1, 128\)")


class OtherLibraries(Case):
    """Arrays that speak DLPack and nothing else, wherever a run or a call takes an array."""

    def same(self, run, arrays, **told):
        lent = lambda value: DlTensor(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value
        own, other = run(*arrays, **told), run(*map(lent, arrays), **{name: lent(value) for name, value in told.items()})
        self.assertTrue(own.success and other.success, own.error + other.error)
        for name in ("output", "k_cache", "v_cache", "q_rotated", "d_sink"):
            np.testing.assert_equal(getattr(other, name), getattr(own, name))

    def test_forward(self):
        lengths = {"seqstart_q": np.int32([0, 20, 60]), "seqstart_k": np.int32([0, 40, 90])}
        rows = [np.ascontiguousarray(turned(array)).reshape(-1, array.shape[1], 64) for array in (Q, K, V)]
        for arrays, told in (((Q, K, V), {"bias_type": 1, "bias": BIAS, "is_group_mode": 1}), (rows, lengths),
                             ((Q, K, V), {"sink_logit": np.float32([1, 2, 3, 4]), "seqlens_k": np.int32([30, 40])}),
                             ((Q, K, V), {"api_family": "pagedkv", "seqlens_k": np.int32([30, 40])}),
                             ((Q, K, V), {"api_family": "batch_prefill", "page_size": 16}),
                             ((Q, K, V), {"api_family": "batch_prefill", "page_size": 16, "data_type": "fp8bf16", "qscale_type": 5, "verify_fp8": 1}),
                             ((Q, K, V), {"data_type": "fp8bf16", "qscale_type": 1, "q_descale": np.float32([2]), "k_descale": np.float32([[3]]),
                                          "v_descale": np.ones((), np.float32)})):
            with self.subTest(**{name: value for name, value in told.items() if not isinstance(value, np.ndarray)}):
                self.same(self.all.run, (*arrays, PROBLEM), **told)

    def test_append(self):
        tables = dict(zip(("rotary_cos", "rotary_sin"), random_arrays(48, (32, 64), (32, 64))))
        (q,) = random_arrays(49, Caches.PROBLEM.q_shape())
        arrays = (q, *Caches.NEW, Caches.PROBLEM)
        self.same(self.all.run, arrays, api_family="appendkv")
        self.same(self.all.run, arrays, api_family="appendkv", rope_type=1, k_cache=Caches.CACHE[0], v_cache=Caches.CACHE[1],
                  cache_seqlens=np.int32([4, 9]), **tables)

    def test_backward(self):
        o, lse, _ = softmax_attention(Q, K, V)
        arrays = (Q, K, V, o.astype(np.float16), lse.astype(np.float32), D_O, PROBLEM)
        self.same(self.all.run_bwd, arrays, is_group_mode=True, sink_logit=np.float32([1, 2, 3, 4]))

    def test_an_array_that_lends_nothing(self):
        class NeedsGradient:
            def __dlpack__(self):
                raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

        self.refused(self.all.run(NeedsGradient(), K, V, PROBLEM), "NeedsGradient does not lend its memory: Can't export")


if __name__ == "__main__":
    unittest.main()
