"""The dispatcher's Python examples on backward, as clients_test.py has those on forward."""

import unittest

import numpy as np

from client import Client, data_of, problem_of, single
from common import causal, softmax_attention, softmax_gradients
from fmha_utils import FmhaValidator, cpu_attention_bwd, cpu_attention_fwd, cpu_attention_fwd_with_intermediates


class Backward(Client):
    """The examples compute gradients with NumPy from the weights of forward; the kernels compute them here too."""

    def gradients(self, prob, dtype=np.float32):
        """Forms FI and FB, against the chain rule."""
        arrays = data_of(prob, dtype=dtype)
        np.random.seed(7)
        d_o = np.random.randn(*prob.o_shape()).astype(dtype)
        out, weights = cpu_attention_fwd_with_intermediates(*single(arrays), prob.scale)
        got = cpu_attention_bwd(*single(arrays), out, d_o.astype(np.float32), weights, prob.scale)
        for gradient, expected, array in zip(got, softmax_gradients(*arrays, d_o), arrays):
            self.assertEqual(gradient.shape, array.shape)
            np.testing.assert_allclose(gradient, expected, atol=2e-5)
        return got

    def kernels(self, prob, visible=None, limit=2e-2, data_type="fp16", **fields):
        """Forward with LSE and the three stages of backward, against the chain rule."""
        config = {"data_type": data_type, "hdim_q": prob.hdim_q, "hdim_v": prob.hdim_v}
        mask = {name: fields[name] for name in ("mask", "mode") if name in fields}
        arrays = data_of(prob)
        np.random.seed(7)
        d_o = (np.random.randn(*prob.o_shape()) * 0.5).astype(np.float16)
        forward = self.jit(**config, **mask, lse=True).run(*arrays, prob)
        self.assertTrue(forward.success, forward.error)
        runner = self.jit(family="bwd_dq_dk_dv", **config, **fields)
        result = runner.run_bwd(*arrays, forward.output, forward.lse, d_o, prob)
        self.assertTrue(result.success, result.error)
        self.assertIn(" + bwd_dq_dk_dv", result.kernel)
        for gradient, expected, array in zip(result.output, softmax_gradients(*arrays, d_o, visible=visible), arrays):
            self.assertEqual(gradient.shape, array.shape)
            np.testing.assert_allclose(gradient.astype(np.float64), expected, atol=limit)
        return result

    def test_18_backward(self):
        self.forward(self.jit(), problem_of(1, 4, 64))
        self.gradients(problem_of(1, 4, 30))
        self.kernels(problem_of(1, 4, 40))

    def test_27_dropout(self):
        prob = problem_of(1, 2, 64)
        arrays = data_of(prob)
        expected = cpu_attention_fwd(*single(arrays), prob.scale)
        self.assertTrue(FmhaValidator(rtol=1e-5, atol=1e-5).check(softmax_attention(*single(arrays))[0], expected)[0])
        self.assertEqual([a.tobytes() for a in self.gradients(prob)], [b.tobytes() for b in self.gradients(prob)])
        forward = self.jit(dropout=True, lse=True).run(*arrays, prob, p_drop=0.25, seed=3, offset=1, randval=True)
        d_o = (np.random.randn(*prob.o_shape()) * 0.5).astype(np.float16)
        runner = self.jit(family="bwd_dq_dk_dv", dropout=True)
        replayed = runner.run_bwd(*arrays, forward.output, forward.lse, d_o, prob, p_drop=0.25, seed=3, offset=1)
        self.assertTrue(replayed.success, replayed.error)
        kept = (forward.randval <= int(np.float32(np.float32(0.75) * np.float32(255)))) / 0.75
        weights = softmax_attention(*arrays)[2]
        np.testing.assert_allclose(replayed.output[2], (weights * kept).swapaxes(-1, -2) @ d_o.astype(np.float64), atol=2e-2)
        other = runner.run_bwd(*arrays, forward.output, forward.lse, d_o, prob, p_drop=0.25, seed=4, offset=1)
        self.assertGreater(np.abs(other.output[2].astype(np.float32) - replayed.output[2]).max(), 0.05)

    def test_28_dbias(self):
        prob = problem_of(2, 2, 24)
        arrays = data_of(prob)
        np.testing.assert_allclose(softmax_attention(*single(arrays), bias=0.0)[0], cpu_attention_fwd(*single(arrays), prob.scale), atol=1e-6)
        bias = (np.random.randn(2, 2, 24, 24) * 0.5).astype(np.float16)
        forward = self.jit(bias="bias", lse=True).run(*arrays, prob, bias=bias)
        d_o = (np.random.randn(*prob.o_shape()) * 0.5).astype(np.float16)
        result = self.jit(family="bwd_dq_dk_dv", bias="bias", dbias=True).run_bwd(*arrays, forward.output, forward.lse, d_o, prob, bias=bias)
        self.assertTrue(result.success, result.error)
        _, _, p = softmax_attention(*arrays, bias=bias.astype(np.float64))
        d_p = d_o.astype(np.float64) @ arrays[2].astype(np.float64).swapaxes(-1, -2)
        np.testing.assert_allclose(result.dbias, p * (d_p - (d_p * p).sum(-1, keepdims=True)), atol=5e-3)

    def test_33_masks(self):
        prob = problem_of(1, 2, 40)
        arrays = data_of(prob)
        np.testing.assert_allclose(cpu_attention_fwd(*single(arrays), prob.scale, 1), softmax_attention(*arrays, visible=causal(40, 40))[0],
                                   atol=1e-6)
        self.kernels(prob, visible=causal(40, 40), mask="top_left")
        self.kernels(problem_of(1, 2, 40, seqlen_k=60), visible=causal(40, 60, True), mask="bottom_right")
        self.kernels(prob)

    def test_34_gqa(self):
        for shared in (8, 4, 2, 1):
            self.gradients(problem_of(1, 8, 12, nhead_k=shared))
        self.kernels(problem_of(1, 8, 32, nhead_k=2))

    def test_35_bf16(self):
        self.gradients(problem_of(2, 2, 20), np.float16)
        result = self.kernels(problem_of(1, 2, 40), data_type="bf16", limit=0.1)
        self.assertEqual({gradient.dtype for gradient in result.output}, {np.dtype(np.float32)})

    def test_36_benchmark(self):
        self.assertGreater(4 * problem_of().num_ops, 0)
        self.gradients(problem_of(1, 2, 64))
        result = self.kernels(problem_of(1, 2, 64))
        self.assertAlmostEqual(result.work_tflops, 2.5 * result.tflops)

    def test_37_deterministic(self):
        prob = problem_of(1, 2, 16)
        self.assertEqual([a.tobytes() for a in self.gradients(prob)], [b.tobytes() for b in self.gradients(prob)])
        first, second = (self.kernels(problem_of(1, 2, 200), deterministic=True).output for _ in range(2))
        self.assertEqual([a.tobytes() for a in first], [b.tobytes() for b in second])

    def test_38_head_sizes(self):
        for hdim in (32, 64, 128, 256):
            self.gradients(problem_of(1, 2, 12, hdim))
            self.kernels(problem_of(1, 2, 33, hdim))


if __name__ == "__main__":
    unittest.main()
