"""A missing framework is an error with a remedy before training starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spotladder import extras
from spotladder.errors import EnvironmentFailure
from spotladder.train import huggingface, jax, keras, lightning, tensorflow, torch, torchrun

USES: dict[str, Callable[[], Any]] = {
    "tensorflow": tensorflow.State,
    "tensorflow in Ray": lambda: tensorflow.trainer(print),
    "torch": torch.State,
    "torch in torchrun": torchrun.main,
    "transformers": huggingface.callback,
    "lightning": lightning.callback,
    "keras": keras.callback,
    "jax in Ray": lambda: jax.trainer(print),
}


@pytest.mark.parametrize("use", USES)
def test_a_framework_that_is_not_installed(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    framework = use.split(maxsplit=1)[0]
    with pytest.raises(EnvironmentFailure, match=rf"{framework} is not installed in .*: pip install 'spotladder\["):
        USES[use]()
    assert EnvironmentFailure.exit_code == 5
