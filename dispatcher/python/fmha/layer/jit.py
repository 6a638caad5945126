"""Set-ups: plan, and where there is a GPU generate, compile and load. On the host there is nothing to compile."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterable

from fmha import find
from fmha.arch import device_arch
from fmha.choose import Catalogue, Choice, NoKernel, choose
from fmha.layer.config import FmhaKernelConfig, checked_config
from fmha.layer.results import FmhaSetupResult
from fmha.layer.runner import FmhaRunner
from fmha.library import ABI_VERSION, Context, Error, Library, load
from fmha.values import shown, text

TARGETS = ("host", "device")


class SetupError(RuntimeError):
    """A set-up that failed, with the words of the tool that made it fail."""


@lru_cache(maxsize=None)
def library() -> Library:
    """The libfmha.so of this process."""
    return load()


def _device_number() -> int:
    """Of FMHA_DEVICE."""
    named = os.environ.get("FMHA_DEVICE", "0")
    if not (named.isascii() and named.isdigit()):
        raise SetupError(f"FMHA_DEVICE is {named!r}; allowed: the number of a device, from 0 on")
    return int(named)


def target_of(arch: str) -> str:
    """Where kernels of an architecture run: on the device when this machine's GPU is one, else on the host. FMHA_TARGET decides
    when it is set."""
    named = os.environ.get("FMHA_TARGET")
    if named is not None and named not in TARGETS:
        raise SetupError(f"FMHA_TARGET is {named!r}; allowed: {', '.join(TARGETS)}")
    target = named or ("device" if device_arch() == arch else "host")
    if target == "device":
        _device_number()  # before anything is compiled for it
    return target


def _log(verbose: bool, text: str) -> None:
    if verbose:
        print(f"fmha: {text}", file=sys.stderr)


def _key(config: FmhaKernelConfig, choice: Choice) -> str:
    """The origins of a compiled folder: the configuration, its kernels, the command and the interface."""
    command = find.command()
    try:
        status = os.stat(command) if command else None
    except OSError:
        status = None
    tool = [command, status.st_mtime_ns, status.st_size] if status else [command]
    return json.dumps([config.key, sorted(choice.names), ABI_VERSION, tool, os.environ.get("FMHA_BUILD_OPTIONS", "")])


def compile_kernels(job: tuple[str, str, str, str, int]) -> tuple[bool, str]:
    """(arch, expression, families, folder, compilers at a time): runs `fmha build`. (True, "") or (False, the tool's words). Needs
    nothing of this process, so that any pool can run it."""
    arch, where, families, folder, jobs = job
    command = find.command()
    if command is None:
        return False, "the command fmha, which compiles kernels, was not found; put it on PATH or name it in FMHA_COMMAND"
    line = [command, "build", "--arch", arch, "--family", families, "--where", where, "--out", folder, "--replace", "--jobs", str(jobs)]
    options = os.environ.get("FMHA_BUILD_OPTIONS", "")
    try:
        line += shlex.split(options)
    except ValueError as error:
        return False, f"FMHA_BUILD_OPTIONS is {shown(options)}; no options of a shell: {error}"
    try:
        done = subprocess.run(line, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        return False, f"kernel compile failed: {command}: {error.strerror}"
    if done.returncode == 0:
        return True, ""
    return False, f"kernel compile failed: {(done.stderr.strip() or done.stdout.strip() or f'exit code {done.returncode}')}"


def _file_name(config: FmhaKernelConfig) -> str:
    """A name that is one configuration's own: that of the configuration where it says everything and a file can have it, else as much of
    it as a file can have, and the key. Texts of a configuration are anything, such as a path."""
    name = config.name
    if config.name_says_all and re.fullmatch(r"[A-Za-z0-9_.=-]{1,200}", name):
        return name
    return re.sub(r"[^A-Za-z0-9_.=-]", "_", name)[:160] + f"_{config.key}"


class _Plan:
    """One set-up between choosing kernels and having a runner."""

    def __init__(self, config: FmhaKernelConfig, folder: Path, catalogue: Catalogue):
        self.config, self.folder = config, folder
        self.choice = choose(catalogue, config)
        self.target = target_of(config.gfx_arch)
        self.record = folder / f"libdispatcher_fmha_{_file_name(config)}.json"

    @property
    def kernels_dir(self) -> Path:
        """Whatever the working folder is when they are opened."""
        return Path(os.path.abspath(self.folder)) / f"kernels-{self.config.key}"

    def make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise SetupError(f"folder {str(self.folder)!r} cannot be made: {getattr(error, 'strerror', error)}") from error

    def is_built(self) -> bool:
        """Whether the folder holds the kernels of this configuration."""
        if self.target == "host":
            return True
        try:
            return (self.kernels_dir / "fmha-key.json").read_text() == _key(self.config, self.choice)
        except (OSError, ValueError):
            return False

    def job(self, jobs: int) -> tuple[str, str, str, str, int]:
        families = ",".join(sorted({kernel["family"] for kernel in (self.choice.kernel, *self.choice.companions)}))
        return self.config.gfx_arch, self.choice.where, families, str(self.kernels_dir), jobs

    def finish(self) -> None:
        """Writes the record with which `runner_of` opens it again."""
        self.make_folder()
        if self.target == "device":
            (self.kernels_dir / "fmha-key.json").write_text(_key(self.config, self.choice))
        document = {"format": 1, "config": asdict(self.config), "target": self.target, "where": self.choice.where,
                    "kernels": self.choice.names, "kernels_dir": str(self.kernels_dir) if self.target == "device" else None}
        fresh = self.record.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            fresh.write_text(json.dumps(document, indent=1))
            fresh.replace(self.record)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise SetupError(f"{self.record} cannot be written: {error.strerror}") from error

    def runner(self) -> FmhaRunner:
        return _runner(self.target, self.config, self.choice.where, str(self.kernels_dir), str(self.record))

    def result(self, runner: FmhaRunner, seconds: float) -> FmhaSetupResult:
        return FmhaSetupResult(True, replace(self.config), runner, str(self.record), "", seconds, self.choice.names, self.choice.notes, self.target)


def _runner(target: str, config: FmhaKernelConfig, where: str, kernels_dir: str, path: str) -> FmhaRunner:
    def opened() -> Context:
        if target == "device":
            return Context(library(), kernels_dir=kernels_dir, device=_device_number())
        context = Context(library(), config.gfx_arch)
        context.keep(where)
        return context

    return FmhaRunner._over(opened, path, config.gfx_arch, config)


def runner_of(path: Any, arch: str | None) -> FmhaRunner:
    """The runner of a set-up's library_path, or of a libfmha.so over all kernels of `arch`."""
    file = Path(os.fspath(path))
    if not file.is_file():
        raise OSError(f"there is no file {file}")
    if file.suffix != ".json":
        from fmha.layer.dispatcher_lib import FmhaDispatcherLib
        return FmhaRunner(FmhaDispatcherLib.load(os.path.abspath(file)), arch or device_arch() or "gfx950")
    try:
        told = json.loads(file.read_text())
        config, target, where = checked_config(FmhaKernelConfig(**told["config"])), told["target"], text("where", told["where"])
        if target not in TARGETS:
            raise ValueError(f"target is {shown(target)}; allowed: {', '.join(TARGETS)}")
        kernels_dir = text("kernels_dir", told["kernels_dir"]) if target == "device" else ""
        if arch is not None and arch != config.gfx_arch:
            raise RuntimeError(f"{file} is a set-up for {config.gfx_arch}, not for {arch}")
        return _runner(target, config, where, kernels_dir, str(file))
    except (ValueError, KeyError, TypeError) as error:
        raise OSError(f"{file} is no set-up: {error}") from error


def _failed(config: Any, error: BaseException) -> FmhaSetupResult:
    return FmhaSetupResult(False, config, error=str(error) or type(error).__name__)


def _default_folder(config: FmhaKernelConfig) -> Path:
    return find.cache_folder() / f"fmha_jit_{_file_name(config)}"


def _named_folder(output_dir: Any) -> Path:
    if not isinstance(output_dir, (str, os.PathLike)):
        raise TypeError(f"output_dir is {shown(output_dir)}; a str or a Path is needed")
    return Path(output_dir)


def setup_fmha_dispatcher(config: FmhaKernelConfig, output_dir: Any = None, verbose: bool = False) -> FmhaSetupResult:
    """A runner of the kernel that a configuration describes, or the nearest one. Compiles when a GPU of its architecture is there and
    the folder does not hold it yet. Never raises: `error` says what is missing."""
    start = time.monotonic()
    try:
        config = checked_config(config)
        plan = _Plan(config, _named_folder(output_dir) if output_dir is not None else _default_folder(config), _catalogue())
        for note in plan.choice.notes:
            _log(verbose, note)
        cached = plan.is_built()
        if not cached:
            _build(plan, verbose)
        try:
            runner = _opened(plan)
        except (Error, RuntimeError):
            if plan.target == "host" or not cached:
                raise
            _log(verbose, "the kernels that were there do not load; compiling them again")
            _build(plan, verbose)
            runner = _opened(plan)
        plan.finish()
        _log(verbose, f"{plan.target}: {plan.choice.kernel['name']}")
        return plan.result(runner, time.monotonic() - start)
    except NoKernel as error:
        return _failed(config, SetupError(f"Codegen failed: {error}"))
    except (Error, RuntimeError, OSError, ValueError, TypeError) as error:
        return _failed(config, error)


@lru_cache(maxsize=None)
def _catalogue() -> Catalogue:
    return Catalogue(library())


def _build(plan: _Plan, verbose: bool) -> None:
    _log(verbose, f"compiling {len(plan.choice.names)} kernels for {plan.config.gfx_arch} in {plan.kernels_dir}")
    plan.make_folder()
    good, words = compile_kernels(plan.job(0))
    if not good:
        raise SetupError(words)


def _opened(plan: _Plan) -> FmhaRunner:
    runner = plan.runner()
    try:
        runner.kernel_count
    except RuntimeError as error:
        raise SetupError(f"Load failed: {error}") from error
    return runner


def setup_multiple_fmha_dispatchers(configs: Iterable[FmhaKernelConfig], output_dir: Any = None, verbose: bool = False,
                                    max_workers: int | None = None, executor: Any = None,
                                    progress_callback: Callable[[str, int, int], Any] | None = None) -> list[FmhaSetupResult]:
    """The same for many, compiled in parallel: one result each, in order. Runners open their kernels when they are first used.
    `executor` is the caller's pool, used through `map` only. `progress_callback` is told (stage, done, total): "codegen" for every
    configuration, "compile" for every compilation."""
    configs = list(configs)
    results: list[FmhaSetupResult | None] = [None] * len(configs)
    plans: dict[int, _Plan] = {}
    started = time.monotonic()
    for i, given in enumerate(configs):
        try:
            config = checked_config(given)
            folder = _named_folder(output_dir) / f"fmha_jit_{_file_name(config)}" if output_dir is not None else _default_folder(config)
            plans[i] = _Plan(config, folder, _catalogue())
        except NoKernel as error:
            results[i] = _failed(given, SetupError(f"Codegen failed: {error}"))
        except (Error, RuntimeError, OSError, ValueError, TypeError) as error:
            results[i] = _failed(given, error)
        if progress_callback is not None:
            progress_callback("codegen", i + 1, len(configs))
    jobs: dict[str, list[int]] = {}  # equal configurations compile once
    for i, plan in plans.items():
        if not plan.is_built():
            try:
                plan.make_folder()
                jobs.setdefault(str(plan.kernels_dir), []).append(i)
            except SetupError as error:
                results[i] = _failed(configs[i], error)
    for i, words in _compile_all([(numbers, plans[numbers[0]].job(1)) for numbers in jobs.values()], max_workers, executor,
                                 progress_callback).items():
        results[i] = _failed(configs[i], SetupError(words))
    for i, plan in plans.items():
        if results[i] is None:
            try:
                plan.finish()
                results[i] = plan.result(plan.runner(), time.monotonic() - started)
                _log(verbose, f"{plan.target}: {plan.choice.kernel['name']}")
            except (SetupError, OSError) as error:
                results[i] = _failed(configs[i], error)
    return [result for result in results if result is not None]


def _compile_all(jobs: list[tuple[list[int], tuple]], max_workers: int | None, executor: Any,
                 progress: Callable[[str, int, int], Any] | None) -> dict[int, str]:
    """The words of every compilation that failed, by configuration."""
    failed: dict[int, str] = {}
    if not jobs:
        return failed

    def collect(outcomes: Iterable[tuple[bool, str]]) -> None:
        for done, ((numbers, _), (good, words)) in enumerate(zip(jobs, outcomes), start=1):
            failed.update({} if good else {i: words for i in numbers})
            if progress is not None:
                progress("compile", done, len(jobs))

    if executor is not None:
        collect(executor.map(compile_kernels, [job for _, job in jobs]))
        return failed
    workers = max_workers if max_workers and max_workers > 0 else min(len(jobs), len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        collect(pool.map(compile_kernels, [job for _, job in jobs]))
    return failed


class FmhaRegistry:
    """Configurations that are set up together."""

    def __init__(self, name: str = "fmha"):
        self._name = name
        self._configs: list[FmhaKernelConfig] = []

    def register_kernel(self, config: FmhaKernelConfig) -> None:
        """Adds a configuration; order and repetitions are kept."""
        self._configs.append(config)

    def __len__(self) -> int:
        return len(self._configs)

    def build(self, verbose: bool = False, max_workers: int | None = None) -> list[FmhaSetupResult]:
        """One result for each registered configuration, in order."""
        _log(verbose, f"{self._name}: {len(self)} kernels")
        return setup_multiple_fmha_dispatchers(self._configs, verbose=verbose, max_workers=max_workers)
