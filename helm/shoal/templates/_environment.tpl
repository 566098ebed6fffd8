{{/* Environment variables of the containers. */}}

{{/*
A component's main container. extraEnv wins over env, and both over the chart's variables. A reference such as $(POD_IP)
finds only earlier variables, so each name keeps its first position.
*/}}
{{- define "shoal.environment" -}}
{{- $ours := include (ternary "shoal.foreignEnv" "shoal.env" (.c.foreignWorker | default false)) . | fromYamlArray -}}
{{- $pools := ternary (include "shoal.poolEnv" .c | fromYamlArray) list (not (empty .c.env)) -}}
{{- include "shoal.byKey" (dict "key" "name" "lists" (list $ours $pools .c.extraEnv)) -}}
{{- end -}}
{{/* A container that runs shoal, of (dict "root" $ "component" <component>). */}}
{{- define "shoal.env" -}}
{{- $values := .root.Values -}}
- name: SHOAL_CONFIG
  value: /etc/shoal/shoal.toml
- name: SHOAL_NODE__NAME
  valueFrom:
    fieldRef: {apiVersion: v1, fieldPath: metadata.name}
{{- if ne .component.role "worker" }}
- name: POD_IP
  valueFrom:
    fieldRef: {apiVersion: v1, fieldPath: status.podIP}
- name: SHOAL_CLUSTER__ADVERTISE
  value: {{ ternary "[$(POD_IP)]:7000" "$(POD_IP):7000" (hasPrefix "[" $values.bindAddress) | quote }}
{{- with $values.redis.passwordSecret }}
{{- if include "shoal.redisPasswordInUrl" $.root }}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}
- name: SHOAL_NODE__STORE
  {{- if $values.redis.urlSecret.name }}
  valueFrom:
    secretKeyRef: {name: {{ $values.redis.urlSecret.name | quote }}, key: {{ $values.redis.urlSecret.key | quote }}}
  {{- else if $values.redis.bundled.enabled }}
  value: redis://{{ include "shoal.fullname" .root }}-redis:6379
  {{- else }}
  value: {{ $values.redis.url | quote }}
  {{- end }}
{{- end }}
{{- if eq .component.role "worker" }}
# The only directory that tools can write to.
- name: HOME
  value: /tmp
{{- end }}
{{- end -}}

{{/* The environment of a pool's servers, of the component. */}}
{{- define "shoal.poolEnv" -}}
{{- range $name, $value := .env }}
- name: {{ $name }}
  {{- if kindIs "map" $value }}
  valueFrom:
    secretKeyRef: {name: {{ $value.secret.name | quote }}, key: {{ $value.secret.key | quote }}}
  {{- else }}
  value: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* A foreign worker: its pool, and the nodes to join. */}}
{{- define "shoal.foreignEnv" -}}
- name: SHOAL_JOIN
  value: {{ include "shoal.join" .root | quote }}
- name: SHOAL_POOL
  value: {{ .component.pool | quote }}
- name: SHOAL_WORKER
  valueFrom:
    fieldRef: {apiVersion: v1, fieldPath: metadata.name}
{{- if .root.Values.tls.enabled }}
- name: SHOAL_TLS_CERTIFICATE
  value: /run/tls/tls.crt
- name: SHOAL_TLS_KEY
  value: /run/tls/tls.key
- name: SHOAL_TLS_AUTHORITY
  value: /run/tls/ca.crt
- name: SHOAL_TLS_NAME
  value: {{ include "shoal.tlsName" .root | quote }}
{{- end }}
- name: HOME
  value: /tmp
{{- end -}}
