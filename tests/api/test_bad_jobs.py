"""Messages for invalid job files: where, which field, and the beginning of what is wrong. `…` is the template."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, TIERS, changed, said_about

TEMPLATE = "spec.workload.ray.template.spec"
ENTRY = "entrypoint: python train.py"
BELOW = f"{ENTRY}\n          "
CASES = [
    # YAML and kinds
    ("kind: TieredJob", "kind: TierdJob", '2:7: kind: "TierdJob" is not a kind; did you mean TieredJob?'),
    ("kind: TieredJob", "kind: Deployment", '2:7: kind: "Deployment" is not a kind of spotladder.io/v1alpha1'),
    ("spotladder.io/v1alpha1", "spotladder.io/v2", "1:13: apiVersion: must be spotladder.io/v1alpha1, not"),
    (
        "kind: TieredJob",
        "knd: TieredJob",
        '1:1: must have kind (TieredJob, CapacityTier) or pools (a world file); is "knd" misspelt?',
    ),
    ("  grace: 90s", "  grace: 90s\n  grace: 10s", "17:3: spec.grace: appears twice (first at 16:3); keep one"),
    ("name: digits", "name: no", "4:9: metadata.name: no is a boolean for some YAML parsers and text for others"),
    ("suspend: false", "suspend: on", "21:12: spec.suspend: on is a boolean for some YAML parsers and text for"),
    ("maxFailures: 3", "maxFailures: 010", "10:18: spec.tiers[0].maxFailures: a number with a leading zero is octal"),
    ("maxFailures: 3", "maxFailures: 1_000", "10:18: spec.tiers[0].maxFailures: digits with _ are a number only for"),
    ("  grace: 90s", "\tgrace: 90s", "16:1: a tab is not allowed here: use spaces"),
    (ENTRY, "entrypoint: echo a: b", "26:29: is not valid YAML: mapping values are not allowed here; check the"),
    ("name: digits", "name: !!python/object/apply:os.system [x]", "4:9: metadata.name: tag"),
    # unknown, missing and misplaced fields
    ("maxFailures: 3", "maxFailure: 3", "10:5: spec.tiers[0].maxFailure: is not a known field; did you mean"),
    ("maxFailures: 3", "max_failures: 3", "10:5: spec.tiers[0].max_failures: is not a known field; did you mean"),
    ("provisionTimeout: 10m", "ProvisionTimeout: 10m", "11:5: spec.tiers[0].ProvisionTimeout: is not a known field"),
    ("  grace: 90s", "  maxFailures: 1", "16:3: spec.maxFailures: does not belong here; it is"),
    ("  grace: 90s", f"  m{'9' * 500}: 1", f'16:3: spec["m{"9" * 39}…{"9" * 19}"]: is not a known field; known here'),
    ("  grace: 90s", "  maxFailure: 1", "16:3: spec.maxFailure: is not a known field; did you mean"),
    ("    interval: 5m", "    zzz: 5m", "20:5: spec.checkpoints.zzz: is not a known field; known here: uri"),
    ("capacityTier: g5-od-use1", "capacitytier: g5-od-use1", "13:5: spec.tiers[1].capacitytier: is not a known"),
    ("    capacityTier: g5-od-use1\n", "", "12:5: spec.tiers[1].capacityTier: is required: the CapacityTier to use."),
    ("    uri: s3://bucket/prefix", "    uri:", "19:5: spec.checkpoints.uri: has no value: write one, or remove the"),
    ("entrypoint:", "entrypont:", "26:11: ….entrypont: is not a known field; did you mean entrypoint?"),
    ("replicas: 2", "replcas: 2", "30:15: ….rayClusterSpec.workerGroupSpecs[0].replcas: is not a known field; did"),
    ("  tiers:\n" + TIERS, "  tiers: []\n", "7:10: spec.tiers: must have at least one entry"),
    ("  tiers:\n" + TIERS, "  tiers: {spot-a: {}}\n", '7:10: spec.tiers: must be a list: lines that begin with "- "'),
    ("spec:\n  tiers", "specs:\n  tiers", "6:1: specs: is not a known field; did you mean spec?"),
    (JOB[JOB.index("    ray:") :], "    {}\n", "23:5: spec.workload: needs exactly one of ray and jobSet"),
    # names, labels, environment variables and choices
    ("  grace: 90s", "  policy: orderd", '16:11: spec.policy: "orderd" is not an installed policy; did'),
    ("  grace: 90s", "  policy: nope", '16:11: spec.policy: "nope" is not an installed policy'),
    ("  name: digits", "  name: digits\n  labels: {a b: c}", '5:12: metadata.labels["a b"]: "a b" is not a valid'),
    ("  name: digits", "  name: digits\n  labels: {team: a b}", '5:18: metadata.labels.team: "a b" is not a valid'),
    (
        "    provisionTimeout: 30m",
        "    overrides: {env: {SPOTLADDER_ATTEMPT: '7'}}",
        "15:23: spec.tiers[1].overrides.env.SPOTLADDER_ATTEMPT: SPOTLADDER_ATTEMPT",
    ),
    ("name: on-demand", "name: spot-a", '12:11: spec.tiers[1].name: "spot-a" is already the name of tiers[0]: tier'),
    ("handover: Fenced", "handover: fence", '17:13: spec.handover: "fence" is not one of Fenced, WhenGone; did you'),
    ("name: digits", "name: My_Digits!", '4:9: metadata.name: "My_Digits!" is not a valid name: use lower-case'),
    ("name: digits", "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "4:9: metadata.name: has 43 characters"),
    (
        "name: on-demand",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "12:11: spec.tiers[1].name: has 64",
    ),
    ("name: digits", "name: 1234", '4:9: metadata.name: must be text: write it in quotes, "1234"'),
    ("name: digits", 'name: "\\e[31mred\\nline"', '4:9: metadata.name: "\\x1b[31mred\\nline" is not a valid name: use'),
    # numbers, durations, amounts and times
    (
        "maxFailures: 3",
        "maxFailures: 1000000000000000000000000000000",
        "10:18: spec.tiers[0].maxFailures: must be at most",
    ),
    (
        "  grace: 90s",
        "  backoffLimit: 1000000000000000000000000000000",
        "16:17: spec.backoffLimit: must be at most",
    ),
    (
        "provisionTimeout: 10m",
        "provisionTimeout: 99999999999h",
        "11:23: spec.tiers[0].provisionTimeout: must be at most",
    ),
    ("provisionTimeout: 10m", "provisionTimeout: 0.1ms", "11:23: spec.tiers[0].provisionTimeout: must be more than"),
    ("maxFailures: 3", "maxFailures: -2", "10:18: spec.tiers[0].maxFailures: must be at least -1, not -2"),
    ("handover: Fenced", "handover: WhenGone\n  overlap: {maxDuration: 30m}", "18:3: spec.overlap: needs handover"),
    ("handover: Fenced", "overlap: {maxDuration: 0s}", "17:26: spec.overlap.maxDuration: must be more than 0s"),
    ("handover: Fenced", "source: {uri: s3://b/x.zip}", "17:17: spec.source.uri: must end in the archive's SHA-256"),
    ("handover: Fenced", 'overlap: {budget: "0"}', "17:21: spec.overlap.budget: must be more than 0: increase it"),
    ("handover: Fenced", "overlap: {hedgeAfter: 5m}", "17:13: spec.overlap.hedgeAfter: needs overlap.budget, which"),
    (
        JOB[JOB.index("  - name: on-demand") : JOB.index("  handover")].rstrip(),
        '  grace: 90s\n  overlap: {budget: "5", hedgeAfter: 5m}',
        "13:26: spec.overlap.hedgeAfter: needs a second",
    ),
    ("handover: Fenced", 'overlap: {hedgeAfter: 10m, budget: "5"}', "17:13: spec.overlap.hedgeAfter: has no effect"),
    ("maxFailures: 3", "queue: Team_A", '10:12: spec.tiers[0].queue: "Team_A" is not a valid name: use lower-case'),
    ("maxFailures: 3", "queueTimeout: 0s", "10:19: spec.tiers[0].queueTimeout: must be more than 0s"),
    (
        "              replicas: 2",
        "              replicas: 2\n              minReplicas: 1",
        "31:28: ….rayClusterSpec.workerGroupSpecs[0].minReplicas: must equal",
    ),
    ("maxFailures: 3", 'maxFailures: "3"', "10:18: spec.tiers[0].maxFailures: must be a whole number without quotes"),
    ("maxFailures: 3", "maxFailures: 3.5", '10:18: spec.tiers[0].maxFailures: must be a whole number, not "3.5"'),
    ("maxFailures: 3", "maxFailures: three", '10:18: spec.tiers[0].maxFailures: must be a whole number, not "three"'),
    ("maxFailures: 3", "maxFailures: [3]", "10:18: spec.tiers[0].maxFailures: must be a whole number"),
    ("grace: 90s", "grace: 90", "16:10: spec.grace: needs a unit: write 90s for seconds (or 10m, 1h30m)"),
    ("grace: 90s", "grace: -5s", "16:10: spec.grace: must not be negative"),
    ("grace: 90s", "startTimeout: 0s", "16:17: spec.startTimeout: must be more than 0s"),
    ("grace: 90s", "grace: -5", "16:10: spec.grace: must not be negative"),
    ("grace: 90s", "grace: 1d", '16:10: spec.grace: "1d" is not a duration: write one like 90s'),
    ("grace: 90s", "grace: soon", '16:10: spec.grace: "soon" is not a duration: write one like 90s, 10m, 1h30m or'),
    ("grace: 90s", 'grace: ""', '16:10: spec.grace: "" is not a duration: write one like 90s, 10m, 1h30m or 500ms'),
    ("provisionTimeout: 10m", "provisionTimeout: 0s", "11:23: spec.tiers[0].provisionTimeout: must be more than 0s"),
    ("    interval: 5m", "    cache: 20GB", '20:12: spec.checkpoints.cache: "20GB" is not a'),
    ("    interval: 5m", "    cache: 20", "20:12: spec.checkpoints.cache: must be at least"),
    ("    interval: 5m", "    cache: -1Gi", '20:12: spec.checkpoints.cache: "-1Gi" is not a'),
    ("    interval: 5m", "    cache: 5000Pi", "20:12: spec.checkpoints.cache: must be at most"),
    ("    interval: 5m", "    cache: true", "20:12: spec.checkpoints.cache: must be a size"),
    ("interval: 5m", "interval: 50", "20:15: spec.checkpoints.interval: needs a unit: write 50steps or 50s"),
    ("suspend: false", 'suspend: "no"', "21:12: spec.suspend: must be true or false"),
    ("  grace: 90s", "  budget: $250", '16:11: spec.budget: must be a plain number like "250"'),
    ("  grace: 90s", "  budget: -1", "16:11: spec.budget: must not be negative"),
    ("  grace: 90s", '  budget: "-1"', "16:11: spec.budget: must not be negative"),
    ("  grace: 90s", '  budget: "0"', "16:11: spec.budget: must be more than 0: increase it, or remove the field"),
    ("  grace: 90s", "  budget: .nan", "16:11: spec.budget: must be finite"),
    ("  grace: 90s", "  grace: .nan", "16:10: spec.grace: must be a duration like 90s, 10m or 1h30m"),
    ("  grace: 90s", "  grace: .inf", "16:10: spec.grace: must be a duration like 90s, 10m or 1h30m"),
    ("interval: 5m", "interval: .nan", "20:15: spec.checkpoints.interval: must be a number of steps or a duration"),
    ("  grace: 90s", "  deadline: 2026-12-01T00:00:00", '16:13: spec.deadline: "2026-12-01T00:00:00" has no time'),
    ("  grace: 90s", "  deadline: 2026-02-30T00:00:00Z", '16:13: spec.deadline: "2026-02-30T00:00:00Z" is not a date'),
    ("  grace: 90s", "  deadline: 2026-12-01", "16:13: spec.deadline: must be a date and time with zone, like"),
    # checkpoint addresses
    ("uri: s3://bucket/prefix", "uri: $HOME/checkpoints", '19:10: spec.checkpoints.uri: contains "$HOME"'),
    ("uri: s3://bucket/prefix", "uri: s3://${BUCKET}/prefix", '19:10: spec.checkpoints.uri: contains "${BUCKET}"'),
    ("uri: s3://bucket/prefix", "uri: s3://bucket/../x", '19:10: spec.checkpoints.uri: must not contain "." or ".."'),
    ("s3://bucket/prefix", "gcs://bucket/prefix", '19:10: spec.checkpoints.uri: scheme "gcs" is not supported: use'),
    ("s3://bucket/prefix", "s3:/bucket/prefix", "19:10: spec.checkpoints.uri: needs two slashes after the colon"),
    ("s3://bucket/prefix", "file:/data/ckpt", "19:10: spec.checkpoints.uri: needs two slashes after the colon: write"),
    ("s3://bucket/prefix", "https://bucket.s3.amazonaws.com/prefix", "19:10: spec.checkpoints.uri: must name a"),
    ("s3://bucket/prefix", "s3:///prefix", "19:10: spec.checkpoints.uri: has no bucket: write s3://bucket/prefix"),
    ("s3://bucket/prefix", "s3://KEY:SECRET@bucket/prefix", "19:10: spec.checkpoints.uri: must not contain"),
    (
        "uri: s3://bucket/prefix",
        "uri: s3://bucket/prefix\n    programFolder: s3://bucket/out",
        "20:20: spec.checkpoints.programFolder: must be a folder on the disk of the program, not a bucket",
    ),
    # RayJob templates
    (ENTRY, BELOW + "runtimeEnvYAML: 'env_vars: {SPOTLADDER_URI: x}'", "27:27: ….runtimeEnvYAML: env_vars.SPOTLADDER_"),
    (ENTRY, BELOW + "runtimeEnvYAML: 'envvars: {A: b}'", "27:27: ….runtimeEnvYAML: envvars is not a known field; did"),
    (ENTRY, BELOW + "runtimeEnvYAML: 'workingdir: .'", "27:27: ….runtimeEnvYAML: workingdir is not a known field"),
    (
        ENTRY,
        BELOW + f"runtimeEnvYAML: 'env_vars: {{A: {'x' * 32_768}}}'",
        "27:27: ….runtimeEnvYAML: must have at most 32768 characters, not 327",
    ),
    (ENTRY, "entrypoint: python 'train.py", "26:23: ….entrypoint: cannot be read as a command: no closing quotation"),
    (
        "replicas: 2",
        "replicas: 2\n              template: {spec: {nodeName: node-7}}",
        "31:33: ….rayClusterSpec.workerGroupSpecs[0].template.spec.nodeName: must not be set",
    ),
    (
        "            workerGroupSpecs:",
        "            headGroupSpec: {template: {spec: {nodeName: node-7}}}\n            workerGroupSpecs:",
        "28:47: ….rayClusterSpec.headGroupSpec.template.spec.nodeName: must not be set",
    ),
    (ENTRY, "entrypoint: [python, train.py]", "26:23: ….entrypoint: must be text: one command line, like: python"),
    ("          entrypoint: python train.py\n", "", "26:11: ….entrypoint: is required: the command that starts the"),
    (ENTRY, 'entrypoint: " "', "26:23: ….entrypoint: is required: the command that starts the program, like: python"),
    ("replicas: 2", "replicas: 0", "29:13: ….rayClusterSpec.workerGroupSpecs: must have at least one worker: set"),
    (
        "replicas: 2",
        "replicas: 2\n              maxReplicas: 1",
        "31:28: ….rayClusterSpec.workerGroupSpecs[0].maxReplicas: must be at least replicas, 2, not 1",
    ),
    (
        "replicas: 2",
        "replicas: 2\n              suspend: true",
        "31:15: ….rayClusterSpec.workerGroupSpecs[0].suspend: must not be set: the group would have no workers",
    ),
    (
        "            - groupName: workers",
        "            - {replicas: 1}\n            - groupName: workers",
        '30:26: ….rayClusterSpec.workerGroupSpecs[1].groupName: "workers" is already the name of workerGroupSpecs[0]',
    ),
    (
        "replicas: 2",
        "replicas: 100000\n              numOfHosts: 2",
        "29:13: ….rayClusterSpec.workerGroupSpecs: must have at most 100000 pods together",
    ),
    (
        "            workerGroupSpecs:",
        "            suspend: true\n            workerGroupSpecs:",
        "28:13: ….rayClusterSpec.suspend: must not be set: use spec.suspend",
    ),
    (
        "            workerGroupSpecs:",
        "            managedBy: kueue.x-k8s.io/multikueue\n            workerGroupSpecs:",
        "28:13: ….rayClusterSpec.managedBy: must not be set: remove it",
    ),
    (ENTRY, BELOW + "backoffLimit: 3", "27:11: ….backoffLimit: must not be set: KubeRay's retries would compete with"),
    (ENTRY, BELOW + "runtimeEnvYAML: 'env_vars: {TOKEN: 12345}'", "27:27: ….runtimeEnvYAML: env_vars.TOKEN must be"),
    (ENTRY, BELOW + "runtimeEnvYAML: '{'", "27:27: ….runtimeEnvYAML: contains invalid YAML: line:1:2: is not valid"),
    # elastic jobs
    ("  suspend: false", "  elastic: {min: 3}", "21:18: spec.elastic.min: must be at most the number of workers of"),
    ("  suspend: false", "  elastic: {min: 0}", "21:18: spec.elastic.min: must be at least 1, not 0"),
    ("  suspend: false", "  elastic: {sizes: [1, 2]}", "21:12: spec.elastic.min: is required: smallest number of"),
    ("  suspend: false", "  elastic: {min: 2, sizes: [1, 2]}", "21:29: spec.elastic.sizes[0]: must be from min to"),
    ("  suspend: false", "  elastic: {min: 1, sizes: [1, 3]}", "21:32: spec.elastic.sizes[1]: must be from min to"),
    ("  suspend: false", "  elastic: {min: 1, sizes: [1]}", "21:28: spec.elastic.sizes: must contain min and the"),
    ("  suspend: false", "  elastic: {min: 1, sizes: [2]}", "21:28: spec.elastic.sizes: must contain min and the"),
    ("  suspend: false", "  elastic: {min: 1, sizes: []}", "21:28: spec.elastic.sizes: must have at least one entry"),
    ("handover: Fenced", "handover: WhenGone\n  elastic: {min: 1}", "18:3: spec.elastic: needs handover: Fenced"),
    (
        "              replicas: 2",
        "              replicas: 2\n              numOfHosts: 2\n  elastic: {min: 1}",
        "32:3: spec.elastic: cannot be used",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), CASES, ids=[new.strip()[:60] or old for old, new, _ in CASES])
def test_the_message_for_an_invalid_job(old: str, new: str, message: str) -> None:
    (said,) = said_about(changed(JOB, (old, new)))
    assert said.removeprefix("job.yaml:").replace(TEMPLATE, "…").startswith(message)
