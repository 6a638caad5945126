"""The steps of the first day. A step takes the run, returns one line, and throws Failed with one sentence."""

import grp
import json
import os
import pathlib
import platform
import pwd
import re
import shutil

from run import TREE, Failed, verdict

# API as case files name it, and as `fmha build` names all kernels behind it.
FAMILIES = (("fwd", "fwd"), ("fwd_splitkv", "splitkv"), ("fwd_pagedkv", "pagedkv"), ("fwd_appendkv", "appendkv"),
            ("batch_prefill", "batch_prefill"), ("bwd", "bwd"))
# The release of ROCm that knows an architecture (docs/gpu.md).
ROCM = {"gfx90a": (5, 2), "gfx942": (6, 0), "gfx950": (7, 0), "gfx1100": (5, 7), "gfx1151": (7, 0), "gfx1201": (6, 4)}
# What upstream lists no kernel for, so that there is nothing to build, verify or time.
NONE = {"batch_prefill": ("gfx1100", "gfx1151", "gfx1201")}
# Cases that the example programs of a checkout compute too.
BESIDE = (("fwd", "fwd/parity"), ("bwd", "bwd/plain"))
# What is timed of each family, tensors packed: shapes of training and of long prompts, of decoding, and of prompts behind a cache.
_HALF = {"stride_padding": 0, "repeats": 2, "dtype": "bf16", "hdim": 128}
_PAGES = {**_HALF, "heads": "32:8", "page_size": 128, "length_form_k": "seqlen"}
_SHAPES = {
    "fwd": {"set": {"stride_padding": 0, "lse": False, "repeats": 2, "sampled_rows": True},
            "pair": {"batch,heads,seqlen,hdim,dtype": [[8, 16, 2048, 128, "bf16"], [8, 32, 2048, 64, "fp16"], [1, 16, 16384, 128, "bf16"]]},
            "each": {"mask": ["0", "t"]}},
    "fwd_splitkv": {"set": {**_PAGES, "batch": 16, "seqlen_q": 1}, "each": {"seqlen_k": [2048, 8192]}},
    "fwd_pagedkv": {"set": {**_PAGES, "batch": 8, "seqlen_q": 512, "seqlen_k": 4096, "sampled_rows": True}, "each": {"mask": ["0", "b"]}},
    "fwd_appendkv": {"set": {**_HALF, "batch": 64, "heads": "32:8", "seqlen_q": 1, "seqlen_k": 4096}, "each": {"rope": ["none", "half_rotated"]}},
    "batch_prefill": {"set": {**_HALF, "mode": "group", "batch": 8, "heads": "32:8", "seqlen": 2048, "page_size": 16, "kv_layout": "linear",
                              "kv_lookup": "sglang_1d", "sampled_rows": True}, "each": {"mask": ["0", "b"]}},
    "bwd": {"set": {**_HALF, "batch": 1, "heads": 16, "seqlen": 2048}, "each": {"mask": ["0", "t"]}}}
BENCH = {api: {"about": "Shapes that the first day times.", "family": api, "tier": "smoke", **shapes, "fill": ["normal"]}
         for api, shapes in _SHAPES.items()}


def machine(run):
    facts = {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count(), "user": user()}
    for name, path in (("memory", "proc/meminfo"), ("processor", "proc/cpuinfo"), ("release", "etc/os-release"), ("kernel", "proc/cmdline")):
        try:
            facts[name] = (run.chosen.system / path).read_text(errors="replace")[:4000]
        except OSError as error:
            facts[name] = f"not readable: {error.strerror}"
    facts["environment"] = {key: value for key, value in os.environ.items() if re.match(r"(ROCM|HIP|HSA|ROCR|GPU|AMD|FMHA)_|PATH$|LD_LIBRARY_PATH$", key)}
    for line in (["git", "-C", TREE, "log", "-1", "--format=%H %cd"], ["git", "-C", TREE, "status", "--short"], ["dmesg"]):
        try:
            run.command("machine", line, 60)
        except Failed as error:
            facts.setdefault("missing", []).append(str(error))
    (run.folder / "machine.json").write_text(json.dumps(facts, indent=1) + "\n")
    free = shutil.disk_usage(run.folder).free >> 30
    if free < 4:
        raise Failed(f"{run.folder} has {free} GiB left; kernels, logs and archive need 4")
    return f"{facts['cores']} cores, {free} GiB free"


