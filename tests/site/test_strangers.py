"""What a stranger writes into a record shows as text on every page of the site."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import site_project

SCRIPT = "<script>alert(1)</script>"
DATA = '<script type="application/json" id="kb-device-list">'  # ours: read, never run


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_stranger_cannot_put_markup_on_a_page(tmp_path: Path, language: str) -> None:
    root = site_project.make(tmp_path / "project")
    card = site_project.device("gtx-9000", SCRIPT + '" onmouseover="x')
    card = replace(card, driver="<img src=x onerror=y>", cupy="</table><script>z</script>")
    site_project.measured(root, {"scale": 2.0}, card=card)
    site_project.cited(root, {"time": (3.0, "µs")}, "gtx-9001", author="<script>a</script>")
    (path,) = (root / "results/data/measured/gtx-9000").glob("*.json")
    failed = json.loads(path.read_text(encoding="utf-8"))
    failed["results"][0] |= {"status": "failed", "reason": SCRIPT, "timings": []}
    failed["notes"] = {"cpu": "<script>b</script>"}
    path.write_text(json.dumps(failed), encoding="utf-8")
    page = "/// results | scale_1k\n///\n\n/// hardware |\n///\n\n"
    page += '{= cited["gtx-9001"].scale_1k.scale.time =}\n'
    html = site_project.convert(page, root, language=language)
    shown = site_project.convert("/// results-page | 01_tiny\n///\n", root, language=language)
    for text in (html, shown):
        assert "gtx-9000" in text or "GTX" in text or "alert(1)" in text
        assert set(re.findall(r"<script[^>]*>", text)) <= {DATA}
        assert all("<" not in part.split("</script>")[0] for part in text.split(DATA)[1:])
        assert "<img" not in text
        assert not re.search(r"<[^>]*\sonmouseover=", text)


STEERING = ("\x02wzxhzdk:0\x03", "\x02wzxhzdk:1\x03", "\ue0f00\ue0f1")


@pytest.mark.parametrize("name", STEERING)
def test_a_stranger_cannot_have_a_piece_of_the_page_put_elsewhere(
    tmp_path: Path, name: str
) -> None:
    """Python-Markdown and we ourselves mark what is put in later by characters like these."""
    pages = []
    for shown in ("GTX", f"GTX{name}"):
        root = site_project.make(tmp_path / f"project-{len(pages)}")
        site_project.measured(root, {"scale": 2.0}, card=site_project.device("gtx-9000", shown))
        number = '{= measured["gtx-9000"].scale_1k.scale.time | .2f µs =}'
        html = site_project.convert(f"{number}\n\n/// results | scale_1k\n///\n", root)
        pages.append(html.partition(DATA)[0])
    left = name.strip("\x02\x03\ue0f0\ue0f1")  # as text, in its own place
    assert pages[1] == pages[0].replace("GTX", f"GTX{left}")
