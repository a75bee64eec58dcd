"""Diagrams rendered at build time: whole labels, unique ids, no colour of their own."""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import pytest
from diagrams import ALL, BARRIERS, DATA_FLOW, LADDER, build_site, convert, fenced, write_site
from mermaidx.engines.quickjs_engine import Engine

from kernelbook.errors import PageError
from kernelbook.site import colour, mermaid, mermaid_engine, svg, text_width

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diagrams")


@pytest.fixture(scope="session")
def drawings(cache: Path) -> dict[str, ET.Element]:
    """Every sample, parsed."""
    return {kind: drawing(convert(fenced(source), cache)) for kind, source in ALL.items()}


def drawing(html: str) -> ET.Element:
    return ET.fromstring(re.search(r"<svg.*?</svg>", html, re.DOTALL)[0])


def text_of(element: ET.Element) -> str:
    return "".join(element.itertext())


def least_width(text: str, size: float = 16.0) -> float:
    """What no font draws narrower: an em per Chinese character, 0.4 em per other."""
    return sum(size * (1.0 if unicodedata.east_asian_width(c) in "WF" else 0.4) for c in text)


def test_every_label_is_in_the_drawing_as_text(drawings: dict[str, ET.Element]) -> None:
    assert "屏障：所有线程都搬完之后，才允许任何一个线程开始计算" in text_of(drawings["sequence"])
    assert "还有下一个分块？" in text_of(drawings["flowchart"])
    assert "1024 个线程协作搬运" in text_of(drawings["flowchart"])
    assert "每一步优化之后的吞吐（TFLOPS）" in text_of(drawings["xychart"])
    assert "正在执行指令" in text_of(drawings["state"])


def test_a_node_is_wide_enough_for_its_chinese_label(drawings: dict[str, ET.Element]) -> None:
    nodes = [g for g in drawings["flowchart"].iter(f"{SVG}g") if "node" in g.get("class", "")]
    boxes = 0
    for node in nodes:
        rect = node.find(f"{SVG}rect")
        if rect is None or rect.get("width") is None:
            continue
        boxes += 1
        rows = [t for t in node.iter(f"{SVG}tspan") if "row" in t.get("class", "")]
        for row in rows:
            assert float(rect.attrib["width"]) >= least_width(text_of(row)), text_of(row)
    assert boxes >= 2


def test_a_subgraph_is_wide_enough_for_its_title(drawings: dict[str, ET.Element]) -> None:
    clusters = [g for g in drawings["flowchart"].iter(f"{SVG}g") if g.get("class") == "cluster"]
    assert len(clusters) == 2
    for cluster in clusters:
        width = float(cluster.find(f"{SVG}rect").attrib["width"])
        assert width >= least_width(text_of(cluster)), text_of(cluster)


def test_a_note_and_the_drawing_grow_with_the_notes_text(drawings: dict[str, ET.Element]) -> None:
    root = drawings["sequence"]
    left, _, width, _ = map(float, root.attrib["viewBox"].split())
    notes = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "note"]
    assert len(notes) == 1
    x, note_width = float(notes[0].attrib["x"]), float(notes[0].attrib["width"])
    # 26 wide characters of 16 px, and no less than 10 px on either side of them
    assert note_width >= 26 * 16 + 20
    assert left <= x
    assert x + note_width <= left + width


def test_names_under_the_bars_are_broken_rather_than_overlapping(
    drawings: dict[str, ET.Element],
) -> None:
    axis = next(g for g in drawings["xychart"].iter(f"{SVG}g") if g.get("class") == "bottom-axis")
    labels = next(g for g in axis.iter(f"{SVG}g") if g.get("class") == "label")
    texts = labels.findall(f"{SVG}text")
    middles = [float(re.search(r"translate\(([\d.]+)", t.attrib["transform"])[1]) for t in texts]
    rows = [[text_of(row) for row in t] or [t.text] for t in texts]
    assert ["".join(row) for row in rows][2] == "二维寄存器分块"
    for index in range(len(texts) - 1):
        reach = max(least_width(r, 14) for r in rows[index]) / 2
        next_reach = max(least_width(r, 14) for r in rows[index + 1]) / 2
        assert reach + next_reach < middles[index + 1] - middles[index]


def test_no_colour_is_left_but_the_authors_pairs(drawings: dict[str, ET.Element]) -> None:
    for root in drawings.values():
        for element in root.iter():
            for name in ("fill", "stroke", "color", "background-color"):
                assert element.get(name) in (None, "none"), (element.tag, name, element.get(name))
            for declaration in element.get("style", "").split(";"):
                name = declaration.split(":")[0].strip()
                if re.search(r"#[0-9a-f]{3}|rgb|hsl", declaration):
                    assert name in ("--fill-l", "--fill-d", "--stroke-l", "--stroke-d")
        assert root.find(f".//{SVG}style") is None
    assert "background" not in [r.get("class") for r in drawings["xychart"].iter(f"{SVG}rect")], (
        "the white slab behind a chart"
    )


