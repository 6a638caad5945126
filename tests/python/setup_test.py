"""Set-ups: which kernel is chosen, what is cached, what is said when it fails. A stand-in for the command `fmha` plays the compiler."""

import json
import os
import stat
import sys
import tempfile
import unittest
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np

import fmha
from common import random_arrays, softmax_attention
from fmha import arch, choose, find
from fmha.layer import jit
from fmha_utils import (FmhaKernelConfig, FmhaKernelSpec, FmhaProblem, FmhaRegistry, FmhaRunner, setup_fmha_dispatcher,
                        setup_multiple_fmha_dispatchers, spec_to_config)


def config_of(**fields):
    return FmhaKernelConfig(**{"gfx_arch": "gfx950"} | fields)


class Choosing(unittest.TestCase):
    def chosen(self, **fields):
        return choose.choose(jit._catalogue(), config_of(**fields))

    def test_a_kernel_that_exists_is_taken_as_it_is(self):
        choice = self.chosen()
        self.assertEqual(choice.notes, [])
        self.assertIn("fp16_batch_h128x128_qr_async_t128x128x32x128x32x128_", choice.kernel["name"])
        self.assertEqual(choice.names, [choice.kernel["name"]])

    def test_tiles_follow_the_head_sizes(self):
        for size in (32, 64, 128, 256):
            self.assertEqual(self.chosen(hdim_q=size, hdim_v=size).kernel["signature"]["hdim_q"], size)
        self.assertEqual(choose.wished_tile(config_of(hdim_q=64, hdim_v=32)), (128, 128, 32, 32, 32, 64))
        self.assertEqual(choose.wished_tile(config_of(hdim_q=64, tile_n1=96, tile_k0max=96))[3::2], (96, 96))

    def test_what_is_not_met_is_told(self):
        notes = self.chosen(tile_m0=32, pipeline="qr_async", data_type="fp32").notes
        self.assertTrue(any(note.startswith("pipeline qr_async does not exist here; qr runs") for note in notes), notes)
        self.assertTrue(any(note.startswith("tile 32x128") for note in notes), notes)
        self.assertIn("block_per_cu 3 does not exist here", self.chosen(block_per_cu=3).notes[0])

    def test_the_nearest_tile(self):
        for rows, keys, pipeline in ((16, 32, "qr_async_trload"), (64, 128, "qr_async"), (128, 128, "qr_async")):
            choice = self.chosen(tile_m0=rows, tile_n0=keys, pipeline=pipeline)
            self.assertEqual(choice.kernel["algorithm"]["tile"]["m0"], rows)

    def test_beside_a_kernel_that_takes_some_problems_stands_one_that_takes_all(self):
        choice = self.chosen(tile_m0=64)
        self.assertNotEqual(choice.kernel["algorithm"]["constraint"], "")
        self.assertEqual([other["algorithm"]["constraint"] for other in choice.companions], [""])
        self.assertIn("takes problems with blocks64_le_cus only; others run on fwd_", choice.notes[0])
        runner = setup_fmha_dispatcher(config_of(tile_m0=64)).runner
        ran = set()
        for heads in (1, 512):
            problem = FmhaProblem(1, heads, heads, 8, 8, 128, 128)
            arrays = random_arrays(heads, problem.q_shape(), problem.k_shape(), problem.v_shape())
            result = runner.run(*arrays, problem)
            np.testing.assert_allclose(result.output, softmax_attention(*arrays)[0], atol=3e-3)
            ran.add(result.kernel)
        self.assertEqual(ran, set(choice.names))

    def test_kernels_of_short_queries_have_company_too(self):
        choice = self.chosen(tile_m0=64, gfx_arch="sm_90")
        self.assertEqual(choice.kernel["algorithm"]["max_seq_len_q"], 64)
        self.assertEqual([other["algorithm"]["max_seq_len_q"] for other in choice.companions], [0])
        self.assertIn("takes problems with seqlen_q <= 64 only", choice.notes[0])

    def test_where_none_takes_all_the_two_halves_stand_together(self):
        for rows, limits in ((128, ["max_seqlen_q_gt_16", ""]), (16, ["rows_of_even_groups", "", "max_seqlen_q_gt_16"])):
            choice = self.chosen(family="fwd_pagedkv", pipeline="qr_pagedkv", tile_m0=rows, gfx_arch="sm_90")
            self.assertEqual([kernel["algorithm"]["constraint"] for kernel in (choice.kernel, *choice.companions)], limits, rows)
            self.assertIn("; others run on fwd_pagedkv_sm_90_", choice.notes[0])

    def test_kernels_that_cannot_take_the_head_size_are_left_out(self):
        choice = self.chosen(gfx_arch="gfx1100")
        self.assertEqual(choice.kernel["signature"]["hdim_q"], 128)
        self.assertNotIn("hdim_not_128", " ".join(choice.names))

    def test_what_a_kernel_computes_is_never_exchanged(self):
        for fields in ({"mask": "top_left"}, {"mask": "generic"}, {"bias": "alibi"}, {"bias": "bias"}, {"lse": True}, {"dropout": True},
                       {"logits": True}, {"vlayout": "c", "pipeline": "qr"}, {"mode": "group"}, {"data_type": "bf16"}):
            signature = self.chosen(**fields).kernel["signature"]
            plain = self.chosen().kernel["signature"]
            changed = {name for name in plain if plain[name] != signature[name]}
            self.assertTrue(changed and changed <= {"mask", "bias", "has_lse", "has_dropout", "has_logits_soft_cap", "v_layout", "mode",
                                                    "data_type", "is_store_randval", "has_sink", "has_sink_logit", "skip_min_seqlen_q"},
                            (fields, changed))

    def test_a_wish_that_nobody_meets_is_named(self):
        for fields, words in (({"family": "bwd"}, "family 'bwd' is not known; allowed: fwd"), ({"data_type": "int8"}, "data_type 'int8'"),
                              ({"mask": "diagonal"}, "mask 'diagonal' is not known; allowed: no, top_left"), ({"hdim_q": 512, "hdim_v": 512}, "hdim_q >= 512"),
                              ({"logits": True, "bias": "alibi"}, "has_logits_soft_cap True"), ({"data_type": "mxfp8", "gfx_arch": "gfx942"}, "no kernel of gfx942"),
                              ({"family": "batch_prefill", "mode": "group", "page_size": 3}, "page_size 3; there is"),
                              ({"mode": "ragged"}, "mode 'ragged'"), ({"pad_s": 5}, "pad_s is 5; allowed: 0, 1$"),
                              ({"pad_sk": 8}, "pad_sk is 8; allowed: 0, 1$"), ({"pad_dv": -1}, "pad_dv is -1; allowed: 0, 1, 8$")):
            with self.assertRaisesRegex(choose.NoKernel, words):
                self.chosen(**fields)

    def test_stages_come_together(self):
        names = self.chosen(family="fwd_splitkv", pipeline="qr").names
        self.assertEqual({name.split("_gfx950")[0] for name in names}, {"fwd_splitkv", "fwd_splitkv_combine"})
        names = self.chosen(family="bwd_dq_dk_dv").names
        self.assertEqual({name.split("_gfx950")[0] for name in names}, {"bwd_dq_dk_dv", "bwd_dot_do_o", "bwd_convert_dq"})


