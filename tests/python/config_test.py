"""Configurations, problems and results: fields, defaults, names."""

import copy
import json
import unittest
from dataclasses import fields

import numpy as np

import fmha_utils
from fmha_utils import (FmhaKernelConfig, FmhaKernelSpec, FmhaProblem, FmhaResult, FmhaSetupResult, FmhaValidator,
                        num_splits_heuristic_ck, spec_to_config)

ORDER = """family data_type mode vlayout hdim_q hdim_v gfx_arch tile_m0 tile_n0 tile_k0 tile_n1 tile_k1 tile_k0max tile_bwd6 tile_bwd7
    tile_bwd8 wave_m0 wave_n0 wave_k0 wave_m1 wave_n1 wave_k1 wave_m2 wave_n2 wave_k2 warp_m0 warp_n0 warp_k0 warp_m1 warp_n1 warp_k1
    warp_m2 warp_n2 warp_k2 pad_s pad_sk pad_d pad_dv pipeline block_per_cu num_wave_groups mask bias lse dropout qscale rope logits
    paged_kv sink skip_min_seqlen_q page_size kv_memory_layout kv_lookup_table deterministic dbias dropout_variant tile_tag
    use_trload""".split()


class Configurations(unittest.TestCase):
    def test_fields_in_their_order(self):
        self.assertEqual([field.name for field in fields(FmhaKernelConfig)], ORDER)
        self.assertEqual(len(ORDER), 59)

    def test_the_name_of_the_default(self):
        self.assertEqual(FmhaKernelConfig().name, "fmha_fwd_fp16_batch_h128_qr_async_t128x128x32x128x32x128_w32x32x16_pad1111_mask=no_"
                                                  "bias=no_bpc=-1")

    def test_every_part_of_a_name(self):
        config = FmhaKernelConfig(hdim_v=64, tile_tag="x", mask="top_left", bias="alibi", lse=True, dropout=True, logits=True, sink=True,
                                  skip_min_seqlen_q=True, qscale="pertensor", paged_kv=True, rope="interleaved", page_size=16,
                                  kv_memory_layout="linear", kv_lookup_table="vllm", deterministic=True, dbias=True,
                                  dropout_variant="dropout_wg16", block_per_cu=2)
        self.assertTrue(config.name.endswith("_h128x64_qr_async_t128x128x32x128x32x128.x_w32x32x16_pad1111_mask=top_left_bias=alibi_lse=1_"
                                             "drop=1_logits=1_sink=1_skip=1_qs=pertensor_pkv=1_rope=interleaved_ps=16_kvl=linear_kvt=vllm_"
                                             "det=1_dbias=1_drv=dropout_wg16_bpc=2"), config.name)
        self.assertNotIn("drv", FmhaKernelConfig(dropout_variant="no").name)

    def test_equal_configurations_have_one_name_and_one_key(self):
        numbers, booleans = FmhaKernelConfig(), FmhaKernelConfig(pad_s=True, pad_sk=True, pad_d=True, pad_dv=True)
        self.assertEqual((numbers, numbers.name, numbers.key), (booleans, booleans.name, booleans.key))
        for name, value in (("gfx_arch", "gfx942"), ("vlayout", "c"), ("wave_m0", 2), ("tile_bwd7", 1), ("use_trload", True)):
            other = FmhaKernelConfig(**{name: value})
            self.assertEqual(other.name, numbers.name, name)
            self.assertNotEqual(other.key, numbers.key, name)

    def test_tuples(self):
        config = FmhaKernelConfig(wave_k2=7, warp_n1=5)
        self.assertEqual(config.tile, (128, 128, 32, 128, 32, 128))
        self.assertEqual(config.tile[:2], (128, 128))
        self.assertEqual((config.wave, config.warp), ((4, 1, 1, 4, 1, 1, 1, 1, 7), (32, 32, 16, 32, 5, 16, 16, 16, 16)))
        self.assertEqual(FmhaKernelConfig(pad_s=False).padding, (False, 1, 1, 1))
        self.assertEqual(FmhaKernelConfig(family="bwd_dq_dk_dv", tile_bwd6=1, tile_bwd8=3).tile[6:], (1, 0, 3))
        self.assertEqual(len(FmhaKernelConfig(tile_bwd6=1).tile), 6)

    def test_json(self):
        told = json.loads(FmhaKernelConfig(dropout_variant="dropout_wg16_storerandval").to_codegen_json())
        self.assertEqual(list(told), ["arch", "signature", "algorithm"])
        self.assertEqual(list(told["signature"]), "family data_type mode vlayout hdim_q hdim_v mask bias lse dropout qscale rope logits "
                         "paged_kv fp8_static_quant skip_min_seqlen_q sink dbias store_randval deterministic dropout_variant "
                         "kv_memory_layout kv_lookup_table page_size".split())
        self.assertEqual(list(told["algorithm"]), "pipeline tile wave warp padding block_per_cu num_wave_groups max_splits_log2 "
                         "max_seq_len_q use_trload".split())
        self.assertTrue(told["signature"]["store_randval"])
        self.assertEqual(told["algorithm"]["padding"], [1, 1, 1, 1])

    def test_objects_are_plain(self):
        config = FmhaKernelConfig(hdim_q=64)
        self.assertEqual([1, FmhaKernelConfig(hdim_q=64)].index(config), 1)
        self.assertEqual(copy.copy(config), config)
        with self.assertRaises(TypeError):
            hash(config)
        config.mask = "top_left"
        self.assertIn("mask='top_left'", repr(config))


