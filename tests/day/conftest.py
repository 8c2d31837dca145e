"""The cluster of the end-to-end tests."""

from tests.e2e.conftest import e2e, pytest_sessionstart, site, tag

__all__ = ["e2e", "pytest_sessionstart", "site", "tag"]
