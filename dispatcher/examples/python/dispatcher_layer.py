"""The dispatcher's Python layer: a registry of tiles, built together, each run and validated; the fastest is named."""

import sys

import numpy as np

from fmha_utils import (FmhaKernelSpec, FmhaProblem, FmhaRegistry, FmhaValidator, cpu_attention_fwd, detect_gpu_arch,
                        spec_to_config)


def main() -> int:
    registry = FmhaRegistry("tiles")
    for rows, keys in ((64, 128), (128, 128)):
        registry.register_kernel(spec_to_config(FmhaKernelSpec(f"{rows}x{keys}", tile_m0=rows, tile_n0=keys), "bf16", detect_gpu_arch()))
    problem = FmhaProblem(batch=1, nhead_q=4, nhead_k=2, seqlen_q=130, seqlen_k=200)
    random = np.random.default_rng(2)
    arrays = [random.standard_normal(shape).astype(np.float32) * np.float32(0.3)
              for shape in (problem.q_shape(), problem.k_shape(), problem.v_shape())]
    exact = cpu_attention_fwd(*arrays, problem.scale)
    passed, fastest = 0, None
    for setup in registry.build():
        if not setup.success:
            print(setup.error)
            continue
        result = setup.runner.run(*arrays, problem)
        close, worst, _ = FmhaValidator(rtol=0, atol=1e-2).check(result.output, exact) if result.success else (False, 0, 0)
        print(f"{setup.target}: {setup.kernels[0]}\n  {result.time_ms:.3f} ms, worst error {worst:.1e} {result.error}")
        for note in setup.notes:
            print(f"  {note}")
        passed += close
        fastest = min(filter(None, (fastest, (result.time_ms, setup.config.name))))
    print(f"{passed} of {len(registry)} right, fastest {fastest[1] if fastest else 'none'}")
    return 0 if passed == len(registry) else 1


if __name__ == "__main__":
    sys.exit(main())