class Finding(unittest.TestCase):
    def test_a_library_in_the_working_folder(self):
        """Which the system's loader does not look into when a name has no folder."""
        folder = Path(find.library()).parent
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(folder)
        with mock.patch.dict(os.environ, {"FMHA_LIBRARY_DIR": "."}):
            self.assertEqual(fmha.load().path, str(folder.resolve() / "libfmha.so"))
            self.assertEqual(Path(find.library("fmha_reference")), folder.resolve() / "libfmha_reference.so")
        self.assertGreater(FmhaRunner.from_library("libfmha.so", "gfx950").kernel_count, 0)

    def test_an_architecture_from_what_is_no_text(self):
        with tempfile.TemporaryDirectory() as folder:
            for node, content in (("0", b"\xff\xfe"), ("1", b"gfx_target_version 90402\n")):
                (Path(folder) / node).mkdir()
                (Path(folder) / node / "properties").write_bytes(content)
            self.assertEqual(arch.amd_arch(Path(folder)), "gfx942")


class OnTheHost(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_one(self):
        result = setup_fmha_dispatcher(config_of(), output_dir=self.folder.name)
        self.assertTrue(result.success, result.error)
        self.assertEqual((result.error, result.target, result.config), ("", "host", config_of()))
        self.assertGreater(result.build_time_s, 0)
        self.assertEqual(Path(result.library_path).parent, Path(self.folder.name))
        self.assertTrue(Path(result.library_path).is_file())
        again = setup_fmha_dispatcher(config_of(), Path(self.folder.name) / "new" / "folder", True)
        self.assertTrue(again.success and (Path(self.folder.name) / "new" / "folder").is_dir())

    def test_changes_of_the_callers_object_do_not_reach_the_runner(self):
        config = config_of()
        result = setup_fmha_dispatcher(config, self.folder.name)
        config.data_type = "bf16"
        result.config.data_type = "bf16"
        self.assertEqual(result.runner.config.data_type, "fp16")

    def test_texts_that_are_no_names_of_files(self):
        for tag in ("../../../../tmp/elsewhere", "x" * 300, "a\0b", "\udc80", "a b"):
            for result in (setup_fmha_dispatcher(config_of(tile_tag=tag), self.folder.name),
                           *setup_multiple_fmha_dispatchers([config_of(tile_tag=tag)], self.folder.name)):
                self.assertTrue(result.success, result.error)
                self.assertIn(Path(self.folder.name), Path(result.library_path).resolve().parents)
                self.assertRegex(Path(result.library_path).name, "^libdispatcher_fmha_fmha_fwd_fp16_[A-Za-z0-9_.=-]*.json$")
                self.assertEqual(FmhaRunner.from_library(result.library_path).kernel_count, 1)
        self.assertIn("bpc=-1.json", setup_fmha_dispatcher(config_of(), self.folder.name).library_path)

    def test_many(self):
        configs = [config_of(), config_of(family="bwd"), config_of(hdim_q=64, hdim_v=64), config_of()]
        told = []
        results = setup_multiple_fmha_dispatchers(configs, self.folder.name, True, 2, None, lambda *stage: told.append(stage))
        self.assertEqual([result.success for result in results], [True, False, True, True])
        self.assertEqual([result.config for result in results], configs)
        self.assertIn("'bwd'", results[1].error)
        self.assertIsNone(results[1].runner)
        self.assertEqual(told, [("codegen", i, 4) for i in (1, 2, 3, 4)])
        self.assertIsNot(results[0], results[3])
        self.assertTrue(all(Path(result.library_path).parent.parent == Path(self.folder.name) for result in results if result.success))
        problem = FmhaProblem(1, 2, 2, 20, 30, 64, 64)
        arrays = random_arrays(1, problem.q_shape(), problem.k_shape(), problem.v_shape())
        run = results[2].runner.run(*arrays, problem)
        np.testing.assert_allclose(run.output, softmax_attention(*arrays)[0], atol=3e-3)
        self.assertEqual(setup_multiple_fmha_dispatchers([]), [])

    def test_configurations_of_one_name_have_records_of_their_own(self):
        """The two flavours of e4m3 read 0x38 as 0.5 (gfx942) and as 1."""
        configs = [config_of(data_type="fp8bf16", gfx_arch=arch) for arch in ("gfx942", "gfx950")]
        configs += [config_of(**{field: value}) for field, value in (("vlayout", "c"), ("wave_m0", 2), ("warp_m1", 16), ("num_wave_groups", 2),
                                                                     ("use_trload", True), ("tile_bwd6", 1))]
        results = setup_multiple_fmha_dispatchers(configs, self.folder.name)
        self.assertEqual([result.error for result in results], [""] * len(configs))
        self.assertEqual(len({result.library_path for result in results}), len(configs))
        bits, problem = np.full((1, 1, 4, 128), 0x38, np.uint8), FmhaProblem(1, 1, 1, 4, 4, 128, 128)
        runs = [FmhaRunner.from_library(result.library_path).run(bits, bits, bits, problem) for result in results[:2]]
        self.assertEqual([run.error for run in runs], ["", ""])
        self.assertEqual([float(run.output.max()) for run in runs], [0.5, 1.0])
        single = [setup_fmha_dispatcher(config, self.folder.name).library_path for config in configs]
        self.assertEqual(len(set(single)), len(configs), "one folder for all")

    def test_threads_set_up_the_same(self):
        """Each writes the record, whole, and none takes away what another writes."""
        switching = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        self.addCleanup(sys.setswitchinterval, switching)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: setup_multiple_fmha_dispatchers([config_of()], self.folder.name)[0], range(160)))
        self.assertEqual({result.error for result in results}, {""})

    def test_every_spec_of_small_tiles_builds(self):
        specs = [FmhaKernelSpec(name=f"{hdim} {pipeline} {rows}", hdim=hdim, pipeline=pipeline, tile_m0=rows, tile_n0=64, tile_k0=32)
                 for hdim in (64, 128) for pipeline in ("qr", "qr_async") for rows in (64, 128)]
        registry = FmhaRegistry(name="specs")
        for spec in specs:
            registry.register_kernel(spec_to_config(spec, "fp16", "gfx950"))
        self.assertEqual(len(registry), 8)
        self.assertEqual([result.error for result in registry.build(verbose=False, max_workers=None)], [""] * 8)
        self.assertEqual(FmhaRegistry("empty").build(), [])
        self.assertFalse(FmhaRegistry())

    def test_nothing_raises(self):
        for config, words in ((config_of(gfx_arch="gfx000"), "gfx000"), (config_of(gfx_arch=""), "arch"), (config_of(qscale="odd"), "qscale 'odd'"),
                              ("text", "config is a str"), (config_of(hdim_q="wide"), "")):
            result = setup_fmha_dispatcher(config, self.folder.name)
            self.assertFalse(result.success)
            self.assertRegex(result.error, words or ".")
            self.assertFalse(setup_multiple_fmha_dispatchers([config], self.folder.name)[0].success)
        blocked = Path(self.folder.name) / "file"
        blocked.write_text("")
        self.assertIn("file", setup_fmha_dispatcher(config_of(), blocked / "below").error)
        for folder in (blocked / "below", "a\0b", b"bytes", 5):
            for result in (setup_fmha_dispatcher(config_of(), folder), *setup_multiple_fmha_dispatchers([config_of()], folder)):
                self.assertFalse(result.success)
                self.assertRegex(result.error, "^folder '.*' cannot be made: |^output_dir is .*; a str or a Path is needed$")

    def test_a_record_that_is_none(self):
        broken = Path(self.folder.name) / "broken.json"
        for text in ("{", "{}", json.dumps({"config": {"nonsense": 1}})):
            broken.write_text(text)
            with self.assertRaisesRegex(OSError, "is no set-up"):
                FmhaRunner.from_library(str(broken))
        good = setup_fmha_dispatcher(config_of(), self.folder.name).library_path
        for change, words in (({"where": 5}, "where is 5"), ({"target": "moon"}, "target is 'moon'; allowed: host, device"),
                              ({"target": "device"}, "kernels_dir is None"), ({"config": {"gfx_arch": 5}}, "gfx_arch is 5"),
                              ({"config": {"lse": 2}}, "lse is 2; allowed: 0 and 1")):
            broken.write_text(json.dumps(json.loads(Path(good).read_text()) | change))
            with self.assertRaisesRegex(OSError, f"is no set-up: {words}"):
                FmhaRunner.from_library(str(broken))
        with self.assertRaisesRegex(RuntimeError, "gfx950, not for gfx942"):
            FmhaRunner.from_library(good, "gfx942")