class Problems(unittest.TestCase):
    def test_sizes(self):
        problem = FmhaProblem(batch=1, nhead_q=16, nhead_k=4, seqlen_q=10, seqlen_k=20, hdim_q=64, hdim_v=32)
        self.assertEqual((problem.q_shape(), problem.k_shape()), ((1, 16, 10, 64), (1, 4, 20, 64)))
        self.assertEqual((problem.v_shape(), problem.o_shape()), ((1, 4, 20, 32), (1, 16, 10, 32)))
        self.assertEqual((problem.scale, problem.num_ops), (0.125, 2 * 16 * 10 * 20 * 96))
        self.assertEqual(f"{FmhaProblem(np.int64(2)).num_ops:,}", "134,217,728")
        with self.assertRaises(AttributeError):
            problem.scale = 1.0
        self.assertEqual(FmhaProblem(3, 4), FmhaProblem(batch=3, nhead_q=4))

    def test_specs(self):
        spec = FmhaKernelSpec(name="small", hdim=64, pipeline="qr", tile_m0=64, tile_n0=32, tile_k0=16)
        config = spec_to_config(spec, "bf16", "gfx942")
        self.assertEqual(config, spec_to_config(spec, dtype="bf16", arch="gfx942"))
        self.assertEqual((config.data_type, config.gfx_arch, config.hdim_v, config.tile), ("bf16", "gfx942", 64, (64, 32, 16, 64, 16, 64)))
        self.assertEqual(spec_to_config(FmhaKernelSpec("plain")), FmhaKernelConfig())

    def test_splits(self):
        for arguments, splits in (((1, 1, 1), 1), ((64, 8, 128), 1), ((2, 16, 1), 16), ((4, 33, 128), 2)):
            self.assertEqual(num_splits_heuristic_ck(*arguments), splits, arguments)


class Results(unittest.TestCase):
    def test_order_of_fields(self):
        self.assertEqual(FmhaResult(True, 1, 2.0, 3.0, "x").error, "x")
        empty = FmhaSetupResult(False)
        self.assertEqual((empty.config, empty.runner, empty.library_path, empty.error, empty.build_time_s), (None, None, "", "", 0.0))
        self.assertEqual(FmhaResult(False).error[:80], "")

    def test_the_validator(self):
        validator = FmhaValidator(rtol=0.0, atol=0.1)
        close, absolute, relative = validator.check(np.float16([1.0, 2.0]), np.float32([1.0, 2.5]))
        self.assertEqual((type(close), close, absolute), (bool, False, 0.5))
        self.assertAlmostEqual(relative, 0.2, places=5)
        self.assertTrue(validator.check(np.ones(3), np.ones(3) + 0.05)[0])
        self.assertFalse(FmhaValidator().check(np.array([np.nan, 1]), np.ones(2))[0])
        self.assertFalse(FmhaValidator().check(np.array([np.nan]), np.array([np.nan]))[0])
        self.assertEqual((FmhaValidator().rtol, FmhaValidator().atol), (1e-2, 1e-2))
        for output, other in ((np.zeros(0), np.zeros(0)), (np.zeros(2), np.zeros(3))):
            with self.assertRaises(ValueError):
                validator.check(output, other)