def test_an_authors_fill_keeps_its_hue_and_lets_text_be_read_in_both_schemes(
    drawings: dict[str, ET.Element],
) -> None:
    by_class = {
        g.get("class").split()[2]: g.find(f"{SVG}rect")
        for g in drawings["flowchart"].iter(f"{SVG}g")
        if g.get("class", "").startswith("node default ") and g.find(f"{SVG}rect") is not None
    }
    assert set(by_class) == {"far", "near"}
    for rect in by_class.values():
        assert "kb-fill" in rect.attrib["class"]
        style = dict(d.split(":") for d in rect.attrib["style"].split(";"))
        light, dark = (colour.parse(style[f"--fill-{s}"])[:3] for s in "ld")
        assert colour.contrast(light, (0.13, 0.13, 0.13)) >= 4.5
        assert colour.contrast(dark, colour.DARK_TEXT) >= 4.5
    near = dict(d.split(":") for d in by_class["near"].attrib["style"].split(";"))
    red, green, blue = colour.parse(near["--fill-l"])[:3]
    assert blue > red > green  # #1b1464 is a blue with more red than green


def test_a_grey_or_white_fill_becomes_the_themes_own_surface() -> None:
    assert colour.fill_pair(colour.parse("#fff")) is None
    assert colour.fill_pair(colour.parse("#333")) is None
    assert colour.parse("none") is None
    assert colour.parse("transparent") is None


def test_contrast_is_wcags() -> None:
    assert colour.contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21.0)
    assert colour.contrast((1, 0, 0), (1, 1, 1)) == pytest.approx(4.0, abs=0.005)  # 1.05/0.2626


def test_ids_are_unique_on_a_page_and_references_follow_them(cache: Path) -> None:
    page = convert(fenced(DATA_FLOW) + "\n" + fenced(DATA_FLOW) + "\n" + fenced(BARRIERS), cache)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) >= 6
    assert not [name for name in ids if not re.fullmatch(r"kbd-[0-9a-f]{8}(-.+)?", name)]
    references = set(re.findall(r"url\(#([^)]+)\)", page))
    assert len(references) >= 3
    assert references <= set(ids)


def test_the_same_article_gives_the_same_bytes(cache: Path, tmp_path: Path) -> None:
    assert convert(fenced(LADDER), cache) == convert(fenced(LADDER), tmp_path)


def test_the_drawing_scales_and_has_a_role(drawings: dict[str, ET.Element]) -> None:
    for root in drawings.values():
        assert root.get("role") == "img"
        assert root.get("height") is None
        assert root.get("width") is None
        width = float(root.attrib["viewBox"].split()[2])
        assert float(re.search(r"--width:(\d+)px", root.attrib["style"])[1]) == round(width)


def test_the_accessible_name_is_the_caption_else_the_title_else_the_labels(cache: Path) -> None:
    captioned = convert(fenced(LADDER, caption="吞吐一步步 <增长>"), cache)
    assert drawing(captioned).get("aria-label") == "吞吐一步步 <增长>"
    assert "<figcaption>吞吐一步步 &lt;增长&gt;</figcaption>" in captioned
    plain = convert(fenced(LADDER), cache)
    assert drawing(plain).get("aria-label") == "每一步优化之后的吞吐（TFLOPS）"
    assert "figcaption" not in plain
    titled = convert(fenced(BARRIERS.replace("autonumber", "accTitle: 两次屏障")), cache)
    assert drawing(titled).get("aria-label") == "两次屏障"
    assert "<title" not in titled
    unnamed = drawing(convert(fenced(DATA_FLOW), cache)).get("aria-label")
    assert "tile_a 32×32（4 KB）" in unnamed


def test_scripts_and_event_attributes_do_not_survive() -> None:
    hostile = (
        '<svg xmlns="http://www.w3.org/2000/svg" id="my-svg" viewBox="0 0 9 9" onload="a()">'
        '<script>a()</script><g id="x" onclick="a()"><path d="M0 0"/></g>'
        '<a href="javascript:a()"><path d="M1 1"/></a>'
        "<foreignObject><body>b</body></foreignObject></svg>"
    )
    clean = svg.themed(hostile)
    assert not re.search(r"script|onload|onclick|foreignObject|a\(\)", clean)
    assert clean.count("<path") == 2


