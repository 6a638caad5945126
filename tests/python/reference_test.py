"""The reference behind Python's calls, against plain formulas and finite differences, and what it refuses."""

import unittest

import numpy as np

import fmha
from common import DlTensor, causal, random_arrays, softmax_attention, softmax_gradients
from fmha import reference
from fmha.layer.cpu import cpu_attention_bwd, cpu_attention_fwd, cpu_attention_fwd_with_intermediates

Q, K, V = random_arrays(21, (2, 4, 30, 40), (2, 2, 50, 40), (2, 2, 50, 24), dtype=np.float32)


class Forward(unittest.TestCase):
    def test_binary64(self):
        for mask, seen in ((0, None), (1, causal(30, 50)), (2, causal(30, 50, True))):
            o, lse = reference.attention(Q, K, V, data_type="fp32", mask=mask)
            expected = softmax_attention(Q, K, V, visible=seen)
            np.testing.assert_allclose(o, expected[0], atol=1e-7)  # the scale is a float
            np.testing.assert_allclose(lse, expected[1], atol=1e-6)

    def test_a_row_that_sees_nothing(self):
        o, lse = reference.attention(K[:, :, :, :40], Q[:, :2], Q[:, :2], data_type="fp32", mask=2)  # 50 rows, 30 keys
        self.assertEqual(np.abs(o[:, :, :20]).max(), 0.0)
        self.assertTrue(np.isneginf(lse[:, :, :20]).all() and np.isfinite(lse[:, :, 20:]).all())

    def test_it_starts_from_the_stored_bits(self):
        o, _ = reference.attention(Q, K, V, data_type="bf16")
        rounded = [(((array.view(np.uint32) + 0x7FFF + ((array.view(np.uint32) >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
                   for array in (Q, K, V)]
        np.testing.assert_allclose(o, softmax_attention(*rounded)[0], atol=1e-7)
        self.assertGreater(np.abs(o - softmax_attention(Q, K, V)[0]).max(), 1e-5)

    def test_rows_beyond_a_length_keep_their_place(self):
        rows, keys = [7, 30], [50, 20]
        o, lse = reference.attention(Q, K, V, data_type="fp32", seqlen_q=np.array(rows, np.int32), cu_seqlen_k=np.array([0, 50, 70], np.int32))
        for b, (seqlen_q, seqlen_k) in enumerate(zip(rows, keys)):
            one = slice(b, b + 1)
            expected = softmax_attention(Q[one, :, :seqlen_q], K[one, :, :seqlen_k], V[one, :, :seqlen_k])
            np.testing.assert_allclose(o[one, :, :seqlen_q], expected[0], atol=1e-7)
            np.testing.assert_allclose(lse[one, :, :seqlen_q], expected[1], atol=1e-6)
            self.assertFalse(o[b, :, seqlen_q:].any())
            self.assertTrue(np.isneginf(lse[b, :, seqlen_q:]).all())

    def test_errors_are_sentences(self):
        with self.assertRaisesRegex(fmha.Error, "BAD_PROBLEM: H-1: nhead_q 3 is not a multiple of nhead_k 2$") as caught:
            reference.attention(Q[:, :3], K, V, data_type="fp32")
        self.assertEqual(caught.exception.rule, "H-1")
        with self.assertRaises(fmha.Error) as caught:
            reference.attention(Q[..., :12], K[..., :12], V, data_type="fp32")
        self.assertEqual(caught.exception.rule, "H-2")
        with self.assertRaisesRegex(fmha.Error, "BAD_ARGUMENT: arch is .*, which is too long") as caught:
            reference.attention(Q, K, V, data_type="fp32", arch="gfx950_and_all_others")
        self.assertEqual(caught.exception.rule, "")
        with self.assertRaisesRegex(fmha.Error, "BAD_ARGUMENT: .*gfx943.*gfx942"):
            reference.attention(Q, K, V, data_type="fp32", arch="gfx943")

    def test_pages_that_are_not_there(self):
        (pool,) = random_arrays(3, (2, 2, 128, 40), dtype=np.float16)

        def attend(page, keys=100):
            return reference.paged(Q.astype(np.float16), pool, pool, data_type="fp16", block_table=np.array([[0], [page]], np.int32),
                                   seqlens_k=np.array([100, keys], np.int32))

        self.assertTrue(np.isfinite(attend(1)[0]).all())
        with self.assertRaisesRegex(fmha.Error, "page 2 at place 0; the pool has 2 pages"):
            attend(2)
        with self.assertRaisesRegex(fmha.Error, "entry 1 has 129 keys"):
            attend(1, 129)


class Backward(unittest.TestCase):
    def test_gradients(self):
        (d_o,) = random_arrays(5, (2, 4, 30, 24), dtype=np.float32)
        seen = causal(30, 50, True)
        o, lse, _ = softmax_attention(Q, K, V, visible=seen)
        got = reference.gradients(Q, K, V, o.astype(np.float32), lse.astype(np.float32), d_o, data_type="fp32", mask=2)
        for name, expected in zip(("dq", "dk", "dv"), softmax_gradients(Q, K, V, d_o, visible=seen)):
            np.testing.assert_allclose(got[name], expected, atol=2e-6, err_msg=name)
        np.testing.assert_allclose(got["d"], (d_o * o).sum(-1), atol=1e-5)

    def test_positions_beyond_a_length_keep_their_place(self):
        (d_o,) = random_arrays(5, (2, 4, 30, 24), dtype=np.float32)
        (bias,) = random_arrays(6, (2, 4, 30, 50), dtype=np.float32)
        rows, keys = [7, 30], [40, 20]
        o, lse = np.full((2, 4, 30, 24), np.nan, np.float32), np.full((2, 4, 30), np.nan, np.float32)
        parts = [(slice(b, b + 1), slice(None), slice(rows[b])) for b in range(2)]
        seen = [(*part[:2], slice(keys[b])) for b, part in enumerate(parts)]
        tables = [bias[(*part, slice(keys[b]))] for b, part in enumerate(parts)]
        for part, of, table in zip(parts, seen, tables):
            o[part], lse[part], _ = softmax_attention(Q[part], K[of], V[of], bias=table)
        options = {"seqlen_q": np.array(rows, np.int32), "seqlen_k": np.array(keys, np.int32), "bias": bias, "dbias": True}
        got = reference.gradients(Q, K, V, o, lse, d_o, data_type="fp32", **options)
        for part, of, table, b in zip(parts, seen, tables, range(2)):
            exact = reference.gradients(Q[part], K[of], V[of], o[part], lse[part], d_o[part], data_type="fp32", bias=table, dbias=True)
            for name, place in (("dq", part), ("d", part), ("dk", of), ("dv", of), ("dbias", (*part, slice(keys[b])))):
                np.testing.assert_allclose(got[name][place], exact[name], atol=1e-12, err_msg=name)
            for name, unowned in (("dq", got["dq"][b, :, rows[b] :]), ("dk", got["dk"][b, :, keys[b] :]), ("dbias", got["dbias"][b, :, :, keys[b] :])):
                self.assertFalse(unowned.any(), name)
        with_reduction = reference.gradients(Q, K, V, o, lse, d_o, data_type="fp32", reduce_dk_dv=True, **options)
        np.testing.assert_allclose(with_reduction["dk"], got["dk"], atol=1e-12)

    def test_no_keys(self):
        nothing = K[:, :, :0]
        o, lse = np.zeros((2, 4, 30, 24), np.float32), np.full((2, 4, 30), -np.inf, np.float32)
        got = reference.gradients(Q, nothing, V[:, :, :0], o, lse, o, data_type="fp32")
        self.assertEqual((got["dk"].shape, got["dv"].shape), ((2, 2, 0, 40), (2, 2, 0, 24)))
        self.assertFalse(got["dq"].any())

    def test_finite_differences(self):
        q, k, v, d_o = (array.astype(np.float64) for array in random_arrays(6, (1, 2, 5, 8), (1, 1, 7, 8), (1, 1, 7, 8), (1, 2, 5, 8)))
        loss = lambda *arrays: (softmax_attention(*arrays)[0] * d_o).sum()
        o, lse, _ = softmax_attention(q, k, v)
        single = [array.astype(np.float32) for array in (q, k, v, o, lse, d_o)]
        got = reference.gradients(*single, data_type="fp32")
        step = 1e-4
        for which, name in enumerate(("dq", "dk", "dv")):
            for place in ((0, 0, 2, 3), (0, 0, 4, 7)):
                moved = [array.copy() for array in (q, k, v)]
                moved[which][place] += step
                up = loss(*moved)
                moved[which][place] -= 2 * step
                self.assertAlmostEqual(got[name][place], (up - loss(*moved)) / (2 * step), delta=1e-5)

    def test_what_backward_does_not_have(self):
        with self.assertRaisesRegex(ValueError, "batch mode only"):
            rows = [array.transpose(0, 2, 1, 3).reshape(-1, array.shape[1], array.shape[3]) for array in (Q, K, V)]
            reference.gradients(*rows, np.zeros((60, 4, 24), np.float32), np.zeros((4, 60), np.float32), np.zeros((60, 4, 24), np.float32),
                                data_type="fp32", layout="shd", seqstart_q=[0, 30, 60], seqstart_k=[0, 50, 100])


class CpuFunctions(unittest.TestCase):
    """The functions that clients of fmha_utils call."""

    def test_types_and_shapes(self):
        scale = 40**-0.5
        for kind, limit in ((np.float32, 1e-6), (np.float16, 1e-3), (np.float64, 1e-6)):
            got = cpu_attention_fwd(Q.astype(kind), K.astype(kind), V.astype(kind), scale)
            self.assertEqual((got.dtype, got.shape), (kind, (2, 4, 30, 24)))
            np.testing.assert_allclose(got.astype(np.float64), softmax_attention(Q, K, V)[0], atol=limit)

    def test_head_sizes_that_no_kernel_has(self):
        q, k, v = random_arrays(2, (1, 1, 3, 5), (1, 1, 4, 5), (1, 1, 4, 3), dtype=np.float32)
        np.testing.assert_allclose(cpu_attention_fwd(q, k, v, 0.3), softmax_attention(q, k, v, scale=0.3)[0], atol=1e-6)

    def test_arrays_of_other_shapes(self):
        """Also where channels that are filled up to a multiple of 8 would be as many."""
        q, k, v = random_arrays(2, (1, 1, 3, 8), (1, 1, 4, 8), (1, 1, 4, 8), dtype=np.float32)
        for arrays, words in (((q, k[..., :5], v), r"K has shape \[1, 1, 4, 5\]; needed: \[1, 1, 4, 8\]"),
                              ((q[..., :5], k, v), r"K has shape \[1, 1, 4, 8\]; needed: \[1, 1, 4, 5\]"),
                              ((q, k, v[:, :, :3]), r"V has shape \[1, 1, 3, 8\]; needed: \[1, 1, 4, 8\]"),
                              ((q, np.repeat(k, 2, 0), v), r"K has shape \[2, 1, 4, 8\]; needed: \[1, 1, 4, 8\]")):
            for function in (cpu_attention_fwd, cpu_attention_fwd_with_intermediates):
                with self.assertRaisesRegex(ValueError, words):
                    function(*arrays, 0.3)

    def test_views_need_not_be_contiguous(self):
        turned = [np.ascontiguousarray(array.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for array in (Q, K, V)]
        np.testing.assert_array_equal(cpu_attention_fwd(*turned, 0.1), cpu_attention_fwd(Q, K, V, 0.1))
        column = np.ascontiguousarray(V.swapaxes(2, 3)).swapaxes(2, 3)
        np.testing.assert_array_equal(cpu_attention_fwd(Q, K, column, 0.1), cpu_attention_fwd(Q, K, V, 0.1))

    def test_masks(self):
        np.testing.assert_allclose(cpu_attention_fwd(Q, K, V, 40**-0.5, 1), softmax_attention(Q, K, V, visible=causal(30, 50))[0], atol=1e-6)
        np.testing.assert_allclose(cpu_attention_fwd(Q, K, V, 40**-0.5, mask_type=2),
                                   softmax_attention(Q, K, V, visible=causal(30, 50, True))[0], atol=1e-6)
        with self.assertRaisesRegex(ValueError, "mask_type 3"):
            cpu_attention_fwd(Q, K, V, 0.1, 3)
        with self.assertRaisesRegex(ValueError, "4 query heads are no multiple of 3"):
            cpu_attention_fwd(Q, np.zeros((2, 3, 50, 40), np.float32), np.zeros((2, 3, 50, 24), np.float32), 0.1)

    def test_weights(self):
        o, p = cpu_attention_fwd_with_intermediates(Q, K, V, 40**-0.5)
        expected = softmax_attention(Q, K, V)
        np.testing.assert_allclose(p, expected[2], atol=1e-6)
        np.testing.assert_allclose(o, expected[0], atol=1e-6)
        long_k, long_v = random_arrays(3, (1, 1, 300, 8), (1, 1, 300, 8), dtype=np.float32)
        _, p = cpu_attention_fwd_with_intermediates(long_k[:, :, :4], long_k, long_v, 1.0)
        np.testing.assert_allclose(p.sum(-1), 1.0, atol=1e-5)

    def test_backward_is_that_of_the_reference(self):
        (d_o,) = random_arrays(8, (2, 4, 30, 24), dtype=np.float32)
        scale = 40**-0.5
        o, p = cpu_attention_fwd_with_intermediates(Q, K, V, scale)
        got = cpu_attention_bwd(Q, K, V, o, d_o, p, scale)
        _, lse, _ = softmax_attention(Q, K, V)
        exact = reference.gradients(Q, K, V, o, lse.astype(np.float32), d_o, data_type="fp32")
        for name, gradient, array in zip(("dq", "dk", "dv"), got, (Q, K, V)):
            self.assertEqual((gradient.shape, gradient.dtype), (array.shape, np.float32))
            np.testing.assert_allclose(gradient, exact[name], atol=5e-6, err_msg=name)

    def test_backward_without_keys(self):
        rows, table = np.zeros((2, 4, 30, 24), np.float32), np.zeros((2, 4, 30, 0), np.float32)
        d_q, d_k, d_v = cpu_attention_bwd(Q, K[:, :, :0], V[:, :, :0], rows, rows, table, 0.1)
        self.assertEqual((d_k.shape, d_v.shape), ((2, 2, 0, 40), (2, 2, 0, 24)))
        self.assertFalse(d_q.any())

    def test_backward_compares_its_arrays(self):
        (d_o,) = random_arrays(8, (2, 4, 30, 24), dtype=np.float32)
        o, p = cpu_attention_fwd_with_intermediates(Q, K, V, 0.1)
        for arrays, words in (((Q, K, V, o, d_o, p[:, :1]), r"P has shape \[2, 1, 30, 50\]; needed: \[2, 4, 30, 50\]"),
                              ((Q, K, V, o, d_o[:1], p), "dO has shape"), ((Q, K, V, o[..., :1], d_o, p), "out has shape"),
                              ((Q, K[:1], V, o, d_o, p), "K has shape"), ((Q, K, V[:, :, :1], o, d_o, p), "V has shape"),
                              ((Q.astype(int), K, V, o, d_o, p), "the reference takes floats, got int64")):
            with self.assertRaisesRegex(ValueError, words):
                cpu_attention_bwd(*arrays, 0.1)
        lent = [DlTensor(np.ascontiguousarray(array)) for array in (Q, K, V, o, d_o, p)]
        for one, other in zip(cpu_attention_bwd(*lent, 0.1), cpu_attention_bwd(Q, K, V, o, d_o, p, 0.1)):
            np.testing.assert_array_equal(one, other)


if __name__ == "__main__":
    unittest.main()
