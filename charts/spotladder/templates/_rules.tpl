{{/* The controller's permissions in the namespaces that it reconciles. tests/kube/test_chart.py compares them with its API
     calls, at home and in a member cluster. */}}
{{- define "spotladder.rules" -}}
{{- if not .Values.member.enabled }}
- apiGroups: [spotladder.io]
  resources: [tieredjobs]
  verbs: [list, watch, patch]           # patch: the finalizer
- apiGroups: [spotladder.io]
  resources: [tieredjobs/status]
  verbs: [patch]
- apiGroups: [spotladder.io]
  resources: [tieredjobs/finalizers]
  verbs: [update]                       # to be named as an owner that blocks deletion, where that is enforced
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
- apiGroups: [ray.io]
  resources: [rayjobs]
  verbs: [list, watch, create, patch, delete, deletecollection]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [list, watch, delete]          # delete: those that a RayJob left behind
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [list, watch, create, patch, delete, deletecollection]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [create, patch, delete, deletecollection]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch, delete]   # patch: the notice
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]                        # to say that a pod of a Job has failed, when its machine is gone
{{- if .Values.rbac.output }}
- apiGroups: [""]
  resources: [pods/log, pods/proxy]     # to keep what programs printed; pods/proxy: Ray's dashboard on the head
  verbs: [get]
{{- end }}
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, persistentvolumeclaims]
  verbs: [get]                          # whether what a job's template names exists; at home also to copy it
{{- if .Values.rbac.secrets }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]                          # the same; and to follow the commit logs of jobs that name them
{{- else if .Values.checkpointSecrets }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ toJson .Values.checkpointSecrets }}
  verbs: [get]                          # to follow the commit logs of jobs that name them
{{- end }}
{{- if and .Values.member.enabled .Values.member.copies }}
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, secrets]
  verbs: [get, list, create, patch, delete]  # the copies that spec.copies asks for
{{- end }}
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
  verbs: [get]                          # their versions; only metadata are asked for
- apiGroups: [node.k8s.io]
  resources: [runtimeclasses]
  verbs: [get]
{{- if .Values.member.enabled }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]                          # whether the job's namespace exists here
{{- else }}
- apiGroups: [spotladder.io]
  resources: [capacitytiers]
  verbs: [list, watch]
- apiGroups: [spotladder.io]
  resources: [capacitytiers/status]
  verbs: [patch]
{{- if .Values.clusters }}
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]                          # its uid tells this home cluster from others that use the same clusters
{{- end }}
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
