"""A script of the dispatcher runs as it is: from a checkout whose own fmha_utils it puts before everything else, and from beside ours."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "dispatcher" / "python"

# Our words, their forms: the path, the options, the exit code, the last line.
SCRIPT = '''#!/usr/bin/env python3
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

import numpy as np
from fmha_utils import FmhaKernelConfig, FmhaProblem, FmhaValidator, cpu_attention_fwd, detect_gpu_arch, setup_fmha_dispatcher
from helper import LIMIT


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default=detect_gpu_arch())
    parser.add_argument("--seqlen", type=int, default=128)
    parser.add_argument("--spoil", action="store_true")
    args = parser.parse_args()
    setup = setup_fmha_dispatcher(FmhaKernelConfig(data_type="fp16", hdim_q=64, hdim_v=64, gfx_arch=args.arch))
    if not setup.success:
        print(f"JIT failed: {setup.error}")
        return 1
    prob = FmhaProblem(batch=1, nhead_q=2, nhead_k=2, seqlen_q=args.seqlen, seqlen_k=args.seqlen, hdim_q=64, hdim_v=64)
    np.random.seed(42)
    Q, K, V = ((np.random.randn(*shape()) * 0.3).astype(np.float16) for shape in (prob.q_shape, prob.k_shape, prob.v_shape))
    result = setup.runner.run(Q, K, V, prob)
    reference = cpu_attention_fwd(Q.astype(np.float32), K.astype(np.float32), V.astype(np.float32), prob.scale)
    if args.spoil:
        reference[0, 0, -1, -1] += 1
    good, worst, _ = FmhaValidator(rtol=LIMIT, atol=LIMIT).check(result.output, reference)
    print(f"  {args.seqlen} rows, worst {worst:.1e}")
    print(f"  Status:   {'PASS' if good else 'FAIL'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
'''


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="unchanged."))
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = self.tree(self.folder / "checkout")
        # What a checkout has there needs its compiler and a GPU.
        (self.folder / "checkout" / "dispatcher" / "python" / "fmha_utils.py").write_text("raise ImportError('the module of the checkout')\n")

    def tree(self, root):
        """The script where the dispatcher has it, and a module beside it."""
        for place in ("python", "examples/fmha/python"):
            (root / "dispatcher" / place).mkdir(parents=True)
        script = root / "dispatcher" / "examples" / "fmha" / "python" / "01_of_ours.py"
        script.write_text(SCRIPT)
        (script.parent / "helper.py").write_text("LIMIT = 1e-2\n")
        return script

    def run_it(self, *words, path=str(PACKAGE)):
        environment = os.environ | {"PYTHONPATH": path, "FMHA_TARGET": "host"}
        return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, cwd=self.folder, env=environment, check=False)

    def test_of_a_checkout(self):
        done = self.run_it("-m", "fmha", self.script, "--arch", "gfx942", "--seqlen", 70)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("70 rows", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "  Status:   PASS")

    def test_a_failure_is_its_exit_code(self):
        done = self.run_it("-m", "fmha", self.script, "--arch", "gfx950", "--spoil")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "  Status:   FAIL"), done.stderr)
        done = self.run_it("-m", "fmha", self.script, "--arch", "gfx000")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, "JIT failed: .*gfx000")
        self.assertEqual(self.run_it("-m", "fmha", self.script, "--sequence", "3").returncode, 2)

    def test_beside_our_modules_nothing_leads_to_them(self):
        script = self.tree(self.folder / "tree")
        python = self.folder / "tree" / "dispatcher" / "python"
        for module in ("fmha", "fmha_utils.py", "fmha_dtype_contract.py"):
            (python / module).symlink_to(PACKAGE / module)
        done = self.run_it(script, "--arch", "gfx950", path="")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "  Status:   PASS"), done.stderr)

    def test_without_us_the_checkout_answers(self):
        done = self.run_it(self.script, path="")
        self.assertIn("the module of the checkout", done.stderr)

    def test_no_script(self):
        done = self.run_it("-m", "fmha", "nowhere.py")
        self.assertEqual((done.returncode, done.stderr), (2, "fmha: there is no script nowhere.py\n"))


if __name__ == "__main__":
    unittest.main()
