"""`python -m tests.operator.newer controller …` is `spotladder controller …` of a later version: it writes fields into
the state that this version does not know."""

from __future__ import annotations

import json
import sys

from spotladder.cli.main import main
from spotladder.core import codec
from spotladder.core.model import JobState

FIELD = "laterField"

_dump = codec.dump


def dump(state: JobState) -> str:
    """The state with a later version's fields, of the job and of its attempt."""
    plain = json.loads(_dump(state))
    for record in (plain, plain.get("attempt") or {}):
        record[FIELD] = {"seconds": 1.5}
    return json.dumps(plain)


if __name__ == "__main__":
    codec.dump = dump
    sys.exit(main(sys.argv[1:]))
