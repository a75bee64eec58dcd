"""A published row is measured again and printed beside what is published."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelbook import catalog, records
from kernelbook.errors import DeviceError, UsageError
from kernelbook.records import Record
from kernelbook.runner.cli import main
from kernelbook.runner.measuring import MeasureSettings, measure
from kernelbook.runner.options import parse
from kernelbook.runner.progress import Display
from kernelbook.runner.reproduce import environment, reproduce
from noisy import timing

TESTS = Path(__file__).resolve().parent
BACKEND = "fakes.gpu:FakeBackend"


@pytest.fixture
def tree(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny project with kernels that the fake card knows: one right, one that breaks."""
    file = project / "kernels/01_tiny/experiments.py"
    text = file.read_text(encoding="utf-8")
    start, end = text.index("            Kernel("), text.index("        ),\n    )")
    kernel = text[start:end]
    both = kernel.replace('name="scale"', 'name="fast"') + kernel.replace(
        'name="scale"', 'name="writes_nothing"'
    )
    file.write_text(text[:start] + both + text[end:], encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("FAKE_GPU_IDENTITY", project.name)
    return project


@pytest.fixture
def published(tree: Path, compile_cache: Path) -> Record:
    """What the fake card gives, as if it had been faster by a tenth and had another driver."""
    settings = MeasureSettings(root=tree, quick=True, cache_dir=compile_cache, backend=BACKEND)
    experiment = catalog.load(tree).experiment("scale_1k")
    record = measure(experiment, ("fast",), settings, lambda text: None)
    assert record.device is not None
    (row,) = record.results
    timings = tuple(
        timing(
            [s / 1.1 for s in t.samples_us] * 5,
            cache=t.cache,
            flush=t.flush,
            sm_clock_mhz=t.sm_clock_mhz,
        )
        for t in row.timings
    )
    record = replace(
        record,
        results=(replace(row, timings=timings),),
        device=replace(record.device, driver="0.9"),
    )
    records.save(tree / "results", record)
    return record


def run(tree: Path, *arguments: str) -> int:
    options = parse(tree, [*arguments, "--results", str(tree / "results")])
    return reproduce(Display(), options, catalog.load(tree), BACKEND)


def test_both_times_are_printed_with_what_differs(
    tree: Path, published: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tree, "--reproduce", "scale_1k/fast") == 0
    out = capsys.readouterr().out
    assert "+10.0%" in out
    assert "slower" in out
    driver = next(line for line in out.splitlines() if "driver" in line)
    assert "0.9" in driver
    assert "1.0" in driver
    same = next(line for line in out.splitlines() if line.startswith("The same on both"))
    assert "power limit" in same
    assert "fast: PTX" in same
    assert "fast: SM clock" in same
    assert not (tree / "results" / "local").exists()


def test_another_card_gets_no_verdict(
    tree: Path, published: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    assert published.device is not None
    (tree / "results/data/measured/fake-gpu/scale_1k.json").unlink()
    other = replace(published.device, name="Card 9000", slug="card-9000")
    records.save(tree / "results", replace(published, device=other))
    assert run(tree, "--reproduce", "scale_1k") == 0
    out = capsys.readouterr().out
    assert "Card 9000" in out
    assert "The cards differ, so there is no verdict." in out


def test_a_row_that_fails_here_says_why(
    tree: Path, published: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    row = replace(published.results[0], variant="writes_nothing")
    records.save(tree / "results", replace(published, results=(row,)))
    assert run(tree, "--reproduce", "scale_1k/writes_nothing") == 1
    assert "1 of 1 elements are wrong" in capsys.readouterr().err


def test_scripts_get_json(
    tree: Path, published: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.json"
    assert run(tree, "--reproduce", "scale_1k", "--json", str(file)) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [(r["variant"], r["cache"]) for r in found["rows"]] == [
        ("fast", "cold"),
        ("fast", "warm"),
    ]
    assert found["rows"][0]["change"] == pytest.approx(0.1, abs=0.005)
    assert found["environment"]["driver"] == {"published": "0.9", "here": "1.0"}
    assert found["verdicts"][0]["verdict"] in ("slower", "ambiguous")


def test_a_changed_source_shows_as_another_key_and_other_ptx(tree: Path, published: Record) -> None:
    compilation = replace(published.results[0].compilations[0], ptx_hash="feed", nvrtc="13.0")
    here = replace(
        published, results=(replace(published.results[0], key="k", compilations=(compilation,)),)
    )
    found = environment(published, here, ("fast",))
    differing = {name for name, (a, b) in found.items() if a != b}
    assert differing == {"fast: PTX", "fast: NVRTC", "fast: source, shape and options"}


def test_what_cannot_be_reproduced_is_one_sentence(tree: Path, published: Record) -> None:
    with pytest.raises(UsageError, match=r"is no published row \(published: fast\)"):
        run(tree, "--reproduce", "scale_1k/writes_nothing")
    (tree / "results/data/measured/fake-gpu/scale_1k.json").unlink()
    with pytest.raises(UsageError, match="no measurement of 'scale_1k' is published"):
        run(tree, "--reproduce", "scale_1k")
    with pytest.raises(DeviceError, match="there is no GPU 3"):
        run(tree, "--reproduce", "scale_1k", "--device", "3")


def test_the_command_without_a_gpu_is_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU")
    assert main(["--reproduce", "scale_1k"], root=project) == 2
    error = capsys.readouterr().err
    assert "--reproduce measures on a GPU" in error
    assert len(error.strip().splitlines()) == 1
