{{- define "spotladder.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "spotladder.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "spotladder.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "spotladder.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "spotladder.selector" -}}
app.kubernetes.io/name: {{ include "spotladder.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "spotladder.notifySelector" -}}
app.kubernetes.io/name: {{ include "spotladder.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: notify
{{- end -}}

{{- define "spotladder.webSelector" -}}
app.kubernetes.io/name: {{ include "spotladder.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: web
{{- end -}}

{{- define "spotladder.labels" -}}
{{ include "spotladder.selector" . }}
{{ include "spotladder.commonLabels" . }}
{{- end -}}

{{- define "spotladder.notifyLabels" -}}
{{ include "spotladder.notifySelector" . }}
{{ include "spotladder.commonLabels" . }}
{{- end -}}

{{- define "spotladder.webLabels" -}}
{{ include "spotladder.webSelector" . }}
{{ include "spotladder.commonLabels" . }}
{{- end -}}

{{- define "spotladder.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: spotladder
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "spotladder.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "spotladder.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "spotladder.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The Lease of the installation, in the release's namespace. */}}
{{- define "spotladder.lease" -}}
{{- include "spotladder.fullname" . }}-controller
{{- end -}}

{{/* The namespaces of the jobs, as a JSON array; empty for all. */}}
{{- define "spotladder.namespaces" -}}
{{- has "*" .Values.namespaces | ternary list .Values.namespaces | toJson -}}
{{- end -}}

{{- define "spotladder.priorityClass" -}}
{{- .Values.priorityClassName | default (printf "%s-%s" .Release.Namespace (include "spotladder.fullname" .) | trunc 63 | trimSuffix "-") -}}
{{- end -}}
