"""Finding experiments, and naming what is wrong with them."""

from pathlib import Path

import pytest

from kernelbook import catalog
from kernelbook.errors import ExperimentError, UsageError


def names(root: Path, *patterns: str) -> list[str]:
    chosen = catalog.load(root).select(patterns)
    return [f"{s.experiment.name}/{v}" for s in chosen for v in s.variants]


def test_patterns_name_chapters_experiments_and_variants(root: Path) -> None:
    first = names(root, "01")
    assert first == names(root, "01_basics")
    assert first == names(root)[: len(first)]
    assert names(root, "gemm_1024/matrix_mul_tiled") == ["gemm_1024/matrix_mul_tiled"]
    everywhere = names(root, "matrix_mul_tiled")
    assert everywhere == [f"gemm_{n}/matrix_mul_tiled" for n in (1024, 1056, 2048, 4096, 8192)]
    assert {n.split("/")[0] for n in names(root, "gemm_*")} == {
        "gemm_1024", "gemm_1056", "gemm_2048", "gemm_4096", "gemm_8192",
    }  # fmt: skip


def test_an_unknown_name_suggests_the_nearest(root: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'gemm_1024'"):
        names(root, "gem_1024")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("EXPERIMENTS", "EXPERIMENTS = 1 / 0\nX", "ZeroDivisionError"),
        ("shape={", "shap={", "unexpected keyword argument 'shap'"),
        ("import *", "import (", "SyntaxError"),
        ('"scale.cu"', '"gone.cu"', "no file"),
        ('args=("x",', 'args=("z",', "takes 'z'"),
    ],
)
def test_a_broken_experiments_file_is_one_sentence(
    project: Path, old: str, new: str, what: str
) -> None:
    file = project / "kernels/01_tiny/experiments.py"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"experiments\.py") as caught:
        catalog.load(project)
    assert what in str(caught.value)


def test_a_tree_without_experiments_says_so(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no kernels"):
        catalog.load(tmp_path)
