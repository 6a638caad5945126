"""The first day on a GPU, rehearsed: a folder stands in for the system, and one program for fmha, its tests and ROCm's tools. What each
does stands in files, so that every step can fail in every way.

    day_one_test.py TREE [--fmha PROGRAM --plugin FAKE_PLUGIN [--all]]

With a real command the cases run on the emulated machine, and the device comes from a plugin whose GPU is the processor; --all takes every family."""

import argparse
import grp
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

FAKE = r'''#!/bin/sh
here=$(dirname "$0") word=$(basename "$0")
echo "$word $*" >>"$here/calls"
[ "$word" = fmha ] && word=$1
previous=
for part; do
  [ "$previous" = --family ] && word=$word-$part
  [ "$part" = --audit ] && word=audit
  previous=$part
done
[ -e "$here/$word.sleep" ] && sleep "$(cat "$here/$word.sleep")"
general=${word%%-*}
if [ -e "$here/$word.says" ]; then cat "$here/$word.says"
elif [ -e "$here/$general.default" ]; then cat "$here/$general.default"
else echo "$word is well"; fi
[ -e "$here/$word.code" ] && exit "$(cat "$here/$word.code")"
exit 0
'''
GTEST = "\n".join(f"[       OK ] {test} (1 ms)" for test in
                  ("DeviceInstructions.AgreeWithTheirRowsOfTheTable", "Accumulation.OfTheDeviceIsAsPreciseAsKernelsDeclare",
                   "DeviceCodes.AgreeWithTheReference"))
MI300 = [{"platform": "amd", "why_none": "", "devices": [{"name": "AMD Instinct MI300X", "arch": "gfx942", "compute_units": 304}]}]
DEFAULTS = {"devices": json.dumps(MI300), "verify": "4 asked   4 passed   0 failed\nGREEN", "hip_instructions_test": GTEST,
            "hip_codes_test": GTEST, "compare": "14 asked   14 both_right\nGREEN", "rocminfo": "  Name:                    gfx942"}
PROGRAMS = ("fmha", "hip_instructions_test", "hip_codes_test", "rocminfo", "hipcc")


