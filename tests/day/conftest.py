"""The cluster of the end-to-end tests."""

from tests.e2e.conftest import here, pytest_sessionstart, site, tag

__all__ = ["here", "pytest_sessionstart", "site", "tag"]
