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

{{- define "sluice.grpcName" -}}
{{- printf "%s-grpc" (include "sluice.fullname" . | trunc 58 | trimSuffix "-") }}
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

{{/* The labels of the pods with another component, so that no Service and no policy selects it: `root`, `component`. */}}
{{- define "sluice.labelsOf" -}}
{{- mergeOverwrite (include "sluice.labels" .root | fromYaml) (dict "app.kubernetes.io/component" .component) | toYaml }}
{{- end }}

{{- define "sluice.testName" -}}
{{- printf "%s-test" (include "sluice.fullname" . | trunc 58 | trimSuffix "-") }}
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

{{- define "sluice.dashboardName" -}}
{{- printf "%s-dashboard" (include "sluice.fullname" . | trunc 53 | trimSuffix "-") }}
{{- end }}

{{- define "sluice.image" -}}
{{- if and .Values.image.digest (not .Values.image.tag) }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else if .Values.image.digest }}
{{- printf "%s:%s@%s" .Values.image.repository .Values.image.tag .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Where pods run, and with which rights: for Sluice's pods, the check of the rules, and the test. */}}
{{- define "sluice.placement" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Image, resources and rights of a container. */}}
{{- define "sluice.container" -}}
image: {{ include "sluice.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Rules and Secrets, as files. 288 is 0440: only the group of the pods reads a Secret. */}}
{{- define "sluice.volumes" -}}
{{- with include "sluice.rulesName" . }}
- name: rules
  configMap:
    name: {{ . | quote }}
{{- end }}
{{- with .Values.tls.secretName }}
- name: tls
  secret:
    secretName: {{ . | quote }}
    defaultMode: 288
{{- end }}
{{- with .Values.tokens.secretName }}
- name: tokens
  secret:
    secretName: {{ . | quote }}
    defaultMode: 288
{{- end }}
{{- with .Values.redis.secretName }}
- name: redis
  secret:
    secretName: {{ . | quote }}
    defaultMode: 288
    # No other key, where the Secret has more.
    items:
      - key: username
        path: username
      - key: password
        path: password
{{- end }}
{{- range .Values.mountedSecrets }}
- name: {{ .name | quote }}
  secret:
    secretName: {{ .secretName | quote }}
    defaultMode: 288
{{- end }}
{{- range .Values.mountedConfigMaps }}
- name: {{ .name | quote }}
  configMap:
    name: {{ .configMapName | quote }}
{{- end }}
{{- end }}

{{/* Never by subPath: a file that is mounted like that never changes. */}}
{{- define "sluice.volumeMounts" -}}
{{- $folders := dict "rules" "/etc/sluice/rules" "tls" "/etc/sluice/tls" "tokens" "/etc/sluice/tokens" "redis" "/etc/sluice/redis" }}
{{- range concat .Values.mountedSecrets .Values.mountedConfigMaps }}
{{- $_ := set $folders .name .mountPath }}
{{- end }}
{{- range include "sluice.volumes" . | fromYamlArray }}
- name: {{ .name | quote }}
  mountPath: {{ get $folders .name | quote }}
  readOnly: true
{{- end }}
{{- end }}

{{/* The name of the ConfigMap with the rules; empty if there are none. */}}
{{- define "sluice.rulesName" -}}
{{- if .Values.rules.text }}
{{- printf "%s-rules" (include "sluice.fullname" . | trunc 57 | trimSuffix "-") }}
{{- else }}
{{- .Values.rules.configMap }}
{{- end }}
{{- end }}

{{/* The environment variables: the ones that name mounted files, and `settings`, which override them. */}}
{{- define "sluice.settings" -}}
{{- $files := dict }}
{{- if include "sluice.rulesName" . }}
{{- $_ := set $files "CONFIG_FILE" (printf "/etc/sluice/rules/%s" .Values.rules.key) }}
{{- end }}
{{- if .Values.tls.secretName }}
{{- $_ := set $files "TLS_CERT_FILE" "/etc/sluice/tls/tls.crt" }}
{{- $_ := set $files "TLS_KEY_FILE" "/etc/sluice/tls/tls.key" }}
{{- end }}
{{- if .Values.tokens.secretName }}
{{- $_ := set $files "AUTH_TOKENS_FILE" "/etc/sluice/tokens/tokens.json" }}
{{- end }}
{{- if .Values.redis.secretName }}
{{- $_ := set $files "REDIS_USERNAME_FILE" "/etc/sluice/redis/username" }}
{{- $_ := set $files "REDIS_PASSWORD_FILE" "/etc/sluice/redis/password" }}
{{- end }}
{{- mergeOverwrite $files .Values.settings | toYaml }}
{{- end }}

{{/* The scheme of the probes and of Prometheus. */}}
{{- define "sluice.scheme" -}}
{{- if (include "sluice.settings" . | fromYaml).TLS_CERT_FILE }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* The port of the probes and of Prometheus: the admin port, which clients can't fill, if it is set. */}}
{{- define "sluice.insidePort" -}}
{{- if .Values.settings.ADMIN_PORT }}admin{{ else }}http{{ end }}
{{- end }}

{{- define "sluice.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ include "sluice.insidePort" .root }}
  {{- if eq (include "sluice.scheme" .root) "HTTPS" }}
  scheme: HTTPS
  {{- end }}
{{- end }}

{{/*
As many as run, since an upgrade that names another number, or none, would end replicas that the autoscaler has
started; where none run yet, the fewest.
*/}}
{{- define "sluice.replicas" -}}
{{- $running := lookup "apps/v1" "Deployment" .Release.Namespace (include "sluice.fullname" .) }}
{{- if not .Values.autoscaling.enabled }}
{{- int .Values.replicas }}
{{- else if $running }}
{{- int $running.spec.replicas }}
{{- else }}
{{- int .Values.autoscaling.minReplicas }}
{{- end }}
{{- end }}

{{/* The ports in settings.REDIS_URL that the NetworkPolicy does not allow, separated by commas. */}}
{{- define "sluice.shutOutPorts" -}}
{{- $allowed := list }}
{{- range .Values.networkPolicy.egressPorts }}
{{- $allowed = append $allowed (toString (int .)) }}
{{- end }}
{{- $missing := list }}
{{- if .Values.networkPolicy.enabled }}
{{- range compact (splitList "," (default "" .Values.settings.REDIS_URL)) }}
{{- $port := default ":6379" (regexFind ":[0-9]+$" (regexReplaceAll "^[a-z]*://([^/?]*@)?|[/?].*$" (trim .) "")) | trimPrefix ":" }}
{{- if not (has $port $allowed) }}
{{- $missing = append $missing $port }}
{{- end }}
{{- end }}
{{- end }}
{{- $missing | uniq | join ", " }}
{{- end }}

{{/* Rules for combinations of values, which the schema can't express. */}}
{{- define "sluice.checkTogether" -}}
{{- if and .Values.rules.text .Values.rules.configMap }}
{{- fail "rules.text and rules.configMap exclude each other" }}
{{- end }}
{{- $ports := dict (default "8080" .Values.settings.PORT) "PORT" }}
{{- range $name := list "ADMIN_PORT" "GRPC_PORT" }}
{{- with get $.Values.settings $name }}
{{- if hasKey $ports . }}
{{- fail (printf "settings.%s and settings.%s are both %s; PORT is 8080 by default" (get $ports .) $name .) }}
{{- end }}
{{- $_ := set $ports . $name }}
{{- end }}
{{- end }}
{{- $settings := include "sluice.settings" . | fromYaml }}
{{- $env := dict }}
{{- range .Values.extraEnv }}
{{- $_ := set $env .name true }}
{{- end }}
{{- if and (eq (default "" $settings.REDIS_MODE) "sentinel") (not (or $settings.REDIS_SENTINEL_MASTER $env.REDIS_SENTINEL_MASTER)) }}
{{- fail "settings.REDIS_MODE is sentinel, so settings.REDIS_SENTINEL_MASTER must be set" }}
{{- end }}
{{- if and (eq (default "" $settings.REDIS_MODE) "cluster") (not (or $settings.REDIS_URL $settings.REDIS_URL_FILE $env.REDIS_URL)) }}
{{- fail "settings.REDIS_MODE is cluster, so settings.REDIS_URL must be set" }}
{{- end }}
{{- if and (eq (default "" $settings.UNKNOWN_KEYS) "deny") (not (or $settings.CONFIG_FILE $env.CONFIG_FILE)) }}
{{- fail "settings.UNKNOWN_KEYS is deny, so rules.text or rules.configMap must be set: no key would be allowed" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas must be at most autoscaling.maxReplicas" }}
{{- end }}
{{- $volumes := dict }}
{{- $folders := dict }}
{{- range $list := list "mountedSecrets" "mountedConfigMaps" "extraVolumes" }}
{{- range get $.Values $list }}
{{- if hasKey $volumes .name }}
{{- fail (printf "%s: another volume has the name %s" $list .name) }}
{{- end }}
{{- $_ := set $volumes .name true }}
{{- with .mountPath }}
{{- if hasKey $folders . }}
{{- fail (printf "%s: another volume is mounted at %s" $list .) }}
{{- end }}
{{- $_ := set $folders . true }}
{{- end }}
{{- end }}
{{- end }}
{{- $delay := int64 (default "0" .Values.settings.SHUTDOWN_DELAY_MILLIS) }}
{{- $grace := int64 (default "10000" .Values.settings.SHUTDOWN_GRACE_MILLIS) }}
{{- $sleep := mul 1000 (include "sluice.preStopSeconds" . | int64) }}
{{- if lt (mul 1000 (int64 .Values.terminationGracePeriodSeconds)) (add $sleep $delay $grace 5000) }}
{{- fail "terminationGracePeriodSeconds must be 5 s longer than settings.SHUTDOWN_DELAY_MILLIS, settings.SHUTDOWN_GRACE_MILLIS and the sleep of lifecycle.preStop together" }}
{{- end }}
{{- end }}

{{/* How long lifecycle.preStop sleeps: its `sleep`, or a command that is only that. It is part of a pod's time to end. */}}
{{- define "sluice.preStopSeconds" -}}
{{- with .Values.lifecycle.preStop }}
{{- if .sleep }}
{{- .sleep.seconds }}
{{- else if .exec }}
{{- regexFind "\\bsleep [0-9]+" (join " " .exec.command) | trimPrefix "sleep " | default "0" }}
{{- end }}
{{- end }}
{{- end }}
