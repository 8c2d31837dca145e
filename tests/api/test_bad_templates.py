"""Messages for invalid RayJob templates. The messages are compared exactly."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, Case, changed, said_about

CASES = [
    Case(
        "reserved environment variable in the runtime environment",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {SPOTLADDER_URI: x}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: env_vars.SPOTLADDER_URI is set by "
        "spotladder for each attempt; remove it",
    ),
    Case(
        "misspelt key of the runtime environment",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'envvars: {A: b}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: envvars is not a known field; did you "
        "mean env_vars?",
    ),
    Case(
        "another misspelt key of the runtime environment",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'workingdir: .'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: workingdir is not a known field; did "
        "you mean working_dir?",
    ),
    Case(
        "runtime environment that is too long",
        "entrypoint: python train.py",
        f"entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {{A: {'x' * 32_768}}}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: must have at most 32768 characters: put "
        "files into the image",
    ),
    Case(
        "unbalanced quotes in the entrypoint",
        "entrypoint: python train.py",
        "entrypoint: python 'train.py",
        "job.yaml:26:23: spec.workload.ray.template.spec.entrypoint: cannot be read as a command: no closing "
        "quotation; close the quotes, or escape a single one with \\",
    ),
    Case(
        "nodeName in a worker template",
        "replicas: 2",
        "replicas: 2\n              template: {spec: {nodeName: node-7}}",
        "job.yaml:31:33: "
        "spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs[0].template.spec.nodeName: must not "
        "be set: it bypasses the node selectors of the tier; remove it, or use nodeSelector",
    ),
    Case(
        "nodeName in the head template",
        "            workerGroupSpecs:",
        "            headGroupSpec: {template: {spec: {nodeName: node-7}}}\n            workerGroupSpecs:",
        "job.yaml:28:47: spec.workload.ray.template.spec.rayClusterSpec.headGroupSpec.template.spec.nodeName: "
        "must not be set: it bypasses the node selectors of the tier; remove it, or use nodeSelector",
    ),
    Case(
        "entrypoint is a list",
        "entrypoint: python train.py",
        "entrypoint: [python, train.py]",
        "job.yaml:26:23: spec.workload.ray.template.spec.entrypoint: must be text: one command line, like: "
        "python train.py",
    ),
    Case(
        "entrypoint missing",
        "          entrypoint: python train.py\n",
        "",
        "job.yaml:26:11: spec.workload.ray.template.spec.entrypoint: is required: the command that starts the "
        "program, like: python train.py",
    ),
    Case(
        "entrypoint empty",
        "entrypoint: python train.py",
        'entrypoint: " "',
        "job.yaml:26:23: spec.workload.ray.template.spec.entrypoint: is required: the command that starts the "
        "program, like: python train.py",
    ),
    Case(
        "no workers",
        "replicas: 2",
        "replicas: 0",
        "job.yaml:29:13: spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs: must have at least "
        "one worker: set replicas of a worker group to 1 or more",
    ),
    Case(
        "backoffLimit in the template",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          backoffLimit: 3",
        "job.yaml:27:11: spec.workload.ray.template.spec.backoffLimit: must not be set: KubeRay's retries "
        "would compete with spotladder's; use spec.restartPolicy.backoffLimit",
    ),
    Case(
        "environment value that is not text",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {TOKEN: 12345}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: env_vars.TOKEN must be text: write "
        "the value in quotes",
    ),
    Case(
        "runtime environment with invalid YAML",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: '{'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: contains invalid YAML: line:1:2: is "
        "not valid YAML: expected the node content, but found '<stream end>'",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_an_invalid_template(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]
