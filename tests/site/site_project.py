"""A small project with made-up records, and pages converted as MkDocs would convert them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import markdown

from kernelbook import catalog, records
from kernelbook.devices import sheets
from kernelbook.experiment import model
from kernelbook.records import (
    Citation,
    CitedValue,
    Compilation,
    DeviceInfo,
    Record,
    Result,
    SharedRequest,
    Timing,
)
from kernelbook.site import stubs
from kernelbook.staleness import kernel_key, variant_key

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "01_tiny"

# Line 5 is a comment, the body of the kernel is lines 8 to 13, and [store] is inside [scale].
SCALE_CU = """\
// scale: y[i] = FACTOR * x[i]
//
// Launch: one thread an element.

#ifndef FACTOR
#define FACTOR 2
#endif
// [scale]
extern "C" __global__ void scale(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // [store]
    if (i < n) y[i] = FACTOR * x[i];  // a { brace } and {= no number =}
    // [/store]
}
// [/scale]
"""

EXPERIMENTS = """\
from kernelbook.experiment import *


def kernel(name, factor):
    return Kernel(
        name=name, source="scale.cu", entry="scale", args=("x", "y", "n"),
        grid=lambda s, t: (ceil_div(s["n"], 128), 1, 1), block=lambda s, t: (128, 1, 1),
        macros={"FACTOR": factor}, title=Text(f"乘以 {factor}", f"times {factor}"),
    )


EXPERIMENTS = [
    Experiment(
        name="scale_1k", title=Text("缩放", "Scaling"),
        shape={"n": 1024}, emulator_shape={"n": 256}, ragged=({"n": 1},),
        buffers=(
            Buffer("x", "in", lambda s: (s["n"],)), Buffer("y", "out", lambda s: (s["n"],)),
        ),
        reference=lambda xp, inputs, shape: {"y": 2.0 * inputs["x"].astype(xp.float64)},
        flops=lambda s: s["n"], tolerance=Tolerance(relative=0.0, absolute=0.0),
        variants=(
            kernel("scale", 2), kernel("scale_by_4", 4),
            Library("device_copy", "device_copy", Text("拷贝", "copy"), flops=lambda s: 0),
        ),
    )
]
"""

SERIES = """\
[[article]]
slug = "01-first"
zh = "第一篇"
en = "The first"

[[article.leads_to]]
slug = "02-second"
zh = "因为"
en = "because"

[[article]]
slug = "02-second"
zh = "第二篇"
en = "The second"
"""


# With titles, as this repository's: a dirty build does not read a page for its title.
NAVIGATION = {
    "Home": "index.md",
    "First": "01-first.md",
    "Results": "results/index.md",
    "Devices": "devices/index.md",
    "Source": "source/index.md",
}


def make(root: Path) -> Path:
    """Write the project's kernels and stubs; no records."""
    chapter = root / "kernels" / CHAPTER
    chapter.mkdir(parents=True)
    (chapter / "scale.cu").write_text(SCALE_CU, encoding="utf-8")
    (chapter / "experiments.py").write_text(EXPERIMENTS, encoding="utf-8")
    (root / "docs").mkdir()
    (root / "docs" / "series.toml").write_text(SERIES, encoding="utf-8")
    stubs.ensure(root, catalog.load(root))
    for language, text in (("zh", "# 首页\n\n正文。\n"), ("en", "# Home\n\nText.\n")):
        (root / "docs" / language / "index.md").write_text(text, encoding="utf-8")
    return root


