"""A client of fmha_utils: the forms in which the dispatcher's examples call it, and what a result has to be."""

import os
import unittest

import numpy as np

from fmha_utils import FmhaKernelConfig, FmhaProblem, FmhaValidator, cpu_attention_fwd, setup_fmha_dispatcher

# On a machine with a GPU: FMHA_CLIENTS_ARCH=sm_90 python3 clients_test.py compiles and runs everything there. What an architecture or
# a device does not have is skipped with the reason.
ARCH = os.environ.get("FMHA_CLIENTS_ARCH", "gfx950")


def problem_of(batch=2, nhead_q=4, seqlen=64, hdim=128, nhead_k=None, seqlen_k=None):
    return FmhaProblem(batch=batch, nhead_q=nhead_q, nhead_k=nhead_k or nhead_q, seqlen_q=seqlen, seqlen_k=seqlen_k or seqlen,
                       hdim_q=hdim, hdim_v=hdim)


def data_of(prob, size=0.3, dtype=np.float16):
    np.random.seed(42)
    return [(np.random.randn(*shape) * size).astype(dtype) for shape in (prob.q_shape(), prob.k_shape(), prob.v_shape())]


def single(arrays):
    return [array.astype(np.float32) for array in arrays]


class Client(unittest.TestCase):
    def jit(self, **fields):
        """Forms K and J1, and every attribute of the result that clients read."""
        config = FmhaKernelConfig(**{"data_type": "fp16", "hdim_q": 128, "hdim_v": 128, "gfx_arch": ARCH} | fields)
        setup = setup_fmha_dispatcher(config)
        if ARCH != "gfx950" and setup.error.startswith("Codegen failed: there is no kernel"):
            self.skipTest(setup.error)
        self.assertTrue(setup.success, setup.error)
        self.assertIsNotNone(setup.runner)
        self.assertIsInstance(f"{setup.build_time_s:.1f}" + setup.error + setup.library_path, str)
        return setup.runner

    def right(self, result, expected, limit=5e-3):
        self.assertTrue(result.success, result.error)
        ok, worst, _ = FmhaValidator(rtol=0.0, atol=limit).check(result.output, expected)
        self.assertTrue(ok, worst)
        self.assertIsInstance(f"{result.time_ms:.4f} {result.tflops:.2f}", str)
        return result

    def forward(self, runner, prob, *options, limit=5e-3, **keywords):
        """Form X, and F as what is expected."""
        arrays = data_of(prob)
        return self.right(runner.run(*arrays, prob, *options, **keywords), cpu_attention_fwd(*single(arrays), prob.scale), limit)

    def built(self, registry, **options):
        results = registry.build(**options)
        self.assertEqual([result.error for result in results], [""] * len(registry))
        self.assertTrue(all(result.runner is not None for result in results), "a set-up without a runner is good for nothing")
        return results