def user():
    return name_of(os.geteuid(), lambda number: pwd.getpwuid(number).pw_name)


def name_of(number, look_up):
    """A number has no name where a container was given one of its host."""
    try:
        return look_up(number)
    except KeyError:
        return str(number)


def driver(run):
    kfd = run.chosen.system / "dev" / "kfd"
    if not kfd.exists() and (run.chosen.system / "dev" / "nvidiactl").exists():
        raise Failed("there is no /dev/kfd, but NVIDIA's driver: these steps are for AMD's GPUs; docs/gpu.md goes through those for NVIDIA's")
    if not kfd.exists():
        raise Failed("there is no /dev/kfd: the amdgpu kernel driver is not loaded (sudo modprobe amdgpu; dmesg says why it was not)")
    if not os.access(kfd, os.R_OK | os.W_OK):
        groups = ", ".join(sorted(name_of(g, lambda number: grp.getgrgid(number).gr_name) for g in os.getgroups()))
        raise Failed(f"{user()} may not open /dev/kfd (groups: {groups}): sudo usermod -aG render,video {user()}, and log in again")
    nodes = sorted((run.chosen.system / "dev" / "dri").glob("renderD*"))
    if not nodes:
        raise Failed("there is no /dev/dri/renderD*: the driver found no GPU (in a container: --device /dev/kfd --device /dev/dri)")
    version = run.chosen.system / "sys" / "module" / "amdgpu" / "version"
    return f"{len(nodes)} render nodes, amdgpu {version.read_text().strip() if version.exists() else 'of the kernel'}"


def rocm(run):
    code, said = run.command("rocm", [run.tool("rocminfo")], 120)
    if code != 0:
        raise Failed(f"rocminfo ended with {code}: {verdict(said)}")
    names = re.findall(r"^\s*Name:\s+(gfx\w+)", said, re.MULTILINE)
    if not names:
        raise Failed("rocminfo lists no gfx agent: ROCm does not see the GPU that the driver has")
    run.state["rocminfo"] = names
    for tool in ("amd-smi", "rocm-smi"):
        try:
            run.command("rocm", [run.tool(tool), "static" if tool == "amd-smi" else "-a"], 120)
        except Failed:
            pass
    root = run.rocm()
    version = root / ".info" / "version"
    if not version.exists():
        return f"{', '.join(names)}; {root} has no .info/version"
    text = version.read_text().strip()
    found = tuple(int(n) for n in re.findall(r"\d+", text)[:2])
    for name in names:
        if found < ROCM.get(name, (0, 0)):
            raise Failed(f"ROCm {text} does not know {name}: it needs {'.'.join(map(str, ROCM[name]))} at least")
    return f"{', '.join(names)} with ROCm {text}"


def build(run):
    if run.chosen.build:
        run.program("fmha")
        return f"{run.build()} as given"
    code, said = run.command("build", [TREE / "run", "build"], 3 * 3600, TREE)
    if code != 0:
        raise Failed(f"./run build ended with {code}: {verdict(said)}")
    run.program("fmha")
    return str(run.build())


def device(run):
    code, said = run.command("device", [run.program("fmha"), "devices", "--format", "json"], 300)
    try:
        platforms = {p["platform"]: p for p in json.loads(said)}
        amd = platforms["amd"]
        devices = amd["devices"]
    except (ValueError, KeyError, TypeError):
        raise Failed(f"fmha devices ended with {code}: {verdict(said)}") from None
    if run.chosen.device >= len(devices):
        raise Failed(amd["why_none"] or f"there is no device {run.chosen.device}: fmha devices lists {len(devices)}")
    found = devices[run.chosen.device]
    if run.chosen.arch and run.chosen.arch != found["arch"]:
        raise Failed(f"the device is {found['arch']} and --arch {run.chosen.arch}")
    run.state["arch"] = found["arch"]
    run.state["device"] = found
    return f"{found['name']}, {found['arch']}, {found['compute_units']} compute units"


