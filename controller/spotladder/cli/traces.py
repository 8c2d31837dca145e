"""The traces that options and arguments name. Needs the packages of the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from spotladder.errors import InvalidSpec
from spotladder.sim.readers import any_format
from spotladder.sim.readers.any_format import Reading
from spotladder.sim.synthetic import SyntheticMarket, generate
from spotladder.sim.trace import Trace

T = TypeVar("T")

SYNTHETIC = "synthetic"

SYNTHETIC_TICKS = 10_000
"""Length of a synthetic trace: 69 days. A run begins at a random moment of it."""


def traces(given: Sequence[str]) -> dict[str, tuple[Trace, ...]]:
    """The traces that values of --trace name, by tier. Synthetic ones are independent of each other. Raises
    InvalidSpec."""

    def read(named: str, rest: str) -> dict[str, tuple[Trace, ...]]:
        if rest == SYNTHETIC:
            return {
                named: tuple(
                    generate(SyntheticMarket(), SYNTHETIC_TICKS, [named], list(named.encode(errors="surrogateescape")))
                )
            }
        return {name: tuple(one.trace for one in found) for name, found in _zones(named, Path(rest)).items()}

    return _by_zone(given, read, f"TIER=FILE or TIER={SYNTHETIC}", path="--trace")


def recorded(given: Sequence[str]) -> dict[str, list[Reading]]:
    """The recorded traces that arguments name, by zone, with their formats. Raises InvalidSpec."""
    return _by_zone(given, lambda named, rest: _zones(named, Path(rest)), "[ZONE=]FILE")


def _by_zone(
    given: Sequence[str], read: Callable[[str, str], dict[str, T]], forms: str, path: str = ""
) -> dict[str, T]:
    """What `read` finds for the name and the rest of each argument, by zone. `forms` says what an argument is. Raises
    InvalidSpec, with the option `path`."""
    found: dict[str, T] = {}
    for text in given:
        head, equals, tail = text.partition("=")
        named, rest = (head, tail) if equals and "/" not in head else ("", text)  # The = may be in the file's path.
        if not rest or text.startswith("=") or text == SYNTHETIC:
            raise InvalidSpec(f"expected {forms}, got {text!r}: name a trace", path=path)
        for name, one in read(named, rest).items():
            if name in found:
                raise InvalidSpec(f"zone {name!r} is given twice: name one of them, as in b={rest}", path=path)
            found[name] = one
    return found


def _zones(named: str, file: Path) -> dict[str, list[Reading]]:
    """The traces of a file or folder by zone. A name selects one of several zones, and names a single one. Raises
    InvalidSpec for a name that is none of several zones."""
    zones = {found[0].trace.zone if len(found) == 1 else file.stem: found for found in any_format.read_zones(file)}
    if named and len(zones) > 1:
        if named not in zones:
            raise InvalidSpec(f"has no zone {named!r} (expected one of {', '.join(zones)})", where=str(file))
        zones = {named: zones[named]}
    return {named or name: found for name, found in zones.items()}