def with_site(root: Path) -> Path:
    """Add the real configuration and theme, with a navigation that fits the project."""
    shutil.copytree(ROOT / "docs" / "theme", root / "docs" / "theme")
    shutil.copy(ROOT / "docs" / "search-words.txt", root / "docs")
    (root / "results").mkdir(exist_ok=True)
    for name in ("mkdocs.yml", "mkdocs.en.yml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        before, _, rest = text.partition("\nnav:\n")
        _, _, after = rest.partition("\n\n")
        nav = "".join(f"  - {title}: {uri}\n" for title, uri in NAVIGATION.items())
        (root / name).write_text(f"{before}\nnav:\n{nav}\n{after}", encoding="utf-8")
    return root


# ---- records -------------------------------------------------------------------------------


def timing(time_us: float, cache: str = "cold") -> Timing:
    """41 samples around a median, quartiles at 1 % below and above."""
    samples = tuple(time_us * (0.98 + 0.001 * i) for i in range(41))
    low, high = time_us * 0.99, time_us * 1.01
    return Timing(
        cache, "event", "read" if cache == "cold" else "", 1, samples, time_us, low, high,
        samples[0], low, high, 0, "interval", sm_clock_mhz=1980.0,
    )  # fmt: skip


def device(slug: str = "nvidia-h200", name: str = "NVIDIA H200") -> DeviceInfo:
    return DeviceInfo(
        name=name, slug=slug, cc=(9, 0), sms=132, l2_bytes=62914560, memory_bytes=150754820096,
        memory_clock_mhz=3201.0, memory_bus_bits=6016, sm_clock_max_mhz=1980.0,
        power_limit_w=700.0, ecc=True, mig=False, driver="580.1", cuda="13.0", cupy="14.2",
    )  # fmt: skip


def measured(
    root: Path,
    times_us: dict[str, float],
    *,
    card: DeviceInfo | None = None,
    stale: bool = False,
    local: bool = False,
    warm: bool = False,
) -> None:
    """A measured record of scale_1k; warm times are half the cold ones."""
    experiment = catalog.load(root).experiment("scale_1k")
    card = card or device()
    target = sheets().device("nvidia-h200").target
    results = []
    for name, time_us in times_us.items():
        variant = experiment.variant(name)
        flops, read, written = model(experiment, variant, experiment.shape)
        key = variant_key(experiment, variant, "", experiment.shape, target)
        kernel = variant.kind == "kernel"
        compilations = (compilation("sm_90"),) if kernel else ()
        if kernel:
            key = variant_key(experiment, variant, "sm_90", experiment.shape, target)
        timings = (timing(time_us),) + ((timing(time_us / 2, "warm"),) if warm else ())
        results.append(
            Result(
                name, variant.kind, key="gone" if stale else key, flops=flops, bytes_read=read,
                bytes_written=written, timings=timings, compilations=compilations,
            )
        )  # fmt: skip
    _save(root, "measured", tuple(results), local=local, device=card)


def compilation(arch: str, key: str = "", registers: int = 10) -> Compilation:
    return Compilation(
        arch=arch, options=(), nvrtc="12.9", ptx_hash="0", registers=registers, shared_bytes=0,
        spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0, blocks_per_sm=16, occupancy=1.0,
        occupancy_limit="threads", key=key,
    )  # fmt: skip


def compiled(root: Path, *, stale: bool = False) -> None:
    """Compiled for the reference architecture and for sm_89; registers 10 and 12."""
    experiment = catalog.load(root).experiment("scale_1k")
    target = sheets().device("nvidia-h200").target
    results = []
    for kernel in experiment.kernels:
        found = tuple(
            compilation(
                arch,
                "gone" if stale else kernel_key(experiment, kernel, arch, experiment.shape, target),
                registers,
            )
            for arch, registers in (("sm_90", 10), ("sm_89", 12))
        )
        results.append(Result(kernel.name, "kernel", compilations=found))
    _save(root, "compiled", tuple(results))


def counted(
    root: Path,
    counts: dict[str, float],
    variants: tuple[str, ...] = ("scale",),
    lines: dict[str, dict[str, float]] | None = None,
    requests: dict[str, tuple[SharedRequest, ...]] | None = None,
) -> None:
    """What the emulator would have counted at 256 elements."""
    experiment = catalog.load(root).experiment("scale_1k")
    target = sheets().device("nvidia-h200").target
    results = tuple(
        Result(
            name,
            "kernel",
            key=variant_key(
                experiment, experiment.variant(name), "sm_90", experiment.emulator_shape, target
            ),
            counts=counts,
            lines=lines or {},
            requests=requests or {},
            compilations=(compilation("sm_90"),),
        )
        for name in variants
    )
    _save(root, "counted", results, shape=dict(experiment.emulator_shape))


def cited(root: Path, values: dict[str, tuple[float, str]], slug: str, author: str = "Li") -> None:
    result = Result("scale", "kernel", cited={k: CitedValue(*v) for k, v in values.items()})
    citation = Citation(author, "A table", "https://example.org/table")
    _save(root, "cited", (result,), device_slug=slug, citation=citation)


def _save(
    root: Path,
    evidence: Any,
    results: tuple[Result, ...],
    *,
    local: bool = False,
    shape: dict[str, int] | None = None,
    **extra: Any,
) -> None:
    record = Record(
        schema=records.SCHEMA, evidence=evidence, chapter=CHAPTER, experiment="scale_1k",
        shape=shape or {"n": 1024}, dtype="float32", seed=1, results=results,
        commit="0123456789abcdef", date="2026-11-29T12:00:00Z", **extra,
    )  # fmt: skip
    records.save(root / "results", record, local=local)


# ---- pages ---------------------------------------------------------------------------------


@dataclass
class FakeFile:
    """What our extensions ask MkDocs' File for."""

    docs: Path
    src_uri: str
    page: Any = field(default_factory=lambda: SimpleNamespace(meta={}))

    @property
    def abs_src_path(self) -> str:
        return str(self.docs / self.src_uri)

    def url_relative_to(self, other: FakeFile) -> str:
        up = "../" * (other.src_uri.count("/") + 1)
        return f"{up}{self.src_uri.removesuffix('.md')}/"


class _Everything:
    """Other extensions add static files that are not there yet; here all are."""

    def __contains__(self, uri: str) -> bool:
        return True


class FakeRelpath:
    """Stands where MkDocs puts its tree processor for relative links."""

    def __init__(self, docs: Path, uri: str, config_file: Path) -> None:
        self.file = FakeFile(docs, uri)
        self.files = self
        self.config = self
        self.docs_dir = str(docs)
        self.config_file_path = str(config_file)
        self.src_uris = _Everything()

    def get_file_from_path(self, uri: str) -> FakeFile | None:
        return FakeFile(self.file.docs, uri) if (self.file.docs / uri).is_file() else None

    def run(self, root: Any) -> None:
        return None


EXTENSIONS = [
    "attr_list", "tables", "footnotes", "admonition", "md_in_html", "toc",
    "pymdownx.superfences", "pymdownx.inlinehilite",
]  # fmt: skip


def convert(
    text: str,
    root: Path,
    *,
    language: str = "zh",
    uri: str = "01-first.md",
    front_matter: str = "",
    strict: bool = False,
) -> str:
    """The HTML of an article of the project; errors name docs/LANGUAGE/01-first.md."""
    docs = root / "docs" / language
    (docs / uri).parent.mkdir(parents=True, exist_ok=True)
    (docs / uri).write_text(front_matter + text, encoding="utf-8")
    md = markdown.Markdown(
        extensions=[*EXTENSIONS, "kernelbook.site.math", "kernelbook.site.extension"],
        extension_configs={
            "kernelbook.site.extension": {
                "language": language, "root": str(root), "strict": strict,
            }
        },
    )  # fmt: skip
    relpath: Any = FakeRelpath(docs, uri, root / "mkdocs.yml")
    md.treeprocessors.register(relpath, "relpath", 0)
    return md.convert(text)