def gtest(program, *on_device):
    """A test program, whose tests `on_device` may not be skipped, because this machine has the GPU."""

    def step(run):
        # Its compiled probes belong to the archive.
        environment = {"FMHA_CODES_DIR": str(run.folder / "probes")}
        (run.folder / "probes").mkdir(exist_ok=True)
        code, said = run.command(program, [run.program(program)], 3600, environment=environment)
        if code != 0:
            raise Failed(f"{program} ended with {code}: {verdict(said)}")
        for test in on_device:
            if not re.search(rf"\[       OK \] {re.escape(test)} ", said):
                why = re.search(rf"^(.*)\n\[  SKIPPED \] {re.escape(test)}", said, re.MULTILINE)
                raise Failed(f"{test} did not run on the GPU: {why.group(1).strip()[:300] if why else 'the program says nothing of it'}")
        return f"{said.count('[       OK ]')} tests"

    return step


def none_of(api, run):
    return f"{run.arch()} has no kernel of {api}"


def kernels(api, family, audit=False):
    """Compiles; the audit is a step of its own, so that a kernel which spills is run all the same."""

    def step(run):
        if run.arch() in NONE.get(api, ()):
            return none_of(api, run)
        name = f"{'audit' if audit else 'kernels'}-{api}"
        line = ["build", "--arch", run.arch(), "--family", family, "--tier", run.chosen.tier, "--out", run.folder / f"kernels-{api}", "--replace", *run.arch_files()]
        said = run.fmha(name, line + ["--audit"] * audit, 4 * 3600)
        return said.strip().splitlines()[-1][:120] if said.strip() else str(run.folder / f"kernels-{api}")

    return step


def verify(api):
    def step(run):
        if run.arch() in NONE.get(api, ()):
            return none_of(api, run)
        name = f"verify-{api}"
        files = {option: run.folder / f"{name}.{ending}" for option, ending in
                 (("--journal", "jsonl"), ("--json", "json"), ("--junit", "xml"), ("--html", "html"))}
        line = ["verify", *run.chosen.cases, "--family", api, "--tier", run.chosen.tier, *run.target()]
        if not run.chosen.emulated:
            line += ["--kernels-dir", run.folder / f"kernels-{api}"]
        for option, file in files.items():
            line += [option, file]
        said = run.fmha(name, line, 4 * 3600)
        return counts_of(said)

    return step


def timed_apis(run):
    return [api for api in apis_of(run.chosen) if run.arch() not in NONE.get(api, ())]


def write_bench_cases(folder, apis):
    """A case file of each API, so that the kernels of the bench are those that are planned for it; their names."""
    for api in apis:
        (folder / api).mkdir(parents=True, exist_ok=True)
        (folder / api / "day_one.json").write_text(json.dumps(BENCH[api], indent=1) + "\n")
    return [f"{api}/day_one" for api in apis]


def kernels_bench(run):
    if not timed_apis(run):
        return "nothing is timed here"
    folder = run.folder / "bench-cases"
    write_bench_cases(folder, timed_apis(run))
    line = ["build", "--arch", run.arch(), "--tier", "smoke", "--cases-root", folder, "--out", run.folder / "kernels-bench", "--replace"]
    for api, family in FAMILIES:
        if api in timed_apis(run):
            line += ["--family", family]
    line += run.arch_files()
    return run.fmha("kernels-bench", line, 3600).strip().splitlines()[-1][:120]


def bench(run):
    if run.chosen.emulated:  # the emulated machine has no time; the host's kernels have
        line = ["bench", "--shape", "dtype=fp16,batch=1,heads=1,seqlen=64,hdim=64", "--arch", run.arch(), *run.arch_files(), "--seconds", "0.01"]
    elif not timed_apis(run):
        return "nothing is timed here"
    else:
        folder = run.folder / "bench-cases"
        line = ["bench", *write_bench_cases(folder, timed_apis(run)), "--cases-root", folder, *run.target(), "--kernels-dir", run.folder / "kernels-bench"]
    said = run.fmha("bench", [*line, "--json", run.folder / "bench.json"], 3600)
    return said.strip().splitlines()[-1][:120]


