{{/* What the controller does in the namespaces that it looks after. tests/kube/test_chart.py compares both ways. */}}
{{- define "spotladder.rules" -}}
- apiGroups: [spotladder.io]
  resources: [tieredjobs]
  verbs: [list, watch, patch]           # patch: the finalizer
- apiGroups: [spotladder.io]
  resources: [tieredjobs/status]
  verbs: [patch]
- apiGroups: [spotladder.io]
  resources: [tieredjobs/finalizers]
  verbs: [update]                       # to be named as an owner that blocks deletion, where that is enforced
- apiGroups: [ray.io]
  resources: [rayjobs]
  verbs: [list, watch, create, patch, deletecollection]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [list, watch, delete]          # delete: those that a RayJob left behind
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch, create, patch, deletecollection]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [create, patch, deletecollection]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch, delete]   # patch: the notice; delete: those on nodes that nobody hears of
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- with .Values.checkpointSecrets }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ toJson . }}
  verbs: [get]                          # to follow the commit logs of jobs that name them
{{- end }}
{{- end -}}

{{/* What has no namespace. */}}
{{- define "spotladder.clusterRules" -}}
- apiGroups: [spotladder.io]
  resources: [capacitytiers]
  verbs: [list, watch]
- apiGroups: [spotladder.io]
  resources: [capacitytiers/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- end -}}

{{- define "spotladder.subject" -}}
- kind: ServiceAccount
  name: {{ include "spotladder.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
