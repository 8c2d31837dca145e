"""An image whose program starts as root, changes file owners, switches the user and installs files."""

from __future__ import annotations

from tests.e2e.world import E2eCluster

STEPS = 60

SETS_ITSELF_UP = f"""
set -e
mkdir -p /srv/data && chown 1234:1234 /srv/data && chmod 700 /srv/data
echo cached > /srv/data/file && chown 1234 /srv/data/file
tar -cf /tmp/layer.tar -C /srv data && tar -xpf /tmp/layer.tar -C /opt
su -s /bin/sh nobody -c 'test "$(id -un)" = nobody'
exec python /programs/plain.py --steps {STEPS} --pace 0.1
"""
"""What entry points of images do before the program: chown, untar, write to the folder of another user, su."""


def test_an_image_that_starts_as_root_works_by_default(e2e: E2eCluster) -> None:
    e2e.pool("spot", 1)
    pod = e2e.pod("256Mi", command=["sh", "-c", SETS_ITSELF_UP])
    job = {"parallelism": 1, "template": {"spec": pod}}
    replicated = [{"name": "workers", "template": {"spec": job}}]
    e2e.submit("spot", workload={"jobSet": {"template": {"spec": {"replicatedJobs": replicated}}}})
    e2e.succeeds()
    assert e2e.path() == [("spot", "Completed")]
    e2e.is_the_uninterrupted_result(steps=STEPS)
