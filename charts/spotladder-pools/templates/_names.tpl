{{- define "spotladder-pools.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: spotladder
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* A complete object of the values, with the labels of the release. */}}
{{- define "spotladder-pools.object" -}}
{{- $labels := merge (dict) (.object.metadata.labels | default dict) (include "spotladder-pools.labels" .root | fromYaml) -}}
{{- $metadata := merge (dict "labels" $labels) .object.metadata -}}
---
{{ merge (dict "metadata" $metadata) .object | toYaml }}
{{ end -}}

{{/* "yes" if the namespace exists and does not belong to this release. `helm template` does not read from the cluster. */}}
{{- define "spotladder-pools.foreign" -}}
{{- with lookup "v1" "Namespace" "" .namespace -}}
{{- $owner := .metadata.annotations | default dict -}}
{{- if or (ne (get $owner "meta.helm.sh/release-name") $.root.Release.Name) (ne (get $owner "meta.helm.sh/release-namespace") $.root.Release.Namespace) -}}
yes
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "spotladder-pools.subjects" -}}
{{- range .groups }}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: {{ . | quote }}}
{{- end }}
{{- range .users }}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: {{ . | quote }}}
{{- end }}
{{- end -}}
