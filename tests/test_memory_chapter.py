"""Chapter 10: what each access asks for, worked out by hand, and sizes and views of every kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelbook import catalog, ptx
from kernelbook.catalog import Catalog
from kernelbook.devices import sheets
from kernelbook.experiment import Experiment, Kernel
from kernelbook.records import Result
from kernelbook.resources import compilation_of, compile_kernel
from kernelbook.runner.counting import count_kernel
from tiny import ROOT, TINY_CU, TINY_EXPERIMENTS

H200 = sheets().device("nvidia-h200")


@pytest.fixture(scope="module")
def chapters() -> Catalog:
    return catalog.load(ROOT)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def kernel_of(experiment: Experiment, name: str) -> Kernel:
    found = experiment.variant(name)
    assert isinstance(found, Kernel)
    return found


def counted(experiment: Experiment, name: str, cache: Path) -> Result:
    kernel = kernel_of(experiment, name)
    return count_kernel(experiment, kernel, cache, H200.target, H200.arch.name)


def small(experiment: Experiment) -> Experiment:
    return replace(experiment, ragged=experiment.ragged[:1])


# ---- global memory ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (16, 32), (32, 32)]
)
def test_a_stride_takes_as_many_sectors_as_it_touches_and_no_more_than_lanes(
    chapters: Catalog, stride: int, sectors: int, cache: Path
) -> None:
    row = counted(chapters.experiment(f"access_stride_{stride}"), "bad_access", cache)
    assert row.status == "ok", row.reason
    assert row.counts["global_load_sectors"] == 128 * sectors  # 4096 elements, 128 warps
    assert row.counts["global_store_sectors"] == 128 * sectors
    assert row.counts["global_load_bytes"] == 4 * 4096


def test_useful_bytes_do_not_grow_with_the_stride(chapters: Catalog) -> None:
    for kind in ("access", "read", "write"):
        for stride in (1, 32):
            experiment = chapters.experiment(f"{kind}_stride_{stride}")
            assert experiment.bytes_read(experiment.shape) == 64 * 2**20
            assert experiment.bytes_written(experiment.shape) == 64 * 2**20


def test_only_one_side_of_a_strided_copy_is_spread(chapters: Catalog, cache: Path) -> None:
    reads = counted(small(chapters.experiment("read_stride_8")), "strided_read", cache).counts
    writes = counted(small(chapters.experiment("write_stride_8")), "strided_write", cache).counts
    assert (reads["global_load_sectors"], reads["global_store_sectors"]) == (4096, 512)
    assert (writes["global_load_sectors"], writes["global_store_sectors"]) == (512, 4096)


@pytest.mark.parametrize(("offset", "sectors"), [(1, 5), (7, 5), (8, 4), (16, 4), (31, 5), (32, 4)])
def test_128_bytes_lie_in_a_fifth_sector_unless_they_begin_with_one(
    chapters: Catalog, offset: int, sectors: int, cache: Path
) -> None:
    reads = counted(small(chapters.experiment(f"read_offset_{offset}")), "offset_read", cache)
    writes = counted(small(chapters.experiment(f"write_offset_{offset}")), "offset_write", cache)
    assert reads.counts["global_load_sectors"] == 128 * sectors
    assert writes.counts["global_store_sectors"] == 128 * sectors


@pytest.mark.parametrize(
    ("name", "kernel", "requests", "sectors"),
    [
        ("aos_all", "aos_fields", 4, 64),  # each field: 32 points of 16 bytes
        ("aos_all", "aos_whole", 1, 16),
        ("soa_all", "soa_all", 4, 16),
        ("aos_one", "aos_one", 1, 16),  # as much as for all of the fields
        ("soa_one", "soa_one", 1, 4),
    ],
)
def test_layouts_differ_by_what_a_warp_spans(
    chapters: Catalog, name: str, kernel: str, requests: int, sectors: int, cache: Path
) -> None:
    row = counted(chapters.experiment(name), kernel, cache)
    assert row.status == "ok", row.reason
    assert row.counts["global_load_requests"] == 128 * requests
    assert row.counts["global_load_sectors"] == 128 * sectors


def test_a_gather_finds_nearly_every_element_in_a_sector_of_its_own(
    chapters: Catalog, cache: Path
) -> None:
    row = counted(chapters.experiment("gather_dram"), "gather", cache)
    assert row.status == "ok", row.reason
    found = row.counts["global_load_sectors"] / 512 - 4  # 512 warps; 4 sectors of indices each
    assert 31.9 < found <= 32  # of 131072 sectors, 32 drawn: 0.004 meet


# ---- elementwise --------------------------------------------------------------------------------


def run_relu(chapters: Catalog, cache: Path, n: int, x_skip: int, y_skip: int) -> None:
    experiment = chapters.experiment("relu_view_1_1")
    kernel = kernel_of(experiment, "relu_views")
    module = ptx.parse(compile_kernel(experiment, kernel, "sm_90", cache / "compile").ptx)
    x = np.random.default_rng(n).uniform(-1, 1, n + x_skip + 3).astype(np.float32)
    y = np.full(n + y_skip + 3, 7, np.float32)
    arguments = [x, y, np.int32(n), np.int32(x_skip), np.int32(y_skip)]
    ptx.run(module, kernel.entry, max(1, -(-n // 1024)), 256, arguments, observers=())
    wanted = np.full_like(y, 7)
    wanted[y_skip : y_skip + n] = np.maximum(x[x_skip : x_skip + n], 0)
    assert (y == wanted).all(), (n, x_skip, y_skip)


@pytest.mark.parametrize("x_skip", range(4))
def test_views_at_every_offset_are_written_whole_and_nothing_else(
    chapters: Catalog, x_skip: int, cache: Path
) -> None:
    for y_skip in range(5):
        for n in (0, 1, 2, 3, 6, 1029):
            run_relu(chapters, cache, n, x_skip, y_skip)


def test_a_view_of_16_bytes_past_a_sector_still_goes_by_float4(
    chapters: Catalog, cache: Path
) -> None:
    experiment = small(chapters.experiment("relu_view_1_1"))
    experiment = replace(experiment, emulator_shape={"n": 4096, "x_skip": 1, "y_skip": 1})
    row = counted(experiment, "relu_views", cache)
    # 1023 quads from element 4 on: 32 warps; 512 bytes that begin in the middle of a sector lie
    # in 17. The last warp's 31 quads lie in 16. Two requests for the other 4 elements are one.
    assert row.counts["global_load_requests"] == 32 + 1
    assert row.counts["global_load_sectors"] == 31 * 17 + 16 + 2


def test_float4_without_a_tail_leaves_three_elements_unwritten(
    chapters: Catalog, cache: Path
) -> None:
    experiment = chapters.experiment("relu_tail")  # 1003 = 4 * 250 + 3
    right = replace(kernel_of(experiment, "relu_vectorized_short"), counter_example=False)
    row = count_kernel(experiment, right, cache, H200.target, H200.arch.name)
    assert row.status == "failed"
    assert "3 of 1003 elements are wrong; first y[1000] is NaN" in row.reason


def test_vectors_ask_for_the_same_sectors_in_a_quarter_of_the_requests(
    chapters: Catalog, cache: Path
) -> None:
    experiment = small(chapters.experiment("relu_64m"))
    scalar = counted(experiment, "relu_scalar", cache).counts
    vector = counted(experiment, "relu_vectorized", cache).counts
    assert scalar["global_load_requests"] == 4 * vector["global_load_requests"] == 2**16 / 32
    assert scalar["global_load_sectors"] == vector["global_load_sectors"] == 2**16 / 8


def test_the_resident_grid_is_what_occupancy_says(chapters: Catalog, cache: Path) -> None:
    experiment = chapters.experiment("relu_64m")
    for name in ("relu_grid_stride_resident", "relu_grid_stride_unrolled"):
        kernel = kernel_of(experiment, name)
        compiled = compile_kernel(experiment, kernel, "sm_90", cache / "compile")
        found = compilation_of(experiment, kernel, compiled, experiment.shape, H200.target)
        assert kernel.grid(experiment.shape, H200.target) == (132 * found.blocks_per_sm, 1, 1)


@pytest.mark.parametrize(
    ("name", "bytes_a_thread", "kib"),
    [
        ("relu_scalar", 4, 8), ("relu_vectorized", 16, 32), ("relu_vectorized_x2", 32, 64),
        ("relu_vectorized_x4", 64, 128), ("relu_vectorized_streaming_1024", 16, 32),
        ("relu_grid_stride_resident", 4, 8), ("relu_grid_stride_unrolled", 16, 32),
    ],
)  # fmt: skip
def test_bytes_under_way_are_resident_threads_times_what_each_asks_for(
    chapters: Catalog, name: str, bytes_a_thread: int, kib: int, cache: Path
) -> None:
    experiment = chapters.experiment("relu_64m")
    kernel = kernel_of(experiment, name)
    words = 4 * int(kernel.macros["VECTORS"]) if "VECTORS" in kernel.macros else 1
    words *= int(kernel.macros.get("UNROLL", 1))
    assert 4 * words == bytes_a_thread
    compiled = compile_kernel(experiment, kernel, "sm_90", cache / "compile")
    found = compilation_of(experiment, kernel, compiled, experiment.shape, H200.target)
    threads = found.blocks_per_sm * kernel.block(experiment.shape, H200.target)[0]
    assert (found.spill_load_bytes, threads * bytes_a_thread) == (0, kib * 1024)


# ---- shared memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", [1, 2, 3, 7, 16, 31, 32])
def test_a_load_takes_as_many_passes_as_lanes_share_a_bank(
    chapters: Catalog, ways: int, cache: Path
) -> None:
    row = counted(chapters.experiment(f"bank_conflict_{ways}"), "bank_conflicts", cache)
    assert row.status == "ok", row.reason
    loads = 16 * 2 * 32  # 512 threads are 16 warps; two rounds of 32 loads
    assert row.counts["shared_load_instructions"] == loads
    assert row.counts["shared_load_wavefronts"] == ways * loads


@pytest.mark.parametrize(("width", "height", "stores"), [(32, 8, 32), (16, 16, 16), (8, 32, 8)])
def test_a_naive_transpose_writes_a_sector_for_each_column_of_a_warp(
    chapters: Catalog, width: int, height: int, stores: int, cache: Path
) -> None:
    experiment = small(chapters.experiment("transpose_8192"))
    counts = counted(experiment, f"transpose_naive_{width}x{height}", cache).counts
    warps = 128 * 256 // 32
    assert counts["global_load_sectors"] == 4 * warps
    assert counts["global_store_sectors"] == stores * warps


@pytest.mark.parametrize(("name", "degree"), [("conflicts", 32), ("padded", 1), ("swizzled", 1)])
@pytest.mark.parametrize("threads", ["", "_32x8"])
def test_a_column_of_a_tile_is_read_in_so_many_passes(
    chapters: Catalog, name: str, degree: int, threads: str, cache: Path
) -> None:
    experiment = small(chapters.experiment("transpose_8192"))
    counts = counted(experiment, f"transpose_{name}{threads}", cache).counts
    warps = 128 * 256 // 32
    assert counts["shared_store_wavefronts"] == warps
    assert counts["shared_load_wavefronts"] == degree * warps
    assert counts["global_load_sectors"] == counts["global_store_sectors"] == 4 * warps


@pytest.mark.parametrize(
    "name",
    [
        "wide_64x64", "wide_64x64_down", "wide_64x128_down", "wide_128x32", "wide_32x128",
        "wide_32x32", "pipelined_64x64x3",
    ],
)  # fmt: skip
@pytest.mark.parametrize("problem", ["transpose_8192", "transpose_16384x8191"])
def test_quads_pass_through_shared_memory_without_conflicts(
    chapters: Catalog, name: str, problem: str, cache: Path
) -> None:
    row = counted(small(chapters.experiment(problem)), f"transpose_{name}", cache)
    assert row.status == "ok", row.reason
    assert row.counts["shared_conflict_degree"] == 1
    assert row.counts["global_store_bytes"] == 32 * row.counts["global_store_sectors"]


# ---- staged tiles -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "direct", "direct_cover", "staged_sync", "staged_sync_cover", "staged_async",
        "staged_pipeline_own", "staged_pipeline_cover", "staged_pipeline_cover_x2",
    ],
)  # fmt: skip
def test_staging_moves_every_element_once(chapters: Catalog, name: str, cache: Path) -> None:
    experiment = replace(
        chapters.experiment("async_copy_light_64m"),
        emulator_shape={"n": 3 * 4096 + 5}, ragged=({"n": 0}, {"n": 7}),
    )  # fmt: skip
    row = counted(experiment, name, cache)
    assert row.status == "ok", row.reason
    assert row.counts["global_load_bytes"] == row.counts["global_store_bytes"] == 4 * 12_293
    assert row.counts["ffma"] == 12_293


def test_a_polynomial_of_one_degree_less_is_found(chapters: Catalog, cache: Path) -> None:
    experiment = replace(
        chapters.experiment("async_copy_heavy_64m"), emulator_shape={"n": 4096}, ragged=()
    )
    kernel = kernel_of(experiment, "staged_sync")
    short = replace(kernel, macros={**kernel.macros, "DEGREE": 47})
    assert count_kernel(experiment, kernel, cache, H200.target, "sm_90").status == "ok"
    assert count_kernel(experiment, short, cache, H200.target, "sm_90").status == "failed"


# ---- the chapter --------------------------------------------------------------------------------


def test_a_chapter_of_two_modules_is_read_anew_in_another_tree(tmp_path: Path) -> None:
    sizes = []
    for n in (1024, 2048):
        folder = tmp_path / str(n) / "kernels/01_tiny"
        folder.mkdir(parents=True)
        (folder / "scale.cu").write_text(TINY_CU, encoding="utf-8")
        (folder / "sizes.py").write_text(f"N = {n}\n", encoding="utf-8")
        source = "from .sizes import N\n" + TINY_EXPERIMENTS.replace('{"n": 1024}', '{"n": N}')
        (folder / "experiments.py").write_text(source, encoding="utf-8")
        sizes.append(catalog.load(tmp_path / str(n)).experiments[0].shape["n"])
    assert sizes == [1024, 2048]