STAND_IN = """#!/bin/sh
# Plays `fmha build`: notes its call, then does what the file beside it says.
echo "$*" >> "{folder}/calls"
. "{folder}/behaviour"
"""


class Compiling(unittest.TestCase):
    """With FMHA_TARGET=device kernels are compiled; loading them needs a GPU, so that these end at loading or before."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        command = self.folder / "fmha"
        command.write_text(STAND_IN.format(folder=self.folder))
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        changed = mock.patch.dict(os.environ, {"FMHA_TARGET": "device", "FMHA_COMMAND": str(command), "FMHA_HIP_PLUGIN_DIR": str(self.folder)})
        changed.start()
        self.addCleanup(changed.stop)

    def behave(self, script):
        (self.folder / "behaviour").write_text(script)

    def calls(self):
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.is_file() else []

    GOOD = 'while [ "$1" != --out ]; do shift; done; mkdir -p "$2"; exit 0'

    def test_the_compilers_words_are_in_the_error(self):
        self.behave("echo 'q.hip:7: error: no such instruction v_mfma' >&2; exit 1")
        for result in (setup_fmha_dispatcher(config_of(), self.folder / "one"),
                       setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")[0]):
            self.assertFalse(result.success)
            self.assertIn("kernel compile failed: q.hip:7: error: no such instruction v_mfma", result.error)
        self.assertEqual(len(self.calls()), 2, "a failure is not remembered")

    def test_words_that_are_no_utf8(self):
        self.behave("printf 'q\\377.hip:7: error' >&2; exit 1")
        for result in (setup_fmha_dispatcher(config_of(), self.folder / "one"),
                       setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")[0]):
            self.assertIn("kernel compile failed: q\ufffd.hip:7: error", result.error)

    def test_nothing_raises(self):
        self.behave(self.GOOD)
        blocked = self.folder / "file"
        blocked.write_text("")
        for result in (setup_fmha_dispatcher(config_of(), blocked), *setup_multiple_fmha_dispatchers([config_of()], blocked)):
            self.assertRegex(result.error, "^folder '.*/file.*' cannot be made: (File exists|Not a directory)$")
        with mock.patch.dict(os.environ, {"FMHA_BUILD_OPTIONS": "--cache 'a"}):
            for result in (setup_fmha_dispatcher(config_of(), self.folder / "one"),
                           *setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")):
                self.assertEqual(result.error, """FMHA_BUILD_OPTIONS is "--cache 'a"; no options of a shell: No closing quotation""")
        self.assertEqual(self.calls(), [])

    def test_a_folder_stays_where_it_was_named(self):
        """Relative to the working folder of the call, whatever that is when the runner or its record is opened."""
        self.behave(self.GOOD)
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        result = setup_multiple_fmha_dispatchers([config_of()], "many")[0]
        record = Path(result.library_path).resolve()
        os.chdir(here)
        opened = []
        with mock.patch.object(jit, "Context", lambda library, **told: opened.append(told["kernels_dir"])):
            for runner in (result.runner, FmhaRunner.from_library(record)):
                runner._opened()
        self.assertEqual(opened, [str(next(record.parent.glob("kernels-*")))] * 2)

    def test_what_is_asked_of_the_command(self):
        self.behave("exit 1")
        choice = choose.choose(jit._catalogue(), config_of())
        setup_fmha_dispatcher(config_of(), self.folder / "one")
        line = self.calls()[0]
        self.assertTrue(line.startswith("build --arch gfx950 --family fwd --where c.name in ['" + choice.names[0] + "'] --out"), line)
        setup_fmha_dispatcher(config_of(family="fwd_splitkv"), self.folder / "two")
        self.assertIn("--family fwd_splitkv,fwd_splitkv_combine", self.calls()[1])

    def test_compiled_once_and_again_when_something_changed(self):
        self.behave(self.GOOD)
        for _ in range(2):
            self.assertTrue(setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")[0].success)
        self.assertEqual(len(self.calls()), 1)
        next(self.folder.glob("many/*/kernels-*/fmha-key.json")).write_bytes(b"\xff")
        self.assertTrue(setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")[0].success)
        self.assertEqual(len(self.calls()), 2, "a spoiled key is none")
        with mock.patch.dict(os.environ, {"FMHA_BUILD_OPTIONS": "--no-cache"}):
            setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")
        self.assertTrue(self.calls()[2].endswith("--no-cache"))
        setup_multiple_fmha_dispatchers([config_of(vlayout="c", pipeline="qr"), config_of(vlayout="r", pipeline="qr")], self.folder / "many")
        self.assertEqual(len(self.calls()), 5, "configurations of one name are not one")

    def test_equal_configurations_compile_once_and_progress_is_told(self):
        self.behave(self.GOOD)
        told = []
        results = setup_multiple_fmha_dispatchers([config_of(), config_of(), config_of(hdim_q=64, hdim_v=64)], self.folder / "many",
                                                  max_workers=2, progress_callback=lambda *stage: told.append(stage))
        self.assertTrue(all(result.success for result in results))
        self.assertEqual([stage for stage in told if stage[0] == "compile"], [("compile", 1, 2), ("compile", 2, 2)])
        self.assertEqual(len(self.calls()), 2)

    def test_no_number_of_workers_raises(self):
        self.behave(self.GOOD)
        for workers in (0, -1):
            results = setup_multiple_fmha_dispatchers([config_of()], self.folder / str(workers), max_workers=workers)
            self.assertEqual([result.error for result in results], [""])

    def test_pools_of_the_caller(self):
        self.behave(self.GOOD)
        for number, kind in enumerate((ThreadPoolExecutor, ProcessPoolExecutor)):
            with kind(2) as pool:
                results = setup_multiple_fmha_dispatchers([config_of(), config_of(mask="top_left")], self.folder / str(number), executor=pool)
                self.assertTrue(all(result.success for result in results), results[0].error)
                self.assertEqual(list(pool.map(abs, [-1])), [1], "the pool was shut down")
        self.assertEqual(len(self.calls()), 4)

    def test_loading_without_a_gpu(self):
        self.behave(self.GOOD)
        result = setup_fmha_dispatcher(config_of(), self.folder / "one")
        self.assertFalse(result.success)
        self.assertTrue(result.error.startswith("Load failed: "), result.error)
        runner = setup_multiple_fmha_dispatchers([config_of()], self.folder / "many")[0].runner
        run = runner.run(*random_arrays(1, *[(1, 1, 8, 128)] * 3), FmhaProblem(1, 1, 1, 8, 8, 128, 128))
        self.assertFalse(run.success)

    def test_without_a_command(self):
        with mock.patch.dict(os.environ, {"FMHA_COMMAND": "/nonexistent/fmha"}):
            self.assertIn("/nonexistent/fmha: No such file", setup_fmha_dispatcher(config_of(), self.folder / "one").error)
        with mock.patch("fmha.find.command", return_value=None):
            self.assertIn("command fmha", setup_fmha_dispatcher(config_of(), self.folder / "two").error)
        with mock.patch.dict(os.environ, {"FMHA_TARGET": "moon"}):
            self.assertIn("FMHA_TARGET is 'moon'; allowed: host, device", setup_fmha_dispatcher(config_of(), self.folder / "three").error)
        for number in ("first", "-1", ""):
            with mock.patch.dict(os.environ, {"FMHA_DEVICE": number}):
                self.assertIn(f"FMHA_DEVICE is {number!r}; allowed: the number of a device", setup_fmha_dispatcher(config_of(), self.folder / "four").error)
        self.assertEqual(self.calls(), [], "nothing is compiled for a device that is not named")


if __name__ == "__main__":
    unittest.main()