def checkout(run):
    """Programs over the compiled kernels of a checkout."""
    root = pathlib.Path(run.chosen.ck_root).resolve()
    compiled = pathlib.Path(run.chosen.ck_build).resolve() if run.chosen.ck_build else root / "build"
    line = [TREE / "parity" / "side_by_side" / "checkout" / "build", root, compiled, run.folder / "checkout", run.arch()]
    code, said = run.command("checkout", line, 3600, environment={"PATH": f"{os.environ['PATH']}:{run.rocm() / 'bin'}"})
    if code != 0:
        raise Failed(f"parity/side_by_side/checkout/build ended with {code}: {verdict(said)}")
    return "; ".join(part.strip() for part in said.splitlines() if part.startswith("fmha_ck_"))[:200]


def beside(api, cases, tensors=False):
    """The checkout and ours: on tensors of their own, or with `tensors` on the same."""

    def step(run):
        name = f"{'tensors' if tensors else 'beside'}-{api}"
        line = ["compare", cases, *run.target(), "--json", run.folder / f"{name}.json"]
        if tensors:
            line += ["--ck-kernels", run.folder / "checkout", "--keep", run.folder / name]
        else:
            line += ["--ck-bin", pathlib.Path(run.chosen.ck_bin).resolve()]
        if not run.chosen.emulated:
            line += ["--kernels-dir", run.folder / f"kernels-{api}"]
        return counts_of(run.fmha(name, line, 3600))

    return step


def counts_of(said):
    counts = re.search(r"^.* asked .*$", said, re.MULTILINE)
    if "GREEN" not in said or not counts:
        raise Failed(f"there is no verdict: {verdict(said)}")
    return counts.group(0).strip()


def apis_of(chosen):
    return [api for api, _ in FAMILIES if not chosen.family or api in chosen.family]


def steps(chosen):
    """(name, function, names of the steps that it needs)."""
    found = [("machine", machine, []), ("driver", driver, []), ("rocm", rocm, ["driver"]), ("build", build, []),
             ("device", device, ["build"] if chosen.emulated else ["build", "driver"]),
             ("instructions", gtest("hip_instructions_test", "DeviceInstructions.AgreeWithTheirRowsOfTheTable",
                                    "Accumulation.OfTheDeviceIsAsPreciseAsKernelsDeclare"), ["device"]), ("codes", gtest("hip_codes_test", "DeviceCodes.AgreeWithTheReference"), ["device"])]
    for api, family in FAMILIES:
        if chosen.family and api not in chosen.family:
            continue
        if not chosen.emulated:
            found.append((f"kernels-{api}", kernels(api, family), ["build", "device"]))
        found.append((f"verify-{api}", verify(api), ["build"] if chosen.emulated else [f"kernels-{api}"]))
        if not chosen.emulated:
            found.append((f"audit-{api}", kernels(api, family, audit=True), [f"kernels-{api}"]))
    chosen_families = apis_of(chosen)
    if not chosen.emulated:
        found.append(("kernels-bench", kernels_bench, ["build", "device"]))
    if not chosen.emulated or "fwd" in chosen_families:
        found.append(("bench", bench, ["build"] if chosen.emulated else ["kernels-bench"]))
    for api, cases in BESIDE:
        if chosen.ck_bin and api in chosen_families:
            found.append((f"beside-{api}", beside(api, cases), ["build"] if chosen.emulated else [f"kernels-{api}"]))
    if chosen.ck_root and not chosen.emulated:
        found.append(("checkout", checkout, ["device"]))
        for api, cases in BESIDE:
            if api in chosen_families:
                found.append((f"tensors-{api}", beside(api, cases, tensors=True), [f"kernels-{api}", "checkout"]))
    return found
