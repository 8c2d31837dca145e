"""The workload kind `ray`: an attempt is a RayJob of KubeRay."""
