"""Colours that stand beside each other stay apart for people who do not see red or green."""

from __future__ import annotations

import math
import re
from importlib.resources import files
from itertools import combinations

import pytest

STYLE = files("spotladder.display.report").joinpath("style.css").read_text(encoding="utf-8")
COLOUR = re.compile(r"--([\w-]+): #([0-9a-f]{6});")
SEGMENT = re.compile(r"\.(u-\w+) \{ background: var\(--([\w-]+)\);(?: opacity: ([\d.]+);)? \}")

SEEN = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
"""Matrices on linear RGB, of severity 1: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation
of Color Vision Deficiency", IEEE TVCG 15(6), 2009."""

APART = 12.0
"""Minimum distance in CIE L*a*b* (1976), in which about 2.3 is just noticeable."""

Rgb = tuple[float, ...]


def palette(scheme: str) -> dict[str, Rgb]:
    """The colours of the page, and as `u-…` the segments of the bar of the run's time, on the ground."""
    light, dark = (dict(COLOUR.findall(block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL))
    chosen = light if scheme == "light" else light | dark
    found = {name: tuple(int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)) for name, text in chosen.items()}
    for segment, name, opacity in SEGMENT.findall(STYLE):
        share = float(opacity or 1)
        ground = zip(found[name], found["ground"], strict=True)
        found[segment] = tuple(share * above + (1 - share) * below for above, below in ground)
    return found


def lab(colour: Rgb, seen: str) -> Rgb:
    """L*, a* and b* (white D65) of an sRGB colour as people with these eyes see it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    linear = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in SEEN[seen]]
    rows = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    ratios = [
        sum(a * b for a, b in zip(row, linear, strict=True)) / white
        for row, white in zip(rows, (0.95047, 1.0, 1.08883), strict=True)
    ]
    x, y, z = (ratio ** (1 / 3) if ratio > 216 / 24389 else (24389 / 27 * ratio + 16) / 116 for ratio in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
def test_colours_beside_each_other_are_apart(scheme: str, seen: str) -> None:
    found = palette(scheme)
    beside = {
        "badges, figures and sentences": ("good", "bad", "caution", "soft"),
        "tiers and the losses on them": ("spot", "on-demand", "reserved", "bad"),
        "shares of the run's time": tuple(name for name in found if name.startswith("u-")),
    }
    assert len(beside["shares of the run's time"]) == 6
    near = {
        (one, other): round(apart, 1)
        for names in beside.values()
        for one, other in combinations(names, 2)
        if (apart := math.dist(lab(found[one], seen), lab(found[other], seen))) < APART
    }
    assert near == {}