class Rehearsal(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="day_one."))
        self.bin = self.folder / "build" / "bin"
        self.bin.mkdir(parents=True)
        for name in PROGRAMS:
            (self.bin / name).write_text(FAKE)
            (self.bin / name).chmod(0o755)
        for word, says in DEFAULTS.items():
            (self.bin / f"{word}.default").write_text(says + "\n")
        self.system = self.folder / "system"
        for path, text in (("dev/kfd", ""), ("dev/dri/renderD128", ""), ("sys/module/amdgpu/version", "6.12.12\n"),
                           ("opt/rocm/.info/version", "6.4.1-83\n")):
            (self.system / path).parent.mkdir(parents=True, exist_ok=True)
            (self.system / path).write_text(text)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def behave(self, word, **what):
        """What a word does from now on: `says`, `code`, `sleep`."""
        for key, value in what.items():
            (self.bin / f"{word}.{key}").write_text(f"{value}\n")

    def behave_well(self, word):
        for file in self.bin.glob(f"{word}.*"):
            if file.suffix != ".default":
                file.unlink()

    def line(self, *more):
        return [sys.executable, str(TREE / "harness/day_one/day_one.py"), "--out", str(self.folder / "out"), "--system", str(self.system),
                "--build", str(self.folder / "build"), *more]

    def run_it(self, *more, environment=None):
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", **(environment or {})}
        env.pop("ROCM_PATH", None)
        ran = subprocess.run(self.line(*more), capture_output=True, text=True, env=env, timeout=500, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    def calls(self):
        file = self.bin / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def expect(self, sentence, *more, step=None, not_run=(), code=1):
        """One line names the step and says `sentence`; what needs it is not run, and everything else passes."""
        got, out, err = self.run_it(*more)
        self.assertEqual(got, code, out + err)
        failed = [line for line in out.splitlines() if line.startswith("failed")]
        self.assertEqual(len([line for line in failed if sentence in line and (step is None or f" {step} " in line)]), 1, out)
        self.assertEqual(len(failed), 1, out)
        for name in not_run:
            self.assertRegex(out, rf"(?m)^not run  {name} ")

    def test_all_steps_pass_and_the_archive_has_what_was_seen(self):
        code, out, err = self.run_it("--ck-bin", "/ck")
        self.assertEqual(code, 0, out + err)
        self.assertIn("29 passed   0 failed   0 not run", out)
        with tarfile.open(self.folder / "out.tar.gz") as archive:
            names = archive.getnames()
        for name in ("state.json", "machine.json", "rocm.log", "device.log", "hip_codes_test.log", "verify-bwd.log", "bench.log", "beside-bwd.log"):
            self.assertIn(f"out/{name}", names)
        kernels = [call for call in self.calls() if call.startswith("fmha build ")]
        self.assertEqual(len(kernels), 13)
        self.assertTrue(all(f"--family {family}" in kernels[-1] for family in ("fwd", "splitkv", "pagedkv", "appendkv", "batch_prefill", "bwd")))
        (timed,) = [call for call in self.calls() if call.startswith("fmha bench ")]
        self.assertIn("bench fwd/day_one fwd_splitkv/day_one fwd_pagedkv/day_one fwd_appendkv/day_one batch_prefill/day_one bwd/day_one", timed)
        self.assertTrue(all("--arch gfx942" in call for call in kernels))
        self.assertEqual(len([call for call in kernels if "--audit" in call]), 6)
        verify = [call for call in self.calls() if call.startswith("fmha verify ")]
        self.assertTrue(all("--target hip --device 0" in call and "--journal" in call for call in verify))

    def test_what_an_architecture_has_no_kernels_of(self):
        radeon = [{**MI300[0], "devices": [{"name": "AMD Radeon", "arch": "gfx1201", "compute_units": 64}]}]
        self.behave("devices", says=json.dumps(radeon))
        self.behave("rocminfo", says="  Name:                    gfx1201")
        code, out, err = self.run_it("--family", "batch_prefill", "--family", "bwd")
        self.assertEqual(code, 0, out + err)
        for step in ("kernels", "verify", "audit"):
            self.assertRegex(out, rf"(?m)^passed   {step}-batch_prefill +gfx1201 has no kernel of batch_prefill$")
        self.assertFalse([call for call in self.calls() if "batch_prefill" in call])

    def test_architecture_files_reach_every_command_that_plans(self):
        code, out, err = self.run_it("--arch-dir", str(self.system), "--ck-bin", "/ck")
        self.assertEqual(code, 0, out + err)
        planning = [call for call in self.calls() if call.startswith(("fmha build", "fmha verify", "fmha bench", "fmha compare"))]
        self.assertTrue(planning and all(f"--arch-dir {self.system}" in call for call in planning))
        self.assertEqual(self.run_it("--arch-dir", str(self.folder / "nowhere"))[0], 2)

    def test_a_second_run_repeats_nothing(self):
        self.assertEqual(self.run_it()[0], 0)
        before = self.calls()
        code, out, _ = self.run_it()
        self.assertEqual((code, self.calls()), (0, before))
        self.assertIn("(earlier)", out)
        self.assertEqual(self.run_it("--again", "verify-bwd")[0], 0)
        self.assertEqual(len(self.calls()), len(before) + 1)

    def test_a_failed_step_is_repeated_and_the_rest_is_not(self):
        self.behave("verify-bwd", says="3 asked   2 passed   1 failed\nFAILED bwd/masks@1\nRED", code=1)
        self.expect("FAILED bwd/masks@1", step="verify-bwd")
        before = len(self.calls())
        self.behave_well("verify-bwd")
        self.assertEqual(self.run_it()[0], 0)
        self.assertEqual(len(self.calls()), before + 1)

    def test_without_the_driver(self):
        (self.system / "dev/kfd").unlink()
        self.expect("there is no /dev/kfd: the amdgpu kernel driver is not loaded", step="driver",
                    not_run=("rocm", "device", "instructions", "verify-fwd", "bench"))

    def test_a_machine_of_nvidia(self):
        (self.system / "dev/kfd").unlink()
        (self.system / "dev/nvidiactl").touch()
        self.expect("there is no /dev/kfd, but NVIDIA's driver: these steps are for AMD's GPUs; docs/gpu.md", step="driver",
                    not_run=("rocm", "device", "instructions", "kernels-fwd", "verify-bwd"))

    def test_groups_and_users_without_a_name(self):
        """As in a container that was given numbers of its host."""
        self.assertEqual(name_of(4294967000, lambda number: grp.getgrgid(number).gr_name), "4294967000")
        self.assertEqual(name_of(0, lambda number: grp.getgrgid(number).gr_name), "root")

    def test_without_a_render_node(self):
        (self.system / "dev/dri/renderD128").unlink()
        self.expect("there is no /dev/dri/renderD*", step="driver", not_run=("rocm",))

    def test_without_rights(self):
        if os.geteuid() == 0:
            self.skipTest("root may open everything")
        (self.system / "dev/kfd").chmod(0)
        self.expect("sudo usermod -aG render,video", step="driver")

    def test_rocm_that_sees_no_gpu(self):
        self.behave("rocminfo", says="ROCk module is loaded")
        self.expect("rocminfo lists no gfx agent", step="rocm")

    def test_rocm_that_is_missing(self):
        (self.bin / "rocminfo").unlink()
        self.expect("rocminfo does not start: No such file or directory", step="rocm")

    def test_rocm_that_is_not_on_the_path(self):
        moved = self.system / "opt/rocm-6.4.1"
        (self.system / "opt/rocm").rename(moved)
        (moved / "bin").mkdir()
        (self.bin / "rocminfo").rename(moved / "bin/rocminfo")
        (self.bin / "rocminfo.default").rename(moved / "bin/rocminfo.default")
        code, out, err = self.run_it("--family", "fwd")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"(?m)^passed   rocm +gfx942 with ROCm 6.4.1-83$")

    def test_rocm_that_is_too_old(self):
        (self.system / "opt/rocm/.info/version").write_text("5.7.0\n")
        self.expect("ROCm 5.7.0 does not know gfx942: it needs 6.0 at least", step="rocm")

    def test_no_device(self):
        self.behave("devices", says=json.dumps([{"platform": "amd", "why_none": "HIP finds no AMD GPU", "devices": []}]), code=1)
        self.expect("HIP finds no AMD GPU", step="device", not_run=("instructions", "kernels-fwd", "verify-bwd"))

    def test_a_device_of_another_architecture(self):
        self.expect("the device is gfx942 and --arch gfx950", "--arch", "gfx950", step="device")

    def test_a_test_of_the_gpu_that_was_skipped(self):
        name = "DeviceCodes.AgreeWithTheReference"
        self.behave("hip_codes_test", says=GTEST.replace(f"[       OK ] {name}", f"no compiler for gfx942\n[  SKIPPED ] {name}"))
        self.expect(f"{name} did not run on the GPU: no compiler for gfx942", step="codes")

    def test_instructions_that_differ(self):
        self.behave("hip_instructions_test", says="[  FAILED  ] DeviceInstructions.AgreeWithTheirRowsOfTheTable", code=1)
        self.expect("[  FAILED  ] DeviceInstructions", step="instructions")

    def test_kernels_that_do_not_build(self):
        self.behave("build-splitkv", says="error: no such register", code=1)
        self.expect("fmha build ended with 1: error: no such register", step="kernels-fwd_splitkv", not_run=("verify-fwd_splitkv", "audit-fwd_splitkv"))

    def test_kernels_that_spill_are_run_all_the_same(self):
        self.behave("audit", says="error: 12 bytes of scratch", code=1)
        code, out, _ = self.run_it("--family", "bwd")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"(?m)^passed   verify-bwd ")
        self.assertRegex(out, r"(?m)^failed   audit-bwd .*12 bytes of scratch")

    def test_a_run_without_a_verdict(self):
        self.behave("verify-fwd", says="")
        self.expect("there is no verdict: it said nothing", step="verify-fwd")

    def test_a_step_that_hangs(self):
        self.assertEqual(self.run_it("--family", "fwd")[0], 0)
        self.behave("bench", sleep=60)
        self.expect("did not end within 1 s; its output is in bench.log", "--family", "fwd", "--again", "bench", "--limit", "0.0004", step="bench")

    def test_sides_that_differ(self):
        self.behave("compare", says="no_answer fwd/parity@1\n14 asked   14 no_answer\nRED", code=1)
        code, out, _ = self.run_it("--ck-bin", "/ck")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"(?m)^failed   beside-fwd +fmha compare ended with 1: RED")

    def checkout(self):
        """A checkout as far as the script that builds its programs looks at it."""
        root = self.folder / "ck"
        for path in ("example/ck_tile/01_fmha/fmha_fwd.hpp", "build/tile_fmha_fwd_instances.dir/fmha_fwd_api.cpp.o"):
            (root / path).parent.mkdir(parents=True)
            (root / path).touch()
        return root

    def test_the_same_tensors_on_both_sides(self):
        code, out, err = self.run_it("--ck-root", str(self.checkout()))
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"(?m)^passed   checkout +fmha_ck_fwd: 1 objects; fmha_ck_bwd left out")
        self.assertRegex(out, r"(?m)^passed   tensors-bwd +14 asked   14 both_right")
        compare = [call for call in self.calls() if call.startswith("fmha compare ")]
        self.assertEqual(len(compare), 2)
        self.assertTrue(all("--ck-kernels" in call and "--keep" in call and "--kernels-dir" in call for call in compare))
        self.assertTrue(any(call.startswith("hipcc ") and "--offload-arch=gfx942" in call for call in self.calls()))

    def test_a_checkout_that_was_not_built(self):
        root = self.checkout()
        shutil.rmtree(root / "build")
        self.expect(f"{root}/build: there is no such folder", "--ck-root", str(root), step="checkout", not_run=("tensors-fwd", "tensors-bwd"))

    def test_a_checkout_that_does_not_compile(self):
        self.behave("hipcc", says="error: this checkout's structure has no member has_sink", code=1)
        self.expect("has no member has_sink", "--ck-root", str(self.checkout()), step="checkout", not_run=("tensors-fwd",))

    def test_no_build(self):
        (self.bin / "fmha").unlink()
        self.expect("the build is not finished", step="build", not_run=("device", "verify-fwd"))

    def test_an_interrupted_run_goes_on(self):
        self.behave("verify-fwd_pagedkv", sleep=60)
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        process = subprocess.Popen(self.line(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        for _ in range(600):
            if any("verify" in call and "fwd_pagedkv" in call for call in self.calls()):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("interrupted; the same command continues", out)
        self.assertTrue((self.folder / "out.tar.gz").exists())
        self.behave_well("verify-fwd_pagedkv")
        code, out, _ = self.run_it()
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"(?m)^passed   verify-fwd_splitkv .*\(earlier\)$")

    def test_a_folder_of_another_run_is_left_alone(self):
        self.assertEqual(self.run_it("--only", "machine")[0], 0)
        code, _, err = self.run_it("--only", "machine", "--tier", "full")
        self.assertEqual(code, 2)
        self.assertIn("is a run with tier smoke, and this one has full: name another --out", err)
        for state in ("[]", '{"steps": {"machine": 3}}', '{"steps": []}', "\u0000"):
            (self.folder / "out/state.json").write_text(state)
            code, _, err = self.run_it("--only", "machine")
            self.assertEqual((code, len(err.splitlines())), (2, 1), err)
            self.assertIn("is not the state of a run", err)
        (self.folder / "out/state.json").write_text('{"steps": {}, "identity": 7}')
        self.assertEqual(self.run_it("--only", "machine")[0], 2)

    def test_a_folder_that_cannot_be_written(self):
        (self.folder / "out").write_text("a file")
        code, out, err = self.run_it("--only", "machine")
        self.assertEqual((code, out, len(err.splitlines())), (2, "", 1), err)
        self.assertIn(f"--out {self.folder}/out cannot be written: File exists", err)

    def test_an_archive_that_cannot_be_written(self):
        (self.folder / "out.tar.part").mkdir()
        code, out, err = self.run_it("--only", "machine")
        self.assertEqual((code, len(err.splitlines())), (1, 1), err)
        self.assertIn("1 passed", out)
        self.assertIn(f"there is no archive of {self.folder}/out: ", err)

    def test_bad_usage(self):
        code, _, err = self.run_it("--only", "benches")
        self.assertEqual(code, 2)
        self.assertIn("--only benches: there is no such step; allowed: machine, driver", err)
        for line in (("--limit", "0"), ("--limit", "nan"), ("--limit", "inf"), ("--device", "-1")):
            code, _, err = self.run_it(*line)
            self.assertEqual(code, 2)
            self.assertRegex(err.splitlines()[-1], rf"{line[0]} {line[1]}(\.0)?: allowed: ")


class WithTheRealCommand(Rehearsal):
    """The same script, the command itself, the emulated machine, and a device that is the processor."""

    def test_the_cases_of_the_bench_are_cases(self):
        names = write_bench_cases(self.folder, list(BENCH))
        for name, count in zip(names, (6, 2, 2, 2, 2, 2)):
            ran = subprocess.run([str(REAL.fmha), "verify", "--list", "--cases-root", str(self.folder), name], capture_output=True, text=True,
                                 check=False)
            self.assertEqual((ran.returncode, len(ran.stdout.splitlines())), (0, count), ran.stdout + ran.stderr)

    def test_the_lines_can_be_typed(self):
        """Every option of every call is one of its subcommand."""
        self.run_it("--ck-bin", "/ck", "--arch-dir", str(self.system))
        self.run_it("--emulated", "--ck-bin", "/ck", "--arch-dir", str(self.system), "--out", str(self.folder / "emulated"))
        lines = {tuple(shlex.split(call)[1:]) for call in self.calls() if call.startswith("fmha ")}
        self.assertEqual({words[0] for words in lines}, {"devices", "build", "verify", "bench", "compare"})
        pages = {name: help_of(REAL.fmha, name) for name in {words[0] for words in lines}}
        for words in lines:
            self.assertEqual(list(wrong_options(list(words[1:]), pages[words[0]])), [], words)
        self.assertEqual(list(wrong_options(["--family", "fwd", "--familie"], pages["verify"])), ["--familie is no option"])

    def test_cases_on_the_emulated_machine(self):
        (self.bin / "fmha").unlink()
        (self.bin / "fmha").symlink_to(REAL.fmha)
        plugins = self.folder / "plugins"
        plugins.mkdir()
        shutil.copy(REAL.plugin, plugins / "libfmha_hip_amd.so")
        fake = self.folder / "ck"
        fake.mkdir()
        for name in ("tile_example_fmha_fwd", "tile_example_fmha_bwd"):
            (fake / name).write_text("#!/bin/sh\necho ', 0.1 ms, 2 TFlops, 3 GB/s, valid:y'\n")
            (fake / name).chmod(0o755)
        # One folder of cases of each API; of forward alone a single case, and no bench, whose ceiling of memory takes ten seconds.
        cases = {"fwd": "fwd/faults@1"}
        if REAL.all:
            cases |= {"fwd_splitkv": "splitkv/plain", "fwd_pagedkv": "pagedkv/plain", "fwd_appendkv": "appendkv/plain",
                      "batch_prefill": "batch_prefill/plain", "bwd": "bwd/plain"}
        for api, stem in cases.items():
            steps = ["machine", "driver", "rocm", "build", "device", "instructions", f"verify-{api}"]
            if REAL.all and api in ("fwd", "bwd"):
                steps.append(f"beside-{api}")
            if REAL.all and api == "fwd":
                steps.append("bench")
            more = ["--emulated", "--ck-bin", str(fake), "--family", api, "--cases", stem, "--out", str(self.folder / api)]
            for step in steps:
                more += ["--only", step]
            code, out, err = self.run_it(*more, environment={"FMHA_HIP_PLUGIN_DIR": str(plugins), "FMHA_FAKE_ARCH": "gfx942"})
            log = "\n".join(file.read_text()[-2000:] for file in (self.folder / api).glob("*e-*.log"))
            self.assertEqual(code, 0, out + err + log)
            self.assertRegex(out, r"(?m)^passed   device .*gfx942")
            self.assertRegex(out, rf"(?m)^passed   verify-{api} +\d+ asked   [1-9]\d* passed   0 failed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--fmha", type=pathlib.Path)
    parser.add_argument("--plugin", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    REAL = parser.parse_args()
    TREE = REAL.tree.resolve()
    suite = unittest.TestSuite()
    sys.path.insert(0, str(TREE / "harness" / "day_one"))
    from steps import BENCH, name_of, write_bench_cases
    if REAL.fmha:
        sys.path.insert(1, str(TREE / "tests" / "docs"))
        from help_examples import help_of, wrong_options
        suite.addTest(WithTheRealCommand("test_the_lines_can_be_typed"))
        suite.addTest(WithTheRealCommand("test_the_cases_of_the_bench_are_cases"))
        suite.addTest(WithTheRealCommand("test_cases_on_the_emulated_machine"))
    else:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Rehearsal))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
