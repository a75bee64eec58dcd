"""The command behind run_all.py: decides what to run, runs it, renders, and says how it went."""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import catalog as catalogs
from .. import codec
from ..catalog import Catalog, Selection
from ..devices import Sheets, sheets
from ..errors import KernelbookError
from ..records import DeviceInfo, load_all
from ..report.check import problems
from ..report.render import render
from ..site import stubs
from .compiling import compile_all, drop_stood_for
from .context import Context
from .counting import count_all
from .listing import closing_table, list_everything
from .options import Options, parse
from .outcome import Outcome
from .progress import Display
from .provenance import provenance

ROOT = Path(__file__).resolve().parents[3]
STOPPING, PASSED_ON = (signal.SIGINT, signal.SIGTERM), signal.SIGUSR1
INTERRUPTED = 130  # the shell's exit code for SIGINT


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; returns the exit code. Never raises for what a user can cause."""
    display = Display()
    try:
        with _interruptible():
            options = parse(root, arguments)
            return _dispatch(options, display)
    except KernelbookError as error:
        display.problem(f"run_all: {error}")
        return 2
    except KeyboardInterrupt:
        display.problem(
            "run_all: interrupted; every file written so far is whole, and the next run takes up "
            "what is missing"
        )
        return INTERRUPTED
    except BrokenPipeError:
        return 1
    except OSError as error:  # the system refuses a file or folder; which, it says itself
        place = f"{error.filename}: " if error.filename else ""
        display.problem(f"run_all: {place}{error.strerror or error}")
        return 2


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C and a polite kill stop the run; whoever called gets its own handlers back."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    hook = sys.unraisablehook
    later: list[threading.Timer] = []
    old = {number: signal.signal(number, _terminate) for number in STOPPING}

    def again(unraisable: sys.UnraisableHookArgs) -> None:
        """An interrupt that comes within a finaliser would only be printed, and lost."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            later.append(threading.Timer(0.01, _thread.interrupt_main))
            later[-1].start()
        else:
            hook(unraisable)

    sys.unraisablehook = again
    done = threading.Event()
    watch = threading.Thread(target=_pass_on, args=(done, threading.get_ident()), daemon=True)
    if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()):  # see run_all.py
        old[PASSED_ON] = signal.signal(PASSED_ON, _terminate)
        watch.start()
    try:
        yield
    finally:
        done.set()
        if watch.ident is not None:
            watch.join()
        sys.unraisablehook = hook
        for timer in later:
            timer.cancel()
        for number, handler in old.items():
            signal.signal(number, handler)


def _pass_on(done: threading.Event, main: int) -> None:
    """Wait for the signals that every thread blocks, and tell the main thread by another one, which
    ends a wait of its and that no library has a handler for."""
    while not done.is_set():
        if signal.sigtimedwait(STOPPING, 0.1) is not None and not done.is_set():
            signal.pthread_kill(main, PASSED_ON)


def _terminate(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


@dataclass
class _Run:
    """One run's inputs and what came of it so far."""

    options: Options
    display: Display
    catalog: Catalog
    sheets: Sheets
    selections: tuple[Selection, ...]
    outcomes: list[Outcome] = field(default_factory=list)
    device: DeviceInfo | None = None

    @property
    def context(self) -> Context:
        o = self.options
        taken = provenance(o.root)
        return Context(o.root, o.results, o.cache, self.sheets, taken, o.remeasure)

    def stage(self, name: str, stage: Callable[[_Run], None]) -> None:
        try:
            stage(self)
        except KernelbookError as error:
            self.outcomes.append(Outcome(name, "", None, False, (str(error),)))


def _dispatch(options: Options, display: Display) -> int:
    if options.compare:
        from .compare_stage import compare_folders

        return compare_folders(display, options)
    if options.selftest:
        from .selftest import selftest

        return selftest(display, options)
    catalog = catalogs.load(options.root)
    if options.tune:
        from .tune_stage import tune_all

        return tune_all(display, options, catalog)
    run = _Run(
        options,
        display,
        catalog,
        sheets(),
        catalog.select(options.only),
    )
    if options.list_only:
        list_everything(display, run.selections)
        return 0
    if options.check_only:
        return _check(run)
    if options.reproduce:
        from .reproduce import reproduce

        return reproduce(display, options, catalog)
    if options.annotate:
        from .annotate import annotate

        display.say(annotate(catalog, run.sheets, options))
        return 0
    # What is wrong with the results folder is said before an hour of work, not after it.
    load_all(options.results)
    codec.ready_to_write(options.results)
    if not options.render_only:
        run.stage("compile", _compile)
        run.device = _probe(run)
        if run.device is None or options.count:
            run.stage("count", _count)
        if run.device is not None:
            run.stage("measure", _measure)
    _render(run)
    return _close(run)


def _probe(run: _Run) -> DeviceInfo | None:
    """The GPU to measure on, or None; says in one line which."""
    from ..gpu.device_info import present, probe

    options = run.options
    if not options.use_gpu:
        run.display.say("GPU not used (--no-gpu): kernels are compiled, executed and counted here.")
        return None
    found = probe(options.device)
    if isinstance(found, str):
        if present() or options.publish or options.profile:
            run.outcomes.append(Outcome("measure", "", None, False, (f"not measured: {found}",)))
        run.display.say(f"{found}: kernels are compiled, executed and counted here.")
        return None
    run.display.say(f"Measuring on {found.name} (driver {found.driver}, CUDA {found.cuda}).")
    return found


def _compile(run: _Run) -> None:
    drop_stood_for(run.options.results, run.catalog)
    selections = run.catalog.stand_ins(run.selections)
    with run.display.stage("compile", len(selections)) as stage:
        for outcome in compile_all(run.context, selections, stage):
            run.outcomes.append(outcome)


def _count(run: _Run) -> None:
    selections = run.catalog.stand_ins(run.selections)
    with run.display.stage("count", len(selections)) as stage:
        for outcome in count_all(run.context, selections, stage):
            run.outcomes.append(outcome)


def _measure(run: _Run) -> None:
    from .measure_stage import measure_all  # needs CuPy and a driver

    assert run.device is not None
    with run.display.stage("measure", len(run.selections)) as stage:
        for outcome in measure_all(
            run.context, run.catalog, run.selections, run.options, run.device, stage
        ):
            run.outcomes.append(outcome)


def _render(run: _Run) -> None:
    options = run.options
    if (options.root / "docs").is_dir():
        stubs.ensure(options.root, run.catalog)  # a new kernel has its page at once
    done = render(options.root, options.results, run.catalog, run.sheets, charts=options.charts)
    if done.written or done.removed:
        run.display.say(
            f"Rendered {len(done.written)} files in {options.results}"
            + (f", removed {len(done.removed)}" if done.removed else "")
        )
    else:
        run.display.say(f"Everything in {options.results} is current.")


def _check(run: _Run) -> int:
    found = problems(run.options.root, run.options.results, run.catalog, run.sheets)
    for problem in found:
        run.display.problem(str(problem))
    if found:
        run.display.problem(f"run_all: {len(found)} stale or missing; run scripts/run_all.py")
        return 1
    run.display.say("Every published number is current.")
    return 0


def _close(run: _Run) -> int:
    closing_table(run.display, run.selections, run.outcomes)
    failures = [f for outcome in run.outcomes for f in outcome.failures]
    for failure in failures:
        run.display.problem(failure)
    if failures:
        run.display.problem(f"run_all: {len(failures)} of what was asked for failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