class Contracts(unittest.TestCase):
    def test_kinds(self):
        from fmha_dtype_contract import (FmhaDTypeContractKind as Kind, dtype_contract_from_components,
                                         dtype_contract_from_data_type, dtype_contract_from_signature)
        for token, kind in (("fp16", Kind.HOMOGENEOUS), ("half", Kind.HOMOGENEOUS), ("fp8bf16", Kind.ALL_FP8_WITH_BF16_OUTPUT),
                            ("fp8fp32", Kind.ALL_FP8_WITH_FP32_OUTPUT), ("mxfp8", Kind.ALL_FP8_WITH_FP32_OUTPUT), ("fp8fp16", Kind.UNSUPPORTED)):
            self.assertEqual(dtype_contract_from_data_type(token).kind, kind, token)
        mixed = dtype_contract_from_components("bf16", "bfloat16", "uint8", "uint8", "bf16")
        self.assertEqual((mixed.kind, mixed.uses_fp8_kv), (Kind.MIXED_Q_FP8_KV, True))
        self.assertEqual(mixed, dtype_contract_from_signature({"data_type": "bf16", "kv_dtype": "fp8"}))
        self.assertEqual(len({mixed, dtype_contract_from_data_type("bf16")}), 2)

    def test_mixed_batch_prefill_is_refused(self):
        codes, half = np.zeros(2, np.uint8), np.zeros(2, np.float16)
        check = fmha_utils._validate_batch_prefill_input_dtypes
        for words in ("does not yet support mixed Q/KV dtypes", "mixed activation/FP8-KV dtype contract", "AITER paged_attention_ragged"):
            with self.assertRaisesRegex(ValueError, words):
                check("batch_prefill", "bf16", half, codes, codes)
        check("fwd", "bf16", half, codes, codes)
        check("batch_prefill", "fp8bf16", codes, codes, codes)
        self.assertEqual(fmha_utils.get_batch_prefill_dtype_contract("fp16", half, codes, codes).kind.value, "mixed_q_fp8_kv")


