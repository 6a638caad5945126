"""Kernels compiled for a GPU, loaded and launched, over a device plugin whose device is the processor: memory of the device is the process's
own, and a launch computes on the host. What is tested is everything around the kernels."""

import gc
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import numpy as np

import fmha
from common import CudaArray, DlTensor, random_arrays, softmax_attention
from fmha import families
from fmha.formats import BF16, decode, encode
from fmha.memory import DeviceArray
from fmha_utils import FmhaKernelConfig, FmhaProblem, FmhaRegistry, FmhaRunner, setup_fmha_dispatcher

PROBLEM = FmhaProblem(1, 4, 2, 20, 30, 64, 64)
ARRAYS = [array.astype(np.float32) for array in random_arrays(1, PROBLEM.q_shape(), PROBLEM.k_shape(), PROBLEM.v_shape())]
EXPECTED = softmax_attention(*ARRAYS)[0]
HAS_COMPILER = any(shutil.which(name) for name in ("clang++-22", "hipcc", "amdclang++"))


def config(**fields):
    return FmhaKernelConfig(**{"data_type": "bf16", "hdim_q": 64, "hdim_v": 64, "gfx_arch": "gfx942"} | fields)


@unittest.skipUnless(HAS_COMPILER, "no compiler for gfx942 was found")
class OnTheDevice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["FMHA_TARGET"] = "device"
        cls.folder = tempfile.TemporaryDirectory()
        cls.setup = setup_fmha_dispatcher(config(), cls.folder.name)
        assert cls.setup.success, cls.setup.error
        cls.context = cls.setup.runner._opened()

    @classmethod
    def tearDownClass(cls):
        cls.setup.runner.cleanup()
        cls.folder.cleanup()

    def close(self, o):
        np.testing.assert_allclose(np.asarray(o, np.float64), EXPECTED, atol=2e-2)

    def test_a_set_up_compiles_and_runs(self):
        self.assertEqual(self.setup.target, "device")
        result = self.setup.runner.run(*ARRAYS, PROBLEM)
        self.assertTrue(result.success, result.error)
        self.close(result.output)
        # The plugin's clock shows a millisecond between any two events, and there are 50 launches between them.
        self.assertAlmostEqual(result.time_ms, 1 / 50, places=6)
        self.assertAlmostEqual(result.tflops, PROBLEM.num_ops / (result.time_ms * 1e-3) / 1e12)
        self.assertEqual(result.kernel, self.setup.kernels[0])

    def test_a_second_set_up_does_not_compile(self):
        kernels = next(Path(self.folder.name).glob("kernels-*/manifest.json"))
        before = kernels.stat().st_mtime_ns
        again = setup_fmha_dispatcher(config(), self.folder.name)
        self.assertTrue(again.success)
        self.assertEqual(kernels.stat().st_mtime_ns, before)
        self.close(FmhaRunner.from_library(again.library_path).run(*ARRAYS, PROBLEM).output)

    def test_what_does_not_load_is_compiled_again(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(setup_fmha_dispatcher(config(), folder).success)
            manifest = next(Path(folder).glob("kernels-*/manifest.json"))
            manifest.write_text("{")
            again = setup_fmha_dispatcher(config(), folder)
            self.assertTrue(again.success, again.error)
            self.close(again.runner.run(*ARRAYS, PROBLEM).output)

    def test_a_registry(self):
        registry = FmhaRegistry("two")
        registry.register_kernel(config())
        registry.register_kernel(config(mask="top_left", pipeline="qr_async"))
        results = registry.build(max_workers=2)
        self.assertEqual([result.error for result in results], ["", ""])
        self.close(results[0].runner.run(*ARRAYS, PROBLEM).output)
        self.assertFalse(results[0].runner.run(*ARRAYS, PROBLEM, mask_type=1).success)

    def test_another_architecture_does_not_load(self):
        with tempfile.TemporaryDirectory() as folder:
            result = setup_fmha_dispatcher(config(gfx_arch="gfx950"), folder)
            self.assertFalse(result.success)
            self.assertTrue(result.error.startswith("Load failed"), result.error)

    def test_the_compilers_words(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["FMHA_BUILD_OPTIONS"] = "--compiler /nonexistent/clang++"
            try:
                result = setup_fmha_dispatcher(config(), folder)
            finally:
                del os.environ["FMHA_BUILD_OPTIONS"]
            self.assertFalse(result.success)
            self.assertIn("/nonexistent/clang++", result.error)

    def test_the_architecture_is_that_of_the_device(self):
        self.assertEqual(self.context.arch, "gfx942")

    def test_memory_belongs_to_its_object(self):
        array = DeviceArray(self.context, (3, 5), np.float32)
        values = np.arange(15, dtype=np.float32).reshape(3, 5)
        self.assertEqual(array.upload(values).numpy().tolist(), values.tolist())
        with self.assertRaisesRegex(ValueError, "8 bytes do not fill 60 bytes"):
            array.upload(np.zeros(2, np.float32))
        array.free()
        array.free()
        self.assertIsNone(array.address)
        released = []
        counted = DeviceArray(self.context, (2,), np.float32)
        release, self.context.release = self.context.release, lambda address: (released.append(address), release(address))
        try:
            address = counted.address
            del counted
            gc.collect()
            self.assertEqual(released, [address])
        finally:
            del self.context.release
        self.assertEqual(DeviceArray(self.context, (0, 4), np.float32).numpy().shape, (0, 4))

    def test_nothing_is_left_on_the_device(self):
        balance = []
        allocate, release = self.context.allocate, self.context.release
        self.context.allocate = lambda size: (balance.append(1), allocate(size))[1]
        self.context.release = lambda address: (balance.append(-1), release(address))
        try:
            self.assertTrue(self.setup.runner.run(*ARRAYS, PROBLEM).success)
            gc.collect()
        finally:
            del self.context.allocate, self.context.release
        self.assertGreater(len(balance), 4)
        self.assertEqual(sum(balance), 0)

    def test_device_arrays_are_taken_where_they_are(self):
        bits = [encode(array, BF16) for array in ARRAYS]
        o, lse = np.zeros(PROBLEM.o_shape(), np.uint16), None
        uploads = []
        upload, self.context.upload = self.context.upload, lambda *call: (uploads.append(call), upload(*call))
        try:
            for kind in (CudaArray, lambda array: DlTensor(array, device_type=10, code=4)):
                o[:] = 0
                given = [kind(array) for array in bits]
                result = fmha.attention(*given, data_type="bf16", context=self.context, out=kind(o), lse=lse)
                self.close(decode(o, BF16))
                self.assertEqual(uploads, [], "a tensor of the device was copied")
                apart = fmha.attention(*given, data_type="bf16", context=self.context)
                self.assertIsInstance(apart.o, DeviceArray)
                self.close(decode(apart.o.numpy(), BF16))
                self.assertEqual(result.kernel, apart.kernel)
        finally:
            del self.context.upload

    def test_device_arrays_of_another_type_are_refused(self):
        with self.assertRaisesRegex(ValueError, "the device array holds float32, the kernels read bf16"):
            fmha.attention(*(CudaArray(array) for array in ARRAYS), data_type="bf16", context=self.context)

    def test_repeated_rows_are_copied_once(self):
        call = families.Call(self.context, 0, "bf16", "gfx942")
        bias = np.broadcast_to(np.arange(30, dtype=np.uint16), (20, 30))
        view = call.side.put(bias)
        self.assertEqual((view.strides, view.shape), ((0, 1), (20, 30)))
        self.assertEqual(view.owner.nbytes, 60)


if __name__ == "__main__":
    unittest.main()
