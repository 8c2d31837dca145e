"""torchrun with the exit codes of the program: `python -m spotladder.train.torchrun` takes the place of `torchrun`.

torchrun itself ends with exit code 1 whenever a process of the program ends with another code than 0, so an interrupted
program looks like a failed one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from spotladder.exit_code import ExitCode
from spotladder.extras import require

_CODES = frozenset(ExitCode)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run torchrun with its own arguments. Returns the exit code of the first process that ended with one of 75 to 78,
    else 0. Raises torchrun's error if no process did."""
    require("torch", "torch")
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    try:
        run(parse_args(sys.argv[1:] if arguments is None else list(arguments)))
    except ChildFailedError as error:
        codes = [int(failure.exitcode) for failure in sorted(error.failures.values(), key=lambda each: each.timestamp)]
        if code := next((code for code in codes if code in _CODES), None):
            return code
        raise
    except SignalException as error:
        return 128 + int(error.sigval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
