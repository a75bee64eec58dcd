"""SVG charts: what they show, that they fit both schemes, that bytes are stable."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from kernelbook import catalog
from kernelbook.errors import ExperimentError
from kernelbook.report.canvas import COLOURS, FOREGROUND, text_width
from kernelbook.report.charts import chart_file, chart_svg
from kernelbook.report.marks import marks

from .made_up import Tree, measured

SVG = "{http://www.w3.org/2000/svg}"
SLATE = "#1e2129"


def draw(tree: Tree, name: str, language: str = "en") -> str | None:
    book = tree.book()
    chart = next(c for c in book.catalog.charts if c.name == name)
    return chart_svg(book, chart, language)


def texts(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in ET.fromstring(svg).iter(f"{SVG}text")]


@pytest.fixture
def names(tree: Tree) -> list[str]:
    return [c.name for c in tree.catalog.charts]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_charts_are_text_in_the_pages_colour(
    full_tree: Tree, names: list[str], language: str
) -> None:
    assert len(names) >= 5
    for name in names:
        svg = draw(full_tree, name, language)
        assert svg is not None
        chart = next(c for c in full_tree.catalog.charts if c.name == name)
        assert chart.title.of(language) in texts(svg)
        assert len(svg) < 40_000
        body = svg[svg.index("</style>") :]
        colours = {c.lower() for c in re.findall(r"#[0-9a-fA-F]{3,6}\b", body)}
        assert colours <= set(COLOURS)  # no black, no white, no sentinel
        assert FOREGROUND not in svg
        assert "var(--md-default-fg-color," in svg
        assert "DejaVu" not in svg
        assert not re.search(r"\d{4}-\d\d-\d\d", svg)
        assert not re.findall(r'(?:href|src)="http', svg)
        root = ET.fromstring(svg)
        for text in root.iter(f"{SVG}text"):
            assert "currentColor" in text.get("style", "")


def test_series_stand_out_on_white_and_on_slate() -> None:
    def luminance(colour: str) -> float:
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for colour in COLOURS:
        mine = luminance(colour)
        assert 1.05 / (mine + 0.05) >= 3, colour
        assert (mine + 0.05) / (luminance(SLATE) + 0.05) >= 3, colour
    assert len(set(COLOURS)) == len(COLOURS)


def test_equal_bytes_when_drawn_twice(full_tree: Tree, names: list[str]) -> None:
    for name in names:
        assert draw(full_tree, name) == draw(full_tree, name)


def test_ids_begin_with_the_charts_name_and_resolve(full_tree: Tree, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        svg = draw(full_tree, name)
        assert svg is not None
        ids = re.findall(r' id="([^"]+)"', svg)
        assert all(i.startswith(f"chart-{name}-") for i in ids)
        assert len(set(ids)) == len(ids)
        assert not seen & set(ids)
        seen |= set(ids)
        assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg)) <= set(ids)


def test_bars_show_every_device_and_hatch_the_cited(full_tree: Tree) -> None:
    svg = draw(full_tree, "gemm_1024_throughput")
    assert svg is not None
    shown = texts(svg)
    # 2 * 1024^3 / 200 µs, / 800 µs, and as the author printed it
    assert {"10.74", "2.68", "6.89"} <= set(shown)
    assert "NVIDIA GeForce RTX 4090 (cited from psmarter)" in shown
    assert any(t.startswith("GTX <script>") and t.endswith("this machine)") for t in shown)
    assert "<script>" not in svg
    assert "<pattern" in svg
    published = chart_svg(
        full_tree.book().published(),
        next(c for c in full_tree.catalog.charts if c.name == "gemm_1024_throughput"),
        "en",
    )
    assert published is not None
    assert not any("this machine" in t for t in texts(published))


def test_spread_is_q1_to_q3(full_tree: Tree) -> None:
    book = full_tree.book()
    chart = next(c for c in book.catalog.charts if c.name == "gemm_1024_throughput")
    first = marks(book, chart)[0]
    assert (first.variant, first.card.slug) == ("matrix_mul_naive", "nvidia-h200")
    # 2147.483648 GFLOP over 400, 408 and 396 µs
    assert first.value == pytest.approx(5.36870912)
    assert first.low == pytest.approx(5.26344031)
    assert first.high == pytest.approx(5.42293851)
    cited = marks(book, chart)[-1]
    assert (cited.low, cited.high) == (None, None)


def test_a_roofline_places_by_the_model(full_tree: Tree) -> None:
    book = full_tree.book()
    chart = next(c for c in book.catalog.charts if c.name == "roofline_01")
    by = {(m.variant, m.card.slug): m for m in marks(book, chart)}
    add = by["vector_add", "nvidia-h200"]
    assert add.x == pytest.approx(1 / 12)
    assert by["matrix_mul_tiled", "nvidia-h200"].x == pytest.approx(2 * 1024 / 12)
    # cited without a throughput: 932.81 GB/s / 12 B per FLOP
    cited = by["vector_add", "nvidia-geforce-rtx-4090"]
    assert cited.value == pytest.approx(0.93281 / 12)


def test_a_counted_chart_draws_the_emulator_and_no_card(full_tree: Tree) -> None:
    book = full_tree.book()
    chart = next(c for c in book.catalog.charts if c.name == "gemm_1024_throughput")
    chart = replace(chart, metric="global_load_sectors", evidence="counted")
    assert [(m.variant, m.value) for m in marks(book, chart)] == [("matrix_mul_tiled", 131_072)]
    svg = chart_svg(book, chart, "en")
    assert svg is not None
    shown = texts(svg)
    assert "emulator (counted)" in shown
    assert not any("NVIDIA" in text for text in shown)


def test_a_chart_without_data_is_not_drawn(tree: Tree) -> None:
    assert all(draw(tree, c.name) is None for c in tree.catalog.charts)
    tree.save(measured(tree.catalog, tree.sheets, "gemm_1024", {"matrix_mul_naive": 400.0}))
    assert draw(tree, "gemm_1024_throughput") is not None
    assert draw(tree, "gemm_sweep") is None  # one size is no sweep
    sweep = next(c for c in tree.catalog.charts if c.name == "gemm_sweep")
    assert marks(tree.book(), sweep) == ()


def test_stale_numbers_are_marked(full_tree: Tree) -> None:
    source = full_tree.root / "kernels/01_basics/matrix_mul_naive.cu"
    source.write_text(source.read_text(encoding="utf-8") + "\n__device__ int x;\n", "utf-8")
    svg = draw(full_tree, "gemm_1024_throughput")
    assert svg is not None
    assert "5.37 ⚠ stale" in texts(svg)
    assert "10.74" in texts(svg)
    for name in ("gemm_sweep", "roofline_01"):
        assert "⚠ stale" in texts(draw(full_tree, name) or "")


def test_chinese_is_measured_as_wide() -> None:
    assert text_width("带宽", 10) == 20
    assert text_width("分块，32", 10) > text_width("tile32", 10)


def test_labels_stay_inside_the_picture(full_tree: Tree) -> None:
    book = full_tree.book()
    chart = next(c for c in book.catalog.charts if c.name == "vector_add_bandwidth")
    svg = chart_svg(book, chart, "zh")
    assert svg is not None
    for text in ET.fromstring(svg).iter(f"{SVG}text"):
        words, style = "".join(text.itertext()), text.get("style", "")
        size = float(re.search(r"font-size: ([\d.]+)px", style).group(1))  # type: ignore[union-attr]
        anchor = re.search(r"text-anchor: (\w+)", style)
        share = {"middle": 0.5, "end": 1.0}.get(anchor.group(1) if anchor else "", 0.0)
        left = float(text.get("x", "0")) - share * text_width(words, size)
        assert left >= -1
        assert left + text_width(words, size) <= 721


def test_a_page_takes_the_readers_chart_where_there_is_one(tree: Tree) -> None:
    assert chart_file(tree.results, "a", "zh") == tree.results / "charts/a.zh.svg"
    local = tree.results / "local/charts/a.zh.svg"
    local.parent.mkdir(parents=True)
    local.write_text("<svg/>")
    assert chart_file(tree.results, "a", "zh") == local


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"experiments": ("gemm_1",)}, "no experiment of this chapter"),
        ({"variants": ("nobody",)}, "none of its experiments has"),
        ({"name": "../../evil"}, "is not a file's name"),
        ({"name": "gemm_sweep"}, "exists twice"),
        ({"kind": "sweep", "x": "z"}, "no entry of the shape"),
    ],
)
def test_a_chart_that_does_not_hold_together_names_its_file(
    tree: Tree, change: dict[str, object], says: str
) -> None:
    file = tree.root / "kernels/01_basics/experiments.py"
    first = next(c for c in tree.catalog.charts if c.name == "gemm_1024_throughput")
    broken = replace(first, **{"name": "another", **change})  # type: ignore[arg-type]
    text = file.read_text(encoding="utf-8") + f"\nCHARTS.append({broken!r})\n"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ExperimentError, match=says) as error:
        catalog.load(tree.root)
    assert error.value.file == str(file)
