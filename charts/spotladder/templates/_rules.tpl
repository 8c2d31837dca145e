{{/* The controller's permissions in the namespaces that it reconciles. tests/kube/test_chart.py compares them with its API
     calls, at home and in a member cluster. */}}
{{- define "spotladder.rules" -}}
{{- if not .Values.member.enabled }}
- apiGroups: [spotladder.io]
  resources: [tieredjobs]
  verbs: [list, watch, patch]           # patch: set the finalizer
- apiGroups: [spotladder.io]
  resources: [tieredjobs/status]
  verbs: [patch]
- apiGroups: [spotladder.io]
  resources: [tieredjobs/finalizers]
  verbs: [update]                       # owner references with blockOwnerDeletion
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
- apiGroups: [ray.io]
  resources: [rayjobs]
  verbs: [list, watch, create, patch, delete, deletecollection]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [list, watch, patch, delete]   # patch: start replacements for workers; delete: RayClusters without a RayJob
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch, create, patch, delete, deletecollection]
{{- if or (eq (toString .Values.rbac.kueue) "true") (and (eq (toString .Values.rbac.kueue) "auto") (.Capabilities.APIVersions.Has "kueue.x-k8s.io/v1beta2")) }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list, watch]                  # read why Kueue holds or evicts an attempt
- apiGroups: [kueue.x-k8s.io]
  resources: [localqueues]
  verbs: [get]                          # check that the queue of a tier exists (metadata only)
{{- end }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete, deletecollection]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [list, watch, create, patch, delete, deletecollection]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch, delete]   # patch: send the eviction notice
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]                        # mark pods of Jobs as failed when their machine is gone
{{- if .Values.rbac.output }}
- apiGroups: [""]
  resources: [pods/log, pods/proxy]     # store program output; pods/proxy: Ray's dashboard on the head
  verbs: [get]
{{- end }}
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, persistentvolumeclaims]
  verbs: [get]                          # check objects that templates name (metadata only)
{{- if .Values.rbac.secrets }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]                          # the same, read commit logs of jobs that name them, and tokens of Ray clusters
{{- else }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ toJson (append .Values.checkpointSecrets "spotladder-ray-token") }}
  verbs: [get]                          # read commit logs of jobs that name them, and the token of the Ray clusters
{{- end }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]                       # create spotladder-ray-token, the token of a namespace's Ray clusters
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [spotladder-ray-token]
  verbs: [list, watch]                  # notice its deletion (metadata only)
{{- end -}}

{{/* The controller's permissions for cluster-scoped objects. */}}
{{- define "spotladder.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get]
- apiGroups: [apps]
  resources: [deployments]
  resourceNames: [kuberay-operator, karpenter]
  verbs: [get]                          # read their versions (metadata only)
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [get]
{{- $namespaces := include "spotladder.namespaces" . | fromJsonArray }}
- apiGroups: [""]
  resources: [namespaces]
  {{- with $namespaces }}
  resourceNames: {{ append . "kube-system" | uniq | toJson }}
  {{- end }}
  verbs: [get]                          # Pod Security levels; in a member whether it exists; kube-system identifies a home cluster
{{- if not .Values.member.enabled }}
- apiGroups: [spotladder.io]
  resources: [capacitytiers]
  verbs: [list, watch]
- apiGroups: [spotladder.io]
  resources: [capacitytiers/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* The subjects of the role bindings. In the home cluster, the service account of the controller's pods. */}}
{{- define "spotladder.subject" -}}
{{- if and .Values.member.enabled .Values.member.subjects }}
{{- toYaml .Values.member.subjects }}
{{- else }}
- kind: ServiceAccount
  name: {{ include "spotladder.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end -}}
