"""What users see for each kind of bad input: where, which field, what to do. The messages are exact on purpose."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.api.builders import JOB, WORLD, changed, said_about


class Case(NamedTuple):
    name: str
    old: str
    new: str
    said: str


TIERS = """\
  - name: spot-a
    capacityTier: g5-spot-use1a
    maxFailures: 3
    provisionTimeout: 10m
  - name: on-demand
    capacityTier: g5-od-use1
    maxFailures: 1
    provisionTimeout: 30m
"""

JOB_CASES = [
    Case(
        "misspelt",
        "maxFailures: 3",
        "maxFailure: 3",
        "job.yaml:10:5: spec.tiers[0].maxFailure: is not a known field; did you mean maxFailures?",
    ),
    Case(
        "snake case",
        "maxFailures: 3",
        "max_failures: 3",
        "job.yaml:10:5: spec.tiers[0].max_failures: is not a known field; did you mean maxFailures?",
    ),
    Case(
        "wrong case",
        "provisionTimeout: 10m",
        "ProvisionTimeout: 10m",
        "job.yaml:11:5: spec.tiers[0].ProvisionTimeout: is not a known field; did you mean provisionTimeout?",
    ),
    Case(
        "right name in the wrong place",
        "  grace: 90s",
        "  maxFailures: 1",
        "job.yaml:16:3: spec.maxFailures: does not belong here; it is spec.tiers[].maxFailures",
    ),
    Case(
        "misspelt policy",
        "  grace: 90s",
        "  policy: {name: orderd}",
        'job.yaml:16:18: spec.policy.name: "orderd" is not an installed policy; did you mean ordered?',
    ),
    Case(
        "a number that no program can hold",
        "maxFailures: 3",
        f"maxFailures: {10**30}",
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be at most 2147483647",
    ),
    Case(
        "an optional number that no program can hold",
        "  grace: 90s",
        f"  restartPolicy: {{backoffLimit: {10**30}}}",
        "job.yaml:16:33: spec.restartPolicy.backoffLimit: must be at most 2147483647",
    ),
    Case(
        "longer than anybody waits",
        "provisionTimeout: 10m",
        "provisionTimeout: 99999999999h",
        "job.yaml:11:23: spec.tiers[0].provisionTimeout: must be at most 87600h (ten years)",
    ),
    Case(
        "shorter than can be written",
        "provisionTimeout: 10m",
        "provisionTimeout: 0.1ms",
        "job.yaml:11:23: spec.tiers[0].provisionTimeout: must be more than 0s (at least 1ms)",
    ),
    Case(
        "policy that nobody offers",
        "  grace: 90s",
        "  policy: {name: nope}",
        'job.yaml:16:18: spec.policy.name: "nope" is not an installed policy; installed here: ordered (another must be '
        "installed here and where the controller runs)",
    ),
    Case(
        "label name",
        "  name: digits",
        "  name: digits\n  labels: {a b: c}",
        'job.yaml:5:12: metadata.labels["a b"]: "a b" is no valid label name: like team or example.com/team, '
        "at most 63 after the '/'",
    ),
    Case(
        "label value",
        "  name: digits",
        "  name: digits\n  labels: {team: a b}",
        'job.yaml:5:18: metadata.labels.team: "a b" is no valid label value: at most 63 letters, digits, '
        "'-', '_' and '.', beginning and ending with a letter or digit",
    ),
    Case(
        "environment of ours",
        "    provisionTimeout: 30m",
        "    overrides: {env: {SPOTLADDER_ATTEMPT: '7'}}",
        "job.yaml:15:23: spec.tiers[1].overrides.env.SPOTLADDER_ATTEMPT: "
        "SPOTLADDER_ATTEMPT is set by spotladder for each attempt; remove it",
    ),
    Case(
        "environment of ours in the runtime environment",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {SPOTLADDER_URI: x}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: env_vars.SPOTLADDER_URI is set by spotladder "
        "for each attempt; remove it",
    ),
    Case(
        "misspelt and in the wrong place",
        "  grace: 90s",
        "  maxFailure: 1",
        "job.yaml:16:3: spec.maxFailure: is not a known field; did you mean spec.tiers[].maxFailures?",
    ),
    Case(
        "unlike anything",
        "    interval: 5m",
        "    zzz: 5m",
        "job.yaml:20:5: spec.checkpoints.zzz: is not a known field; known here: uri, interval, keep, credentials",
    ),
    Case(
        "misspelt and required: said once",
        "capacityTier: g5-od-use1",
        "capacitytier: g5-od-use1",
        "job.yaml:13:5: spec.tiers[1].capacitytier: is not a known field; did you mean capacityTier?",
    ),
    Case(
        "missing",
        "    capacityTier: g5-od-use1\n",
        "",
        "job.yaml:12:5: spec.tiers[1].capacityTier: is required: the CapacityTier to use. In "
        "local mode: a pool of the world file",
    ),
    Case(
        "no value",
        "    uri: s3://bucket/prefix",
        "    uri:",
        "job.yaml:19:5: spec.checkpoints.uri: has no value: write one, or remove the line",
    ),
    Case(
        "misspelt in the RayJob",
        "entrypoint:",
        "entrypont:",
        "job.yaml:26:11: spec.workload.ray.template.spec.entrypont: is not a known field; did you mean entrypoint?",
    ),
    Case(
        "misspelt in a worker group",
        "replicas: 2",
        "replcas: 2",
        "job.yaml:30:15: "
        "spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs[0].replcas: is not a "
        "known field; did you mean replicas?",
    ),
    Case(
        "no tiers",
        "  tiers:\n" + TIERS,
        "  tiers: []\n",
        "job.yaml:7:10: spec.tiers: must have at least one entry",
    ),
    Case(
        "tiers is a mapping",
        "  tiers:\n" + TIERS,
        "  tiers: {spot-a: {}}\n",
        'job.yaml:7:10: spec.tiers: must be a list: lines that begin with "- "',
    ),
    Case(
        "duplicate names",
        "name: on-demand",
        "name: spot-a",
        'job.yaml:12:11: spec.tiers[1].name: "spot-a" is taken by tiers[0]: names of tiers are unique',
    ),
    Case(
        "maxFailures -2",
        "maxFailures: 3",
        "maxFailures: -2",
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be at least -1, not -2",
    ),
    Case(
        "maxFailures as text",
        "maxFailures: 3",
        'maxFailures: "3"',
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be a whole number without quotes",
    ),
    Case(
        "maxFailures as a fraction",
        "maxFailures: 3",
        "maxFailures: 3.5",
        "job.yaml:10:18: spec.tiers[0].maxFailures: must be a whole number without quotes",
    ),
    Case(
        "number without unit",
        "grace: 90s",
        "grace: 90",
        "job.yaml:16:10: spec.grace: needs a unit: write 90s for seconds (or 10m, 1h30m)",
    ),
    Case(
        "negative",
        "grace: 90s",
        "grace: -5s",
        "job.yaml:16:10: spec.grace: must not be negative",
    ),
    Case(
        "a start that may take no time",
        "grace: 90s",
        "startTimeout: 0s",
        "job.yaml:16:17: spec.startTimeout: must be more than 0s",
    ),
    Case(
        "contact without a unit",
        "grace: 90s",
        "contactTimeout: 100",
        "job.yaml:16:19: spec.contactTimeout: needs a unit: write 100s for seconds (or 10m, 1h30m)",
    ),
    Case(
        "negative number",
        "grace: 90s",
        "grace: -5",
        "job.yaml:16:10: spec.grace: must not be negative",
    ),
    Case(
        "days",
        "grace: 90s",
        "grace: 1d",
        'job.yaml:16:10: spec.grace: "1d" is not a duration: write 24h',
    ),
    Case(
        "words",
        "grace: 90s",
        "grace: 10 minutes",
        'job.yaml:16:10: spec.grace: "10 minutes" is not a duration: write 10m',
    ),
    Case(
        "clock",
        "grace: 90s",
        "grace: 1:30",
        'job.yaml:16:10: spec.grace: "1:30" is not a duration: write 1m30s',
    ),
    Case(
        "nonsense",
        "grace: 90s",
        "grace: soon",
        'job.yaml:16:10: spec.grace: "soon" is not a duration: write one like 90s, 10m, 1h30m or 500ms',
    ),
    Case(
        "empty",
        "grace: 90s",
        'grace: ""',
        'job.yaml:16:10: spec.grace: "" is not a duration: write one like 90s, 10m, 1h30m or 500ms',
    ),
    Case(
        "zero where time must pass",
        "provisionTimeout: 10m",
        "provisionTimeout: 0s",
        "job.yaml:11:23: spec.tiers[0].provisionTimeout: must be more than 0s",
    ),
    Case(
        "interval without unit",
        "interval: 5m",
        "interval: 50",
        "job.yaml:20:15: spec.checkpoints.interval: needs a unit: write 50steps or 50s",
    ),
    Case(
        "misspelt choice",
        "handover: Fenced",
        "handover: fence",
        'job.yaml:17:13: spec.handover: "fence" is not one of Fenced, WhenGone; did you mean Fenced?',
    ),
    Case(
        "switch as text",
        "suspend: false",
        'suspend: "no"',
        "job.yaml:21:12: spec.suspend: must be true or false",
    ),
    Case(
        "budget with a sign",
        "  grace: 90s",
        "  budget: $250",
        'job.yaml:16:11: spec.budget: must be a plain number like "250"',
    ),
    Case(
        "budget below nothing",
        "  grace: 90s",
        "  budget: -1",
        "job.yaml:16:11: spec.budget: must not be negative",
    ),
    Case(
        "budget of .nan",
        "  grace: 90s",
        "  budget: .nan",
        "job.yaml:16:11: spec.budget: must be finite",
    ),
    Case(
        "misspelt key of the runtime environment",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'envvars: {A: b}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: envvars is not a known field; did you mean "
        "env_vars?",
    ),
    Case(
        "another misspelt key of the runtime environment",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'workingdir: .'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: workingdir is not a known field; did you mean "
        "working_dir?",
    ),
    Case(
        "unbalanced quotes in the entrypoint",
        "entrypoint: python train.py",
        "entrypoint: python 'train.py",
        "job.yaml:26:23: spec.workload.ray.template.spec.entrypoint: cannot be read as a command: no closing "
        "quotation; close the quotes, or write \\ before a single one",
    ),
    Case(
        "variable in the address",
        "uri: s3://bucket/prefix",
        "uri: $HOME/checkpoints",
        'job.yaml:19:10: spec.checkpoints.uri: contains "$HOME": environment variables are not expanded; write the '
        "value; ~ stands for the home folder",
    ),
    Case(
        "variable in the address of a bucket",
        "uri: s3://bucket/prefix",
        "uri: s3://${BUCKET}/prefix",
        'job.yaml:19:10: spec.checkpoints.uri: contains "${BUCKET}": environment variables are not expanded; write the '
        "value",
    ),
    Case(
        "parent folder in the address of a bucket",
        "uri: s3://bucket/prefix",
        "uri: s3://bucket/../x",
        'job.yaml:19:10: spec.checkpoints.uri: must not contain "." or ".." as a part of the path: write the path '
        "without it",
    ),
    Case(
        "worker bound to a node",
        "replicas: 2",
        "replicas: 2\n              template: {spec: {nodeName: node-7}}",
        "job.yaml:31:33: spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs[0].template.spec.nodeName: "
        "binds the pod to one node, whatever the tier says: remove it, or use nodeSelector",
    ),
    Case(
        "head bound to a node",
        "            workerGroupSpecs:",
        "            headGroupSpec: {template: {spec: {nodeName: node-7}}}\n            workerGroupSpecs:",
        "job.yaml:28:47: spec.workload.ray.template.spec.rayClusterSpec.headGroupSpec.template.spec.nodeName: "
        "binds the pod to one node, whatever the tier says: remove it, or use nodeSelector",
    ),
    Case(
        "duration that is not a number",
        "  grace: 90s",
        "  grace: .nan",
        "job.yaml:16:10: spec.grace: must be a duration like 90s, 10m or 1h30m",
    ),
    Case(
        "duration without end",
        "  grace: 90s",
        "  grace: .inf",
        "job.yaml:16:10: spec.grace: must be a duration like 90s, 10m or 1h30m",
    ),
    Case(
        "interval that is not a number",
        "interval: 5m",
        "interval: .nan",
        "job.yaml:20:15: spec.checkpoints.interval: must be a number of steps or a duration, like 50steps or 5m",
    ),
    Case(
        "deadline without zone",
        "  grace: 90s",
        "  deadline: 2026-12-01T00:00:00",
        'job.yaml:16:13: spec.deadline: "2026-12-01T00:00:00" has no time zone: write 2026-12-01T00:00:00Z for UTC',
    ),
    Case(
        "deadline that no calendar has",
        "  grace: 90s",
        "  deadline: 2026-02-30T00:00:00Z",
        'job.yaml:16:13: spec.deadline: "2026-02-30T00:00:00Z" is not a date and time: day is out of range for month',
    ),
    Case(
        "deadline as a date",
        "  grace: 90s",
        "  deadline: 2026-12-01",
        "job.yaml:16:13: spec.deadline: must be a date and time with zone, like 2026-12-01T00:00:00Z",
    ),
    Case(
        "name with odd characters",
        "name: digits",
        "name: My_Digits!",
        'job.yaml:4:9: metadata.name: "My_Digits!" is no valid name: lower-case letters, digits '
        "and '-', beginning with a letter; for example \"my-digits\"",
    ),
    Case(
        "name too long for a RayJob",
        "name: digits",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "job.yaml:4:9: metadata.name: has 43 characters, the most is 42 (a RayJob's name has 47, "
        "of which -a001 is added for the attempt)",
    ),
    Case(
        "tier name too long for a label",
        "name: on-demand",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "job.yaml:12:11: spec.tiers[1].name: has 64 characters, the most is 63 (it becomes a Kubernetes label)",
    ),
    Case(
        "name is a number",
        "name: digits",
        "name: 1234",
        'job.yaml:4:9: metadata.name: must be text: write it in quotes, "1234"',
    ),
    Case(
        "name with a terminal escape",
        "name: digits",
        r'name: "\e[31mred\nline"',
        r'job.yaml:4:9: metadata.name: "\x1b[31mred\nline" is no valid name: lower-case letters, '
        "digits and '-', beginning with a letter; for example \"mred-line\"",
    ),
    Case(
        "unknown scheme",
        "s3://bucket/prefix",
        "gcs://bucket/prefix",
        'job.yaml:19:10: spec.checkpoints.uri: scheme "gcs" is not known: s3://, gs://, az://, '
        "file:// or a plain path; write gs://…",
    ),
    Case(
        "one slash",
        "s3://bucket/prefix",
        "s3:/bucket/prefix",
        "job.yaml:19:10: spec.checkpoints.uri: needs two slashes after the colon: write s3://…",
    ),
    Case(
        "one slash before a path",
        "s3://bucket/prefix",
        "file:/data/ckpt",
        "job.yaml:19:10: spec.checkpoints.uri: needs two slashes after the colon: write file://…",
    ),
    Case(
        "an address of the web",
        "s3://bucket/prefix",
        "https://bucket.s3.amazonaws.com/prefix",
        "job.yaml:19:10: spec.checkpoints.uri: must name a bucket, like s3://bucket/prefix; an endpoint is set by "
        "AWS_ENDPOINT_URL",
    ),
    Case(
        "entrypoint is a list",
        "entrypoint: python train.py",
        "entrypoint: [python, train.py]",
        "job.yaml:26:23: spec.workload.ray.template.spec.entrypoint: must be text: one command line, like: "
        "python train.py",
    ),
    Case(
        "misspelt at the top: said once",
        "spec:\n  tiers",
        "specs:\n  tiers",
        "job.yaml:6:1: specs: is not a known field; did you mean spec?",
    ),
    Case(
        "no bucket",
        "s3://bucket/prefix",
        "s3:///prefix",
        "job.yaml:19:10: spec.checkpoints.uri: names no bucket: write s3://bucket/prefix",
    ),
    Case(
        "credentials are not repeated",
        "s3://bucket/prefix",
        "s3://KEY:SECRET@bucket/prefix",
        "job.yaml:19:10: spec.checkpoints.uri: must not contain credentials: set them in the "
        "environment or name a secret in credentials",
    ),
    Case(
        "entrypoint missing",
        "          entrypoint: python train.py\n",
        "",
        "job.yaml:26:11: spec.workload.ray.template.spec.entrypoint: is required: the command "
        "that starts the program, like: python train.py",
    ),
    Case(
        "entrypoint empty",
        "entrypoint: python train.py",
        'entrypoint: " "',
        "job.yaml:26:23: spec.workload.ray.template.spec.entrypoint: is required: the command "
        "that starts the program, like: python train.py",
    ),
    Case(
        "no workers",
        "replicas: 2",
        "replicas: 0",
        "job.yaml:29:13: spec.workload.ray.template.spec.rayClusterSpec.workerGroupSpecs: asks "
        "for no workers: set replicas of a worker group to 1 or more",
    ),
    Case(
        "a retry that competes",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          backoffLimit: 3",
        "job.yaml:27:11: spec.workload.ray.template.spec.backoffLimit: is spotladder's: a retry "
        "here would compete with it; use spec.restartPolicy.backoffLimit",
    ),
    Case(
        "environment values are not repeated",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {TOKEN: 12345}'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: env_vars.TOKEN must be "
        "text: write the value in quotes",
    ),
    Case(
        "runtime environment that is no YAML",
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: '{'",
        "job.yaml:27:27: spec.workload.ray.template.spec.runtimeEnvYAML: holds invalid YAML: "
        "line:1:2: is not valid YAML: expected the node content, but found '<stream end>'",
    ),
    Case(
        "no workload",
        "    ray:\n"
        "      template:\n"
        "        spec:\n"
        "          entrypoint: python train.py\n"
        "          rayClusterSpec:\n"
        "            workerGroupSpecs:\n"
        "            - groupName: workers\n"
        "              replicas: 2\n",
        "    {}\n",
        "job.yaml:23:5: spec.workload: needs exactly one of ray and jobSet",
    ),
    Case(
        "kind misspelt",
        "kind: TieredJob",
        "kind: TierdJob",
        'job.yaml:2:7: kind: "TierdJob" is not a kind; did you mean TieredJob?',
    ),
    Case(
        "kind of somebody else",
        "kind: TieredJob",
        "kind: Deployment",
        'job.yaml:2:7: kind: "Deployment" is not a kind of spotladder.io/v1alpha1: TieredJob, CapacityTier',
    ),
    Case(
        "version of tomorrow",
        "spotladder.io/v1alpha1",
        "spotladder.io/v2",
        'job.yaml:1:13: apiVersion: must be spotladder.io/v1alpha1, not "spotladder.io/v2"',
    ),
    Case(
        "kind itself misspelt",
        "kind: TieredJob",
        "knd: TieredJob",
        'job.yaml:1:1: has neither kind (TieredJob, CapacityTier) nor pools (a world file); is "knd" misspelt?',
    ),
    Case(
        "a key twice",
        "  grace: 90s",
        "  grace: 90s\n  grace: 10s",
        "job.yaml:17:3: spec.grace: appears twice (first at 16:3); keep one",
    ),
    Case(
        "a boolean of YAML 1.1",
        "name: digits",
        "name: no",
        'job.yaml:4:9: metadata.name: no is a boolean to some YAML readers and text to others: write false, or "no"',
    ),
    Case(
        "a switch of YAML 1.1",
        "suspend: false",
        "suspend: on",
        'job.yaml:21:12: spec.suspend: on is a boolean to some YAML readers and text to others: write true, or "on"',
    ),
    Case(
        "octal",
        "maxFailures: 3",
        "maxFailures: 010",
        "job.yaml:10:18: spec.tiers[0].maxFailures: a number with a leading zero is octal to some YAML readers: "
        "write it without, or in quotes",
    ),
    Case(
        "underscores",
        "maxFailures: 3",
        "maxFailures: 1_000",
        "job.yaml:10:18: spec.tiers[0].maxFailures: digits with _ are a number only to some YAML readers: "
        "write them without, or in quotes",
    ),
    Case(
        "tab",
        "  grace: 90s",
        "\tgrace: 90s",
        "job.yaml:16:1: a tab stands where YAML wants spaces: indent with spaces",
    ),
    Case(
        "colon in text",
        "entrypoint: python train.py",
        "entrypoint: echo a: b",
        "job.yaml:26:29: is not valid YAML: mapping values are not allowed here; check the "
        "indentation, and put text that contains ': ' in quotes",
    ),
    Case(
        "a tag that would run code",
        "name: digits",
        "name: !!python/object/apply:os.system [x]",
        'job.yaml:4:9: metadata.name: tag "python/object/apply:os.system" is not allowed; write the value without it',
    ),
]

WORLD_CASES = [
    Case(
        "step before the first",
        "{at: [20s, 45s]}",
        "{atSteps: [-5]}",
        "world.yaml:8:31: pools.g5-spot-use1a.interruptions.atSteps[0]: must be at least 1, not -5",
    ),
    Case(
        "no pools",
        WORLD,
        "pools: {}\n",
        "world.yaml:1:8: pools: must have at least one entry",
    ),
    Case(
        "a pool's name",
        "g5-od-use1",
        "G5_OD",
        'world.yaml:10:3: pools.G5_OD: "G5_OD" is no valid name: lower-case letters, digits and '
        "'-', no '-' at the ends; for example \"g5-od\"",
    ),
    Case(
        "two kinds of interruption",
        "{at: [20s, 45s]}",
        "{at: [20s], hazardPerHour: 3}",
        "world.yaml:8:20: pools.g5-spot-use1a.interruptions: needs exactly one of at, atSteps, hazardPerHour and trace",
    ),
    Case(
        "seed of nothing",
        "{at: [20s, 45s]}",
        "{at: [20s], seed: 3}",
        "world.yaml:8:20: pools.g5-spot-use1a.interruptions: seed goes with hazardPerHour",
    ),
    Case(
        "a time that ends before it begins",
        "to: 120s",
        "to: 30s",
        "world.yaml:9:19: pools.g5-spot-use1a.unavailable[0]: to must be later than from",
    ),
    Case(
        "misspelt",
        "provisionDelay",
        "provisioningDelay",
        "world.yaml:6:5: pools.g5-spot-use1a.provisioningDelay: is not a known field; did you mean provisionDelay?",
    ),
    Case(
        "more processes than a machine has",
        "    nodes: 2\n    price: {perNodeHour: 1.41}",
        "    nodes: 2000\n    price: {perNodeHour: 1.41}",
        "world.yaml:11:12: pools.g5-od-use1.nodes: must be at most 64, not 2000",
    ),
]


@pytest.mark.parametrize("case", JOB_CASES, ids=lambda case: case.name)
def test_job(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.said]


@pytest.mark.parametrize("case", WORLD_CASES, ids=lambda case: case.name)
def test_world(case: Case) -> None:
    assert said_about(changed(WORLD, (case.old, case.new)), "world.yaml") == [case.said]


def test_nothing_is_said_about_files_that_are_right() -> None:
    assert said_about(JOB) == []
    assert said_about(WORLD) == []


def test_everything_wrong_is_said_at_once_in_the_files_order() -> None:
    text = changed(
        JOB, ("maxFailures: 3", "maxFailures: -2"), ("grace: 90s", "grace: 90"), ("handover", "handver"),
        ("s3://", "s4://"), ("entrypoint: python train.py", "entrypoint:"),
    )  # fmt: skip
    places = [line.split(": ")[1] for line in said_about(text)]
    assert places == [
        "spec.tiers[0].maxFailures",
        "spec.grace",
        "spec.handver",
        "spec.checkpoints.uri",
        "spec.workload.ray.template.spec.entrypoint",
    ]


SECRETS = {
    "in the address": ("s3://bucket/prefix", "s3://KEY:hunter2@bucket/prefix"),
    "in an address with one slash": ("s3://bucket/prefix", "s3:/KEY:hunter2@bucket/prefix"),
    "in an unknown address": ("s3://bucket/prefix", "ftp://KEY:hunter2@bucket/prefix"),
    "in the query": ("s3://bucket/prefix", "s3://bucket/prefix?secret=hunter2"),
    "in a tier's environment": ("    provisionTimeout: 30m", "    overrides: {env: {A: [hunter2]}}"),
    "an octal number": ("    provisionTimeout: 30m", "    overrides: {env: {A: 0123}}"),
    "in the runtime environment": (
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {A: [hunter2], B: 0123}'",
    ),
    "in a broken runtime environment": (
        "entrypoint: python train.py",
        "entrypoint: python train.py\n          runtimeEnvYAML: 'env_vars: {A: hunter2'",
    ),
    "in an annotation": ("  name: digits", "  name: digits\n  annotations: {a: {hunter2: 1}}"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_may_be_secret_is_not_repeated(name: str) -> None:
    lines = said_about(changed(JOB, SECRETS[name]))
    assert lines
    assert not [line for line in lines if "hunter2" in line or "0123" in line]


def test_a_flood_of_problems_is_cut_off() -> None:
    tiers = "".join(f"  - {{name: t{index}, capacityTier: c, maxFailures: -5}}\n" for index in range(30))
    lines = said_about(changed(JOB, (TIERS, tiers)))
    assert len(lines) == 21
    assert lines[-1] == "10 more problems; correct these first"
