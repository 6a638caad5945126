"""Attention on NumPy arrays: forward with a window, a bias and grouped heads, then gradients, each against the reference."""

import sys

import numpy as np

import fmha
from fmha import reference


def close(what: str, got: np.ndarray, exact: np.ndarray, limit: float) -> bool:
    worst = np.abs(np.asarray(got, np.float64) - exact).max()
    print(f"{what}: worst error {worst:.2e}, limit {limit:.0e}")
    return bool(worst <= limit)


def main() -> int:
    random = np.random.default_rng(1)
    q, k, v, d_o = (random.standard_normal((2, heads, length, 64)).astype(np.float16)
                    for heads, length in ((8, 100), (2, 150), (2, 150), (8, 100)))
    good = True

    result = fmha.attention(q, k, v, mask="bottom_right", window=(32, 0))
    exact, _ = reference.attention(q, k, v, data_type="fp16", mask="bottom_right", window=(32, 0))
    good &= close("sliding window", result.o, exact, 4e-3)

    bias = random.standard_normal((1, 8, 100, 150)).astype(np.float16)
    exact, _ = reference.attention(q, k, v, data_type="fp16", bias=bias)
    good &= close("bias", fmha.attention(q, k, v, bias=bias).o, exact, 4e-3)

    forward = fmha.attention(q, k, v, mask="causal", lse=True)
    gradients = fmha.attention_backward(q, k, v, forward.o, forward.lse, d_o, mask="causal")
    exact = reference.gradients(q, k, v, forward.o, forward.lse, d_o, data_type="fp16", mask="causal")
    for name in ("dq", "dk", "dv"):
        good &= close(name, getattr(gradients, name), exact[name], 3e-2)
    print(gradients.kernel.replace(" + ", "\n"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
