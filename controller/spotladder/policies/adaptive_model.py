"""The fitted model of the `adaptive` policy, a JSON file of this package.

`zones` has the hazards of each zone. `slack` has one array of integers for each overhead, price ratio, zone and kind
(wait or leave), in this order. The other fields are the axes of the tables: those of `core.policies.adaptive_tables`.
`python -m tests.bench.fit_adaptive --write` generates the file.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from spotladder.core.policies.adaptive_tables import Model

FILE = "adaptive_model.json"


@cache
def shipped() -> Model:
    """The model of this package, fitted to all zones of the published traces."""
    document = json.loads(files("spotladder.policies").joinpath(FILE).read_text(encoding="utf-8"))
    zones = document["zones"]
    return Model(
        tuple(zone["share"] for zone in zones),
        tuple((tuple(zone["back"]), tuple(zone["lost"])) for zone in zones),
        tuple(ticks for row in document["slack"] for ticks in row),
    )
