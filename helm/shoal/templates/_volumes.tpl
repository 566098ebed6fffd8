{{/* Volumes of a component's pods, and their mounts in the main container. The user's win, by name and by path. */}}

{{- define "shoal.mounts" -}}
{{- include "shoal.byKey" (dict "key" "mountPath" "lists" (list (include "shoal.ownMounts" . | fromYamlArray) .c.extraVolumeMounts)) -}}
{{- end -}}

{{- define "shoal.ownMounts" -}}
{{- if eq .c.role "worker" }}
- {name: tmp, mountPath: /tmp}
{{- end }}
{{- if not .c.foreignWorker }}
- {name: config, mountPath: /etc/shoal, readOnly: true}
{{- if .values.adminTls.secret.name }}
- {name: tls-admin, mountPath: /run/tls-admin, readOnly: true}
{{- end }}
{{- end }}
{{- if include "shoal.readsDiscovered" . }}
- {name: discovered, mountPath: /run/shoal/discovered, readOnly: true}
{{- end }}
{{- if .ownImage }}
- {name: shoal, mountPath: /opt/shoal, readOnly: true}
{{- end }}
{{- if ne .c.role "worker" }}
{{- if .values.stateKeys.secret.name }}
- {name: state-keys, mountPath: /run/secrets/shoal/state-keys, readOnly: true}
{{- end }}
{{- if .values.adminToken.secret.name }}
- {name: admin-token, mountPath: /run/secrets/shoal/admin-token, readOnly: true}
{{- end }}
{{- range $name, $files := include "shoal.redisFiles" .root | fromYaml }}
- {name: {{ $name }}, mountPath: {{ $files.path }}, readOnly: true}
{{- end }}
{{- end }}
{{- if and (eq .c.role "edge") .values.auth.tokensSecret.name }}
- {name: tokens, mountPath: /run/secrets/shoal/tokens, readOnly: true}
{{- end }}
{{- if .values.tls.enabled }}
- {name: tls, mountPath: /run/tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "shoal.volumes" -}}
{{- include "shoal.byKey" (dict "key" "name" "lists" (list (include "shoal.ownVolumes" . | fromYamlArray) .c.extraVolumes)) -}}
{{- end -}}

{{- define "shoal.ownVolumes" -}}
{{- $values := .root.Values -}}
{{- if eq .c.role "worker" }}
- name: tmp
  emptyDir:
    {{- toYaml (.c.tmp | default dict) | nindent 4 }}
{{- end }}
{{- if not .c.foreignWorker }}
- name: config
  configMap:
    name: {{ include "shoal.fullname" .root }}-{{ .name }}
{{- with $values.adminTls.secret.name }}
- name: tls-admin
  secret:
    secretName: {{ . | quote }}
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end }}
{{- end }}
{{- if include "shoal.readsDiscovered" . }}
# Workers get the tokens too.
- name: discovered
  {{- if eq .c.role "worker" }}
  secret:
    secretName: {{ include "shoal.fullname" .root }}-discovered
    optional: true
  {{- else }}
  configMap:
    name: {{ include "shoal.fullname" .root }}-discovered
    optional: true
  {{- end }}
{{- end }}
{{- if .ownImage }}
- name: shoal
  # For the binary.
  emptyDir: {sizeLimit: 256Mi}
{{- end }}
{{- if ne .c.role "worker" }}
{{- with $values.stateKeys.secret }}
{{- if .name }}
- name: state-keys
  secret:
    secretName: {{ .name | quote }}
    items:
      {{- range .keys }}
      - {key: {{ . | quote }}, path: {{ . | quote }}}
      {{- end }}
{{- end }}
{{- end }}
{{- with $values.adminToken.secret }}
{{- if .name }}
- name: admin-token
  secret:
    secretName: {{ .name | quote }}
    items:
      - {key: {{ .key | quote }}, path: token}
{{- end }}
{{- end }}
{{- range $name, $files := include "shoal.redisFiles" .root | fromYaml }}
- name: {{ $name }}
  secret:
    secretName: {{ $files.secret | quote }}
    items:
      {{- range $files.items }}
      - {key: {{ .key | quote }}, path: {{ .path }}}
      {{- end }}
{{- end }}
{{- end }}
{{- with $values.auth.tokensSecret }}
{{- if and (eq $.c.role "edge") .name }}
- name: tokens
  secret:
    secretName: {{ .name | quote }}
    items:
      - {key: {{ .key | quote }}, path: tokens.toml}
{{- end }}
{{- end }}
{{- if $values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "shoal.tlsSecret" (dict "root" .root "name" .name "component" .c) | quote }}
    # The pod starts only when all three exist.
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
      - {key: ca.crt, path: ca.crt}
{{- end }}
{{- end -}}

{{/* Whether the component's processes read the pools that the controller finds. */}}
{{- define "shoal.readsDiscovered" -}}
{{- if and .root.Values.controller.enabled (or (ne .c.role "worker") .c.discovered) }}true{{ end -}}
{{- end -}}