def test_a_second_render_comes_from_the_disk_and_a_damaged_entry_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = convert(fenced(LADDER), tmp_path)
    (entry,) = [p for p in tmp_path.rglob("*") if p.is_file()]

    calls: list[str] = []
    render = mermaid._render
    monkeypatch.setattr(
        mermaid, "_render", lambda *given: calls.append("rendered") or render(*given)
    )
    assert convert(fenced(LADDER), tmp_path) == first
    assert calls == []

    entry.write_text(entry.read_text("utf-8").replace("TFLOPS", "GFLOPS"), "utf-8")
    assert convert(fenced(LADDER), tmp_path) == first
    assert calls == ["rendered"]
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [entry]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the way")
    assert "优化" in convert(fenced(LADDER), blocked)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("xychart-beta\n  x-axis [甲, 乙]\n  bar [1, 2]\n", "needs double quotes: x-axis [甲, 乙]"),
        ("graph TD\n  A[f(x)] --> B\n", 'needs quotes: A["f(x)"]'),
        ("sequenceDiagram\n  A->>B: x\n  foo bar\n  B->>A: y\n", "at: foo bar"),
        ("pie\n  'a': 1\n", "no diagram begins with 'pie'"),
        ("\n", "a mermaid fence is empty"),
    ],
)
def test_a_broken_diagram_is_refused_in_one_line(source: str, complaint: str, cache: Path) -> None:
    with pytest.raises(PageError) as refused:
        convert(fenced(source), cache)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_title_option_is_refused_because_only_captions_are_shown(cache: Path) -> None:
    with pytest.raises(PageError, match="no option 'title'"):
        convert('```mermaid title="x"\ngraph TD\n  A-->B\n```\n', cache)


def test_superfences_must_come_first() -> None:
    import markdown

    with pytest.raises(PageError, match=r"pymdownx\.superfences before"):
        markdown.markdown("x", extensions=["kernelbook.site.mermaid"])


def test_mkdocs_stops_with_the_line_of_the_article(tmp_path: Path) -> None:
    article = (
        "---\ntitle: t\n---\n# T\n\n- 列表\n\n"  # the fence below opens on line 8
        "    ```mermaid\n    %% a comment\n    sequenceDiagram\n      A->>B: x\n"
        "      foo bar\n    ```\n"
    )
    write_site(tmp_path, article)
    build = build_site(tmp_path)
    assert build.returncode == 1
    assert "docs/index.md:12: mermaid cannot read this diagram" in build.stderr
    assert "Traceback" not in build.stderr


def test_mkdocs_gets_the_style_sheets_and_the_fonts(tmp_path: Path) -> None:
    write_site(tmp_path, "# T\n\nNeither a diagram nor a formula.\n")
    assert build_site(tmp_path).returncode == 0
    assets = tmp_path / "site" / "assets" / "kernelbook"
    assert b".kb-diagram" in (assets / "diagram.css").read_bytes()
    sheet = (assets / "katex" / "katex.css").read_text("utf-8")
    named = set(re.findall(r"url\(([^)]+)\)", sheet))
    assert len(named) == 20
    assert named == {p.name for p in (assets / "katex").glob("*.woff2")}


def test_the_style_sheet_names_colours_only_in_its_palette() -> None:
    sheet = (files("kernelbook.site") / "assets" / "diagram.css").read_text("utf-8")
    for line in re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL).splitlines():
        if re.search(r"#[0-9a-f]{3,6}\b|rgb\(", line):
            assert line.strip().startswith("--kb-"), line


@pytest.mark.parametrize(
    ("text", "em"),
    [("带宽墙", 3.0), ("，。", 2.0), ("😀", 1.25), ("等……", 3.0)],
)
def test_wide_characters_count_as_wide(text: str, em: float) -> None:
    measurer = text_width.WideTextMeasurer()
    assert measurer.width(text, 16, "", "normal", "normal") == pytest.approx(16 * em)


def test_latin_text_is_measured_as_before_also_beside_chinese() -> None:
    measurer = text_width.WideTextMeasurer()
    latin = measurer.width("tile_a", 16, "", "normal", "normal")
    assert 16 * 6 * 0.4 < latin < 16 * 6 * 0.7
    mixed = measurer.width("写入tile_a", 16, "", "normal", "normal")
    assert mixed == pytest.approx(latin + 32)
    assert not text_width.is_wide("×", among_wide=False)
    assert not text_width.is_wide("α")


def test_the_faster_engine_draws_what_mermaidx_draws() -> None:
    source = 'flowchart LR\n  A["甲"]:::hot -->|"乙"| B{"c"}\n  subgraph S["丙"]\n  B\n  end\n'
    source += "  classDef hot fill:#fdd,stroke:#900,stroke-width:2px\n"
    plain = Engine()
    plain.start()
    plain._measurer = text_width.WideTextMeasurer()
    expected = plain.render_svg(source, "default", mermaid._CONFIG, None)
    plain.close()
    drawn = mermaid_engine.engine().render_svg(source, "default", mermaid._CONFIG, None)
    assert drawn == expected
