"""From mermaid's SVG to one that belongs to the page.

mermaid draws for a white page of its own: fixed colours, a style sheet of 6 KB per diagram,
the same id in every diagram. What is kept is the geometry and the class names; what a colour
means is said once, in ``assets/diagram.css``, in the theme's own variables. Colours an author
chose (``classDef``, ``style``, ``rect rgb(…)``) become a pair of custom properties, one value
for each scheme. Scripts, foreign content and event attributes are dropped.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from kernelbook.site import colour, svg_layout

ID_PLACEHOLDER = "kbd-ID"  # replaced by the diagram's own id when it is put on a page

ET.register_namespace("", "http://www.w3.org/2000/svg")
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_DROPPED_ELEMENTS = {"style", "script", "foreignObject", "image", "animate", "set", "iframe"}
_COLOUR_PROPERTIES = ("fill", "stroke")
_GEOMETRY = {
    "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "width", "height", "d",
    "points", "transform", "viewBox", "refX", "refY",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?|-?\d+e-\d+")
_URL = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")


def themed(svg_text: str) -> str:
    """The SVG rewritten for the page; every id begins with ``ID_PLACEHOLDER``.

    Raises ``xml.etree.ElementTree.ParseError`` if ``svg_text`` is not XML.
    """
    root = ET.fromstring(svg_text)
    parents = {child: parent for parent in root.iter() for child in parent}
    for element in list(root.iter()):
        if _is_unwanted(element):
            parents[element].remove(element)
    _number_series(root)
    _name(root)
    svg_layout.widen_notes(root)
    svg_layout.wrap_axis_labels(root)
    for element in root.iter():
        _clean_attributes(element)
        _adapt_colours(element)
        _round_geometry(element)
    _set_root(root)
    _prefix_ids(root)
    _drop_unreferenced(root)
    _drop_empty(root)
    return ET.tostring(root, encoding="unicode")


def _name(root: ET.Element) -> None:
    """Give the drawing an accessible name: its own title, else what is written in it.

    A ``<title>`` would also show as a tooltip over the whole drawing, so it becomes a label.
    """
    title = root.find(f"{_SVG}title")
    name = "" if title is None else "".join(title.itertext())
    if title is not None:
        root.remove(title)
    for text in root.iter(f"{_SVG}text"):
        if "titleText" in text.get("class", "").replace("TitleText", "titleText"):
            name = name or "".join(text.itertext())
    for group in root.iter(f"{_SVG}g"):
        if group.get("class") == "chart-title":
            name = name or "".join(group.itertext())
    root.attrib.pop("aria-labelledby", None)
    root.set("aria-label", (name or "; ".join(labels(root))[:160]).strip())


def labels(root: ET.Element) -> list[str]:
    """The visible texts, in the order they are drawn, without duplicates."""
    texts = (" ".join("".join(t.itertext()).split()) for t in root.iter(f"{_SVG}text"))
    return list(dict.fromkeys(t for t in texts if t))


def _is_unwanted(element: ET.Element) -> bool:
    tag = element.tag.rpartition("}")[2]
    if tag in _DROPPED_ELEMENTS:
        return True
    # Without a width it draws nothing; xychart's is a slab over the whole page colour.
    is_background = element.get("class") == "background"
    has_size = element.get("width") is not None
    return tag == "rect" and (not has_size or (is_background and element.get("style") is None))


def _number_series(root: ET.Element) -> None:
    """Name the series of a chart by number: mermaid tells them apart by colour alone."""
    for group in root.iter(f"{_SVG}g"):
        match = re.fullmatch(r"(bar|line)-plot-(\d+)", group.get("class", ""))
        if match:
            group.set("class", f"plot-{match[1]} series-{int(match[2]) % 6 + 1}")


def _clean_attributes(element: ET.Element) -> None:
    for name in list(element.attrib):
        value = element.attrib[name]
        is_event = name.lower().startswith("on")
        is_bookkeeping = name.startswith("data-") or name in {"name", "aria-roledescription"}
        is_script = name.rpartition("}")[2] == "href" and not value.startswith(("#", "http"))
        if is_event or is_bookkeeping or is_script:
            del element.attrib[name]
    if element.get("class", "").startswith("actor-line"):
        element.set("class", "actor-line")


def _adapt_colours(element: ET.Element) -> None:
    """Move an author's colours into pairs of custom properties; drop mermaid's own."""
    style = _declarations(element.get("style", ""))
    classes = element.get("class", "").split()
    chosen = {name: style.pop(name) for name in _COLOUR_PROPERTIES if name in style}
    style.pop("color", None)
    style.pop("background-color", None)
    if classes in (["rect"], ["rect", "box"]):  # sequence: the author's `rect` and `box`
        chosen.setdefault("fill", element.get("fill", ""))
    for name in _COLOUR_PROPERTIES:
        if element.get(name) not in (None, "none"):
            del element.attrib[name]
    is_text = element.tag in (f"{_SVG}text", f"{_SVG}tspan")
    if not is_text:
        for name, value in _pairs(chosen):
            classes.append(f"kb-{name}")
            style[f"--{name}-l"], style[f"--{name}-d"] = value.light, value.dark
        for name, text in chosen.items():
            if text == "none":
                style[name] = "none"
    _set(element, "class", " ".join(classes))
    _set(element, "style", ";".join(f"{k}:{v}" for k, v in style.items()))


def _pairs(chosen: dict[str, str]) -> Iterator[tuple[str, colour.Pair]]:
    fill = colour.parse(chosen.get("fill", ""))
    stroke = colour.parse(chosen.get("stroke", ""))
    fill_pair = fill and colour.fill_pair(fill)
    stroke_pair = stroke and colour.line_pair(stroke)
    if fill and fill_pair and not stroke_pair:
        stroke_pair = colour.edge_of(fill)
    if fill_pair:
        yield "fill", fill_pair
    if stroke_pair:
        yield "stroke", stroke_pair


def _declarations(style: str) -> dict[str, str]:
    """A style attribute as a dictionary, without ``!important``."""
    pairs = (part.split(":", 1) for part in style.split(";") if ":" in part)
    return {name.strip(): value.replace("!important", "").strip() for name, value in pairs}


def _set(element: ET.Element, name: str, value: str) -> None:
    if value:
        element.set(name, value)
    else:
        element.attrib.pop(name, None)


def _round_geometry(element: ET.Element) -> None:
    for name in _GEOMETRY.intersection(element.keys()):
        element.set(name, _NUMBER.sub(_shorter, element.attrib[name]))


def _shorter(number: re.Match[str]) -> str:
    rounded = round(float(number[0]), 2)
    return f"{rounded:g}" if rounded else "0"


def _set_root(root: ET.Element) -> None:
    width = float(root.attrib["viewBox"].split()[2])
    for name in ("width", "height", "style"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    if any(e.get("class", "").split()[:1] == ["rect"] for e in root.iter(f"{_SVG}rect")):
        root.set("class", "has-regions")
    root.set("style", f"--width:{width:.0f}px")


def _prefix_ids(root: ET.Element) -> None:
    """Give every id the placeholder as its prefix, and every reference with it."""
    names = {e.attrib["id"]: _prefixed(e.attrib["id"]) for e in root.iter() if e.get("id")}
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, names[value])
            elif name in ("aria-labelledby", "aria-describedby"):
                element.set(name, " ".join(names.get(v, v) for v in value.split()))
            elif name in ("href", _XLINK_HREF) and value.startswith("#"):
                element.set(name, "#" + names.get(value[1:], value[1:]))
            elif "url(" in value:
                element.set(name, _URL.sub(lambda m: f"url(#{names.get(m[1], m[1])})", value))


def _prefixed(name: str) -> str:
    if name == "my-svg":
        return ID_PLACEHOLDER
    return f"{ID_PLACEHOLDER}-{name.removeprefix('my-svg').lstrip('-_')}"


def _drop_unreferenced(root: ET.Element) -> None:
    """Remove markers, symbols and filters nothing points to, and ids nobody needs."""
    used: set[str | None] = {None}  # an element without an id is never dropped
    used.update(m for e in root.iter() for v in e.attrib.values() for m in _URL.findall(v))
    for element in root.iter():
        href = element.get("href") or element.get(_XLINK_HREF) or ""
        used.add(href.removeprefix("#"))
        for name in ("aria-labelledby", "aria-describedby"):
            used.update(element.get(name, "").split())
    parents = {child: parent for parent in root.iter() for child in parent}
    for element in list(root.iter()):
        if element is root or element.get("id") in used:
            continue
        if element.tag in (f"{_SVG}marker", f"{_SVG}symbol", f"{_SVG}filter"):
            parents[element].remove(element)
        else:
            del element.attrib["id"]


def _drop_empty(root: ET.Element) -> None:
    """Remove groups and texts that draw nothing, innermost first."""
    for parent in reversed(list(root.iter())):
        for child in list(parent):
            tag = child.tag.rpartition("}")[2]
            is_empty = len(child) == 0 and not (child.text or "").strip()
            if is_empty and tag in ("g", "defs", "text", "title", "desc"):
                parent.remove(child)
