"""The folder of a run: programs that it starts, their output, and the steps that passed."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

TREE = pathlib.Path(__file__).resolve().parents[2]


class Failed(Exception):
    """A step that did not pass; the text is its sentence."""


class WrongFolder(Exception):
    """The folder of --out belongs to another run; the text is the sentence."""


class Run:
    """The folder of a run: the sentence of each step, and the steps that passed."""

    def __init__(self, chosen):
        self.chosen, self.folder = chosen, chosen.out.resolve()
        self.file = self.folder / "state.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WrongFolder(f"--out {self.folder} cannot be written: {error.strerror}") from None
        if not os.access(self.folder, os.W_OK):
            raise WrongFolder(f"--out {self.folder} cannot be written: it is read-only for this user")
        self.state = {"steps": {}}
        if self.file.exists():
            try:
                self.state = json.loads(self.file.read_text())
                for step in self.state["steps"].values():
                    step["status"], step["sentence"]
            except (OSError, ValueError, KeyError, AttributeError, TypeError):
                raise WrongFolder(f"{self.file} is not the state of a run: name another --out") from None
        asked = self.identity()
        known = self.state.setdefault("identity", asked)
        for key, value in asked.items():
            if not isinstance(known, dict) or known.get(key) != value:
                was = known.get(key) if isinstance(known, dict) else None
                raise WrongFolder(f"{self.folder} is a run with {key} {was}, and this one has {value}: name another --out")

    def identity(self):
        """Facts that must not change under a run that is continued."""
        try:
            head = subprocess.run(["git", "-C", str(TREE), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
            commit = head.stdout.strip() or "unknown"
        except OSError:
            commit = "unknown"
        chosen = self.chosen
        return {"commit": commit, "build": str(self.build()), "arch": chosen.arch,
                "arch_dir": str(chosen.arch_dir.resolve()) if chosen.arch_dir else None, "device": chosen.device, "tier": chosen.tier,
                "cases": chosen.cases, "emulated": chosen.emulated}

    def save(self):
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.state, indent=1) + "\n")
        part.replace(self.file)

    def command(self, name, line, seconds, directory=None, environment=None):
        """Runs a command, its output in NAME.log; (exit code, standard output and errors). Throws Failed for one that does not
        start or end."""
        log = self.folder / f"{name}.log"
        line = [str(part) for part in line]
        limit = seconds * self.chosen.limit
        with open(log, "ab") as out:
            out.write(f"\n$ {' '.join(line)}\n".encode())
            out.flush()
            start = out.tell()
            try:
                process = subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                           cwd=directory or self.folder, start_new_session=True,
                                           env={**os.environ, **(environment or {})})
            except OSError as error:
                raise Failed(f"{line[0]} does not start: {error.strerror}") from None
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                end(process)
                raise Failed(f"{' '.join(line[:3])} … did not end within {limit:.0f} s; its output is in {log.name}") from None
            except KeyboardInterrupt:
                end(process)
                raise
        with open(log, "rb") as text:
            text.seek(start)
            return code, text.read().decode(errors="replace")

    def fmha(self, name, line, seconds):
        code, said = self.command(name, [self.program("fmha"), *line], seconds)
        if code != 0:
            raise Failed(f"fmha {line[0]} ended with {code}: {verdict(said)}")
        return said

    def rocm(self):
        """The folder of ROCm: ROCM_PATH, else /opt/rocm, else the last of /opt/rocm-*."""
        if "ROCM_PATH" in os.environ:
            return pathlib.Path(os.environ["ROCM_PATH"])
        usual = self.chosen.system / "opt" / "rocm"
        return usual if usual.exists() else max(usual.parent.glob("rocm-*"), default=usual)

    def tool(self, name):
        """A program of ROCm, which need not be on the PATH."""
        return shutil.which(name) or next((path for path in [self.rocm() / "bin" / name] if path.is_file()), name)

    def program(self, name):
        program = self.build() / "bin" / name
        if not program.is_file():
            raise Failed(f"there is no {program}: the build is not finished")
        return program

    def build(self):
        return (self.chosen.build or TREE / "build" / "host").resolve()

    def arch(self):
        if self.chosen.arch or "arch" in self.state:
            return self.chosen.arch or self.state["arch"]
        raise Failed("the architecture is not known: the step device did not find a GPU, and --arch was not given")

    def target(self):
        if self.chosen.emulated:
            return ["--target", "emulated", "--arch", self.arch(), *self.arch_files()]
        return ["--target", "hip", "--device", str(self.chosen.device), *self.arch_files()]

    def arch_files(self):
        return ["--arch-dir", self.chosen.arch_dir.resolve()] if self.chosen.arch_dir else []


def end(process):
    """The process and its children."""
    for sign, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, sign)
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            process.wait()
            return


def verdict(said):
    """The line of an output with the error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for mark in ("[  FAILED  ]", "FAILED ", "error:", "rror"):
        for line in lines:
            if mark in line:
                return line[:300]
    return lines[-1][:300] if lines else "it said nothing"
