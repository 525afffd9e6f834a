{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sluice.adminName" -}}
{{- printf "%s-admin" (include "sluice.fullname" . | trunc 57 | trimSuffix "-") }}
{{- end }}

{{/* Kubernetes refuses to change a Deployment's selector, so nothing that changes with a version is here. */}}
{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: limiter
{{- end }}

{{- define "sluice.versionLabel" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selectorLabels" . }}
{{ include "sluice.versionLabel" . }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "sluice.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "sluice.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "sluice.monitoringLabels" -}}
{{- mergeOverwrite (dict) .Values.monitoring.labels (include "sluice.labels" . | fromYaml) | toYaml }}
{{- end }}

{{/* What the schema can't say of values together. */}}
{{- define "sluice.checkTogether" -}}
{{- if and .Values.settings.TLS_CERT_FILE (ne .Values.probeScheme "HTTPS") }}
{{- fail "probeScheme must be HTTPS where settings.TLS_CERT_FILE is set: the service then speaks HTTPS only" }}
{{- end }}
{{- $delay := int64 (default "0" .Values.settings.SHUTDOWN_DELAY_MILLIS) }}
{{- $grace := int64 (default "10000" .Values.settings.SHUTDOWN_GRACE_MILLIS) }}
{{- $stop := add (mul 1000 (int64 .Values.preStopSleepSeconds)) $delay $grace }}
{{- if le (mul 1000 (int64 .Values.terminationGracePeriodSeconds)) $stop }}
{{- fail "terminationGracePeriodSeconds must be longer than preStopSleepSeconds, settings.SHUTDOWN_DELAY_MILLIS and settings.SHUTDOWN_GRACE_MILLIS together" }}
{{- end }}
{{- end }}
