"""The check of `tests/conftest.py` that some target of the Makefile runs each test with the marker `frameworks`."""

from __future__ import annotations

import pytest

from tests.framework_parts import without_part


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        ("tests/frameworks/test_torch_loading.py::test_one", True),
        ("tests/frameworks/test_compiled.py::test_one[jax]", True),
        ("tests/examples/test_examples.py::test_digits[tensorflow-a]", True),
        ("tests/packaging/test_walk.py::test_one", True),
        ("tests/frameworks/test_new.py::test_one[torch]", False),
        ("tests/frameworks/test_compiled.py::test_one", False),
        ("tests/stores/test_torch.py::test_one", False),
    ],
)
def test_a_test_belongs_to_a_part_by_its_file_and_its_name(test: str, runs: bool) -> None:
    assert without_part([test]) == ([] if runs else [test])
