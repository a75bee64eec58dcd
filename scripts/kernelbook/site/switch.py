"""The hardware switch: which devices a page shows, as far as a page without a script can say.

Rows, boxes and charts carry the key of their device, and the page carries the list of devices.
The script `devices.js` hides what the reader has unticked and remembers it; without a script
everything is shown. Pages of results are an archive that numbers link into: nothing hides there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from markdown.postprocessors import Postprocessor

from kernelbook.report.book import Book
from kernelbook.report.hardware import hardware
from kernelbook.report.model import ROLES
from kernelbook.site.page import PageState

_KEYS = re.compile(r'\bdata-devices?="(?P<keys>[^"]*)"')
LIST_ID = "kb-device-list"


@dataclass(frozen=True)
class Listed:
    """A device as the switch offers it. ``role`` is one of report.model.ROLES."""

    key: str
    name: str
    role: str


def device_key(slug: str, local: bool) -> str:
    """A reader's own run of a published card is another device to the switch."""
    return f"{slug}@local" if local else slug


def listed(book: Book) -> tuple[Listed, ...]:
    """Every device that has results: the reference first, cited ones last."""
    found = {}
    for box in hardware(book):
        key = device_key(box.slug, box.role == "local")
        found[key] = Listed(key, box.name, box.role)
    for item in book.records_of("measured"):
        key = device_key(item.record.slug, item.local)
        if item.local and key not in found:
            found[key] = Listed(key, book.device_name(item.record), "local")
    order = list(ROLES)
    return tuple(sorted(found.values(), key=lambda device: order.index(device.role)))


def list_html(devices: Iterable[Listed], language: str) -> str:
    """The page's devices for the script; names may come from strangers' records."""
    items = [
        {"key": d.key, "name": d.name, "role": d.role, "about": ROLES[d.role].of(language)}
        for d in devices
    ]
    text = json.dumps(items, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")
    return f'<script type="application/json" id="{LIST_ID}">{text}</script>'


class SwitchPostprocessor(Postprocessor):
    """Adds the list to a page that shows devices."""

    def __init__(self, page: PageState) -> None:
        super().__init__(page.md)
        self.page = page

    def run(self, text: str) -> str:
        shown = {key for match in _KEYS.finditer(text) for key in match["keys"].split()}
        if not shown:
            return text
        devices = [d for d in listed(self.page.project.book) if d.key in shown]
        return f"{text}\n{list_html(devices, self.page.language)}"
