from tests.kube.conftest import api_server

__all__ = ["api_server"]
