{{- define "envcheck.name" -}}
{{- if eq .Release.Name .Chart.Name }}{{ .Chart.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "envcheck.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "envcheck.labels" -}}
{{ include "envcheck.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Whether it talks to the API server: node-problem-detector sets the conditions where it is enabled. */}}
{{- define "envcheck.sets-conditions" -}}
{{- if and .Values.conditions (not .Values.nodeProblemDetector.enabled) }}true{{ end -}}
{{- end }}

{{- define "envcheck.uses-api" -}}
{{- if or (include "envcheck.sets-conditions" .) .Values.taint.enabled }}true{{ end -}}
{{- end }}

{{- define "envcheck.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{ .Values.image.repository }}{{ if hasPrefix "sha256:" $tag }}@{{ else }}:{{ end }}{{ $tag }}
{{- end }}
