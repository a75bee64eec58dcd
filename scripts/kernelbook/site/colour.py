"""An author's colours, made to work on a light and on a dark page.

An author writes ``fill:#f9d0c4`` once; the page has two schemes. The hue is kept, lightness
and saturation are moved until the page's text colour is easy to read on the fill, or until a
line stands out from the page. Contrast is WCAG 2.1's: (L1 + 0.05) / (L2 + 0.05) with L the
relative luminance.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

from tinycss2.color3 import RGBA, parse_color

Rgb = tuple[float, float, float]

# Material's text colours over its own backgrounds, default and slate, rounded to the less
# favourable side: text is rgba(0,0,0,.87) on white, and hsla(232,15%,90%,.82) on #1e2129.
LIGHT_TEXT: Rgb = (0.17, 0.17, 0.17)
DARK_TEXT: Rgb = (0.72, 0.73, 0.76)
LIGHT_PAGE: Rgb = (1.0, 1.0, 1.0)
DARK_PAGE: Rgb = (0.12, 0.13, 0.16)

TEXT_CONTRAST = 5.5  # WCAG asks 4.5; the rest is for themes that shade their text
LINE_CONTRAST = 3.0  # WCAG's figure for graphics
GREY_SATURATION = 0.12  # below this a colour is read as "no colour"


@dataclass(frozen=True)
class Pair:
    """One colour for each scheme, as ``#rrggbb``."""

    light: str
    dark: str


def parse(text: str) -> RGBA | None:
    """The colour written in ``text``, or None for none, transparent, url(…) and keywords."""
    colour = parse_color(text)
    if not isinstance(colour, RGBA) or colour.alpha == 0:
        return None
    return colour


def fill_pair(colour: RGBA) -> Pair | None:
    """The fill for either scheme; None for a grey, which takes the theme's own surface."""
    hue, saturation, lightness = _hls(colour)
    if saturation < GREY_SATURATION or lightness > 0.97 or lightness < 0.04:
        return None
    light = _legible((hue, max(lightness, 0.86), min(saturation, 0.85)), +1, LIGHT_TEXT)
    dark = _legible((hue, 0.27, min(saturation, 0.38)), -1, DARK_TEXT)
    return Pair(light, dark)


def line_pair(colour: RGBA) -> Pair | None:
    """The stroke for either scheme; None for a grey, which takes the theme's line colour."""
    hue, saturation, lightness = _hls(colour)
    if saturation < GREY_SATURATION or lightness > 0.97 or lightness < 0.04:
        return None
    light = _visible((hue, min(lightness, 0.5), min(saturation, 0.75)), -1, LIGHT_PAGE)
    dark = _visible((hue, max(lightness, 0.6), min(saturation, 0.6)), +1, DARK_PAGE)
    return Pair(light, dark)


def edge_of(colour: RGBA) -> Pair | None:
    """An outline in the hue of a fill, for a shape whose author gave it a grey outline."""
    hue, saturation, _ = _hls(colour)
    return line_pair(_rgba(hue, max(saturation * 0.7, 0.3), 0.45))


def contrast(one: Rgb, other: Rgb) -> float:
    """WCAG 2.1 contrast of two opaque colours, 1 to 21."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(rgb: Rgb) -> float:
    """WCAG 2.1 relative luminance of an sRGB colour, components 0 to 1."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _hls(colour: RGBA) -> tuple[float, float, float]:
    """Hue, saturation, lightness of ``colour`` as it looks on white."""
    r, g, b = (c * colour.alpha + 1 - colour.alpha for c in colour[:3])
    hue, lightness, saturation = colorsys.rgb_to_hls(r, g, b)
    return hue, saturation, lightness


def _rgba(hue: float, saturation: float, lightness: float) -> RGBA:
    return RGBA(*colorsys.hls_to_rgb(hue, lightness, saturation), 1.0)


def _legible(hls: tuple[float, float, float], direction: int, text: Rgb) -> str:
    return _moved(hls, direction, text, TEXT_CONTRAST)


def _visible(hls: tuple[float, float, float], direction: int, page: Rgb) -> str:
    return _moved(hls, direction, page, LINE_CONTRAST)


def _moved(hls: tuple[float, float, float], direction: int, against: Rgb, wanted: float) -> str:
    """The first colour, lighter (+1) or darker (-1) in steps, with the contrast wanted."""
    hue, lightness, saturation = hls
    rgb = colorsys.hls_to_rgb(hue, lightness, saturation)
    while contrast(rgb, against) < wanted and 0 < lightness < 1:
        lightness = min(1.0, max(0.0, lightness + 0.01 * direction))
        rgb = colorsys.hls_to_rgb(hue, lightness, saturation)
    return "#" + "".join(f"{round(c * 255):02x}" for c in rgb)
