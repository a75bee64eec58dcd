"""What rendering writes and removes, and what the check finds."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelbook.errors import RecordError
from kernelbook.records import Result
from kernelbook.report.check import Problem, problems
from kernelbook.report.render import Rendered, render

from .made_up import HOSTILE, Tree, compiled, counted, measured


def run(tree: Tree, charts: bool = True) -> Rendered:
    return render(tree.root, tree.results, tree.catalog, tree.sheets, charts=charts)


def check(tree: Tree, **options: object) -> list[Problem]:
    found = problems(tree.root, tree.results, tree.catalog, tree.sheets, **options)  # type: ignore[arg-type]
    return list(found)


def files(tree: Tree) -> dict[str, bytes]:
    return {
        p.relative_to(tree.results).as_posix(): p.read_bytes()
        for p in tree.results.rglob("*")
        if p.is_file()
    }


@pytest.fixture
def complete(tree: Tree) -> Tree:
    """Compiled and counted records of every kernel, rendered: nothing to complain about."""
    for e in tree.catalog.experiments:
        if e.kernels:
            tree.save(compiled(tree.catalog, tree.sheets, e.name))
            counts = {k.name: {"warp_instructions": 1.0} for k in e.kernels}
            tree.save(counted(tree.catalog, tree.sheets, e.name, counts))
    run(tree)
    return tree


def test_rendering_twice_changes_nothing(full_tree: Tree) -> None:
    first = run(full_tree)
    assert {p.as_posix() for p in first.written} >= {
        "results/01_basics.md",
        "results/01_basics.en.md",
        "results/summary.csv",
        "results/charts/gemm_sweep.zh.svg",
        "results/local/01_basics.md",
        "results/local/charts/gemm_sweep.en.svg",
    }
    before = files(full_tree)
    again = run(full_tree)
    assert again.changed == ()
    assert len(again.unchanged) == len(first.written)
    assert files(full_tree) == before


def test_published_files_do_not_know_of_a_readers_run(full_tree: Tree) -> None:
    run(full_tree)
    for name, content in files(full_tree).items():
        if not name.startswith("local/"):
            assert b"gtx-9000" not in content
            assert b"alert(1)" not in content
    assert "本机" in (full_tree.results / "local/01_basics.md").read_text(encoding="utf-8")
    assert "gtx-9000" in (full_tree.results / "local/summary.csv").read_text(encoding="utf-8")


def test_files_without_a_source_are_removed_and_no_others(full_tree: Tree) -> None:
    run(full_tree)
    kept = full_tree.results / "README.md"
    kept.write_text("by hand")
    for name in ("charts/old.zh.svg", "09_gone.md", "09_gone.en.md"):
        (full_tree.results / name).write_text("old")
    (full_tree.results / "local/gtx-9000/gemm_1024.json").unlink()
    done = run(full_tree)
    removed = {p.relative_to("results").as_posix() for p in done.removed}
    assert {"charts/old.zh.svg", "09_gone.md", "09_gone.en.md", "local/01_basics.md"} <= removed
    assert "local/summary.csv" in removed
    left = files(full_tree)
    assert "README.md" in left
    assert not [n for n in left if n.startswith("local/") and not n.endswith(".json")]


def test_without_charts_charts_stay_as_they_are(full_tree: Tree) -> None:
    run(full_tree)
    old = full_tree.results / "charts/old.zh.svg"
    old.write_text("old")
    done = run(full_tree, charts=False)
    assert done.changed == ()
    assert old.is_file()


def test_a_broken_record_stops_before_anything_is_written(full_tree: Tree) -> None:
    broken = full_tree.results / "data/compiled/gemm_1024.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match="is not JSON"):
        run(full_tree)
    assert not (full_tree.results / "01_basics.md").exists()
    (problem,) = check(full_tree)
    assert problem.file == Path("results/data/compiled/gemm_1024.json")


def test_a_complete_tree_has_no_problem(complete: Tree) -> None:
    assert check(complete) == []


def test_what_is_missing_is_named(tree: Tree) -> None:
    run(tree)
    says = [str(p) for p in check(tree)]
    kernels = sum(len(e.kernels) for e in tree.catalog.experiments)
    assert len([s for s in says if "no compiled record" in s]) == kernels
    assert any("no counted record of gemm_1024/matrix_mul_tiled" in s for s in says)
    assert not any("counted" in str(p) for p in check(tree, counted=False))


def test_a_missing_architecture_is_named(complete: Tree) -> None:
    assert check(complete, archs=["sm_89", "sm_90"]) == []
    says = [str(p) for p in check(complete, archs=["sm_90", "sm_120"])]
    assert any("gemm_1024/matrix_mul_tiled is not compiled for sm_120" in s for s in says)


def test_a_comment_is_no_problem_and_a_token_is(complete: Tree) -> None:
    c, s = complete.catalog, complete.sheets
    times = {"matrix_mul_naive": 400.0, "matrix_mul_tiled": 200.0}
    complete.save(measured(c, s, "gemm_1024", times))
    complete.save(measured(c, s, "gemm_1024", times, device=replace(HOSTILE, slug="other")))
    run(complete)
    assert check(complete) == []
    source = complete.root / "kernels/01_basics/matrix_mul_naive.cu"
    before = source.read_text(encoding="utf-8")
    source.write_text("// a remark\n" + before, encoding="utf-8")
    assert check(complete) == []
    source.write_text(before + "\n__device__ int x;\n", encoding="utf-8")
    says = [str(p) for p in check(complete)]
    stale = [x for x in says if "is stale" in x]
    assert any("measured gemm_1024/matrix_mul_naive on nvidia-h200" in x for x in stale)
    assert any("compiled gemm_8192/matrix_mul_naive" in x for x in stale)
    assert any("counted gemm_2048/matrix_mul_naive" in x for x in stale)
    assert not any("matrix_mul_tiled is" in x or "on other" in x for x in stale)


def test_a_hand_edited_missing_or_obsolete_file_is_named(complete: Tree) -> None:
    page = complete.results / "01_basics.md"
    page.write_text(page.read_text(encoding="utf-8").replace("编译", "实测"), encoding="utf-8")
    (complete.results / "summary.csv").unlink()
    (complete.results / "charts").mkdir(exist_ok=True)
    (complete.results / "charts/old.en.svg").write_text("<svg/>")
    says = [str(p) for p in check(complete)]
    assert len(says) == 3
    assert says[0].startswith("results/01_basics.md: is not what the records say")
    assert says[1].startswith("results/summary.csv: is missing")
    assert says[2].startswith("results/charts/old.en.svg: has no record behind it")


def test_kernels_that_failed_are_problems(complete: Tree) -> None:
    record = compiled(complete.catalog, complete.sheets, "gemm_2048")
    bad = Result("matrix_mul_naive", "kernel", status="failed", reason="line 3: no such thing")
    complete.save(replace(record, results=(bad, *record.results[1:])))
    run(complete)
    (problem,) = check(complete)
    assert "gemm_2048/matrix_mul_naive does not compile: line 3: no such thing" in str(problem)


def test_an_older_method_warns_and_does_not_fail(complete: Tree) -> None:
    record = measured(complete.catalog, complete.sheets, "gemm_1024", {"matrix_mul_naive": 400.0})
    complete.save(replace(record, method_version=0))
    run(complete)
    (problem,) = check(complete)
    assert not problem.serious
