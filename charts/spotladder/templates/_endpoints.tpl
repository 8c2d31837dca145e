{{/* The ports of all endpoints in the values, as a JSON array of numbers. */}}
{{- define "spotladder.endpointPorts" -}}
{{- $endpoints := list -}}
{{- range .Values.tenancy -}}
{{- $endpoints = concat $endpoints (.endpoints | default list) -}}
{{- end -}}
{{- with .Values.controller.environment.AWS_ENDPOINT_URL -}}
{{- $endpoints = append $endpoints . -}}
{{- end -}}
{{- range .Values.env -}}
{{- if and (eq (toString .name) "AWS_ENDPOINT_URL") .value -}}
{{- $endpoints = append $endpoints .value -}}
{{- end -}}
{{- end -}}
{{- $ports := list -}}
{{- range $endpoints -}}
{{- $default := ternary "80" "443" (hasPrefix "http://" (lower .)) -}}
{{- $given := regexFind ":[0-9]+(/|$)" . | trimPrefix ":" | trimSuffix "/" -}}
{{- $ports = append $ports ($given | default $default | int) -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end -}}