class Tools(unittest.TestCase):
    def test_compile_flags(self):
        flags = fmha_utils.fmha_compile_flags
        for call in (flags("gfx950", "/x/hipcc", family="fwd"), flags("gfx950", family="fwd"), flags("gfx950", "/x/hipcc", "bwd_dq_dk_dv")):
            self.assertEqual(call.count("--offload-arch=gfx950"), 1)
        self.assertEqual(flags("gfx942", "/x/hipcc")[0], "/x/hipcc")
        self.assertTrue(any("BFLOAT16" in flag for flag in flags("gfx950", "", "bwd_dot_do_o")))
        self.assertFalse(any("BFLOAT16" in flag for flag in flags("gfx950", "", "fwd")))
        self.assertEqual(sum("UNIFIED_FRAMEWORK=0" in flag for flag in flags("gfx1250:xnack-")), 1)
        self.assertFalse(any("UNIFIED" in flag for flag in flags("gfx942") + flags("gfx950")))

    def test_bfloat16(self):
        bits = fmha_utils._float32_to_bf16(np.array([[1.0, 1 + 3 * 2.0**-8]], np.float32))
        self.assertEqual((bits.dtype, bits.tolist()), (np.uint16, [[0x3F80, 0x3F82]]))
        self.assertEqual(fmha_utils._bf16_to_float32(bits).tolist(), [[1.0, 1.015625]])

    def test_attributes_that_clients_replace(self):
        for name in ("_find_hipcc", "_find_static_lib", "get_dispatcher_root", "subprocess", "FmhaRunner"):
            self.assertTrue(hasattr(fmha_utils, name), name)
        self.assertTrue((fmha_utils.get_dispatcher_root() / "python" / "fmha_utils.py").is_file())

    def test_quantised_pages(self):
        from fmha import formats
        q, k, v = (np.random.default_rng(3).standard_normal(shape).astype(np.float32) for shape in
                   ((2, 4, 5, 32), (2, 2, 50, 32), (2, 2, 50, 16)))
        told = fmha_utils.quantize_pack_per_token_head(q, k, v, 16)
        self.assertEqual([told[name].shape for name in ("q_fp8", "k_fp8", "v_fp8", "q_descale", "k_descale", "v_descale")],
                         [(10, 4, 32), (8, 2, 16, 32), (8, 2, 16, 16), (10, 4), (8, 16, 2), (2,)])
        first = formats.decode(told["k_fp8"], formats.E4M3)[5] * told["k_descale"][5].T[:, :, None]  # page 1 of entry 1
        np.testing.assert_allclose(first, k[1, :, 16:32], atol=0.2)
        self.assertTrue((told["k_descale"][3, 2:] == 1).all(), "keys that do not exist have the factor 1")
        vectors = fmha_utils.quantize_pack_pertensor(q, k, v, 16, layout="vectorized")
        self.assertEqual((vectors["k_fp8"].shape, vectors["v_fp8"].shape), ((8, 2, 2, 16, 16), (8, 2, 1, 16, 16)))
        linear = fmha_utils.quantize_pack_pertensor(q, k, v, 16)
        self.assertEqual(vectors["k_fp8"][2, 1, 1, 7, 3], linear["k_fp8"][2, 1, 7, 19])
        self.assertEqual(vectors["v_fp8"][2, 1, 0, 7, 3], linear["v_fp8"][2, 1, 3, 7])

    def test_what_is_quantised(self):
        q, k = np.ones((1, 2, 3, 16), np.float32), np.ones((1, 1, 4, 16), np.float32)
        for pack in (fmha_utils.quantize_pack_per_token_head, fmha_utils.quantize_pack_pertensor):
            for arrays, words in (((q.astype(np.uint8), k, k), "Q holds uint8; floats are needed"), ((q, k[0], k), r"K has shape \[1, 4, 16\]")):
                with self.assertRaisesRegex(ValueError, words):
                    pack(*arrays, 16)
            with self.assertRaisesRegex(ValueError, "page_size is 1.5; a whole number is needed"):
                pack(q, k, k, 1.5)
            none = pack(q, k[:, :, :0], k[:, :, :0], 16)
            self.assertEqual((none["k_fp8"].shape, none["q_fp8"].shape), ((0, 1, 16, 16), (3, 2, 16)))


class Architectures(unittest.TestCase):
    def test_kernel_driver_files(self):
        import tempfile
        from pathlib import Path
        from fmha import arch
        with tempfile.TemporaryDirectory() as folder:
            for node, text in (("0", "cpu_cores_count 8\ngfx_target_version 0\n"), ("1", "simd_count 4\ngfx_target_version 90402\n")):
                (Path(folder) / node).mkdir()
                (Path(folder) / node / "properties").write_text(text)
            self.assertEqual(arch.amd_arch(Path(folder)), "gfx942")
            (Path(folder) / "1" / "properties").write_text("gfx_target_version 90010\n")
            self.assertEqual(arch.amd_arch(Path(folder)), "gfx90a")
            (Path(folder) / "1" / "properties").write_text("gfx_target_version 120001\n")
            self.assertEqual(arch.amd_arch(Path(folder)), "gfx1201")
        self.assertIsNone(arch.amd_arch(Path("/nonexistent")))
        self.assertEqual(fmha_utils.detect_gpu_arch("gfx1100"), arch.device_arch() or "gfx1100")


if __name__ == "__main__":
    unittest.main()
