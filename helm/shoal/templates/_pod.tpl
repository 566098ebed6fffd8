{{/* The spec of a component's pods: of (dict "root" $ "name" <name> "component" <component>). */}}
{{- define "shoal.pod" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $c := .component -}}
{{- $foreign := $c.foreignWorker | default false -}}
{{- $ownProgram := eq (include "shoal.ownProgram" $c) "true" -}}
{{- /* One that needs the binary put beside it. */ -}}
{{- $ownImage := and (eq $c.role "worker") (not $foreign) (not $ownProgram) ($c.image | default dict).repository -}}
{{- $shoal := include "shoal.image" (dict "image" $values.image "tag" $root.Chart.AppVersion) -}}
{{- /* The kubelet speaks what the admin port speaks, and does not check the certificate. */ -}}
{{- $scheme := ternary ", scheme: HTTPS" "" (not (empty $values.adminTls.secret.name)) -}}
serviceAccountName: {{ include "shoal.serviceAccount" . }}
automountServiceAccountToken: false
# Variables that Kubernetes makes for Services (SHOAL_EDGE_PORT and such) look like settings to readers.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ include "shoal.gracePeriod" . }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $c.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $c.runtimeClassName }}
runtimeClassName: {{ . | quote }}
{{- end }}
{{- with $c.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $c.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "shoal.spread" . }}
securityContext:
  {{- toYaml $c.podSecurityContext | nindent 2 }}
{{- if $ownImage }}
initContainers:
  # The image of the tools needs nothing of Shoal: the binary comes from here.
  - name: shoal
    image: {{ $shoal | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    command: [/usr/local/bin/shoal]
    args: [install, /opt/shoal]
    securityContext:
      {{- toYaml $c.securityContext | nindent 6 }}
    resources:
      requests: {cpu: 10m, memory: 32Mi}
      limits: {memory: 64Mi}
    volumeMounts:
      - {name: shoal, mountPath: /opt/shoal}
    terminationMessagePolicy: FallbackToLogsOnError
{{- end }}
containers:
  - name: {{ ternary "worker" "shoal" $foreign }}
    {{- if or $foreign $ownProgram $ownImage }}
    image: {{ include "shoal.image" (dict "image" $c.image) | quote }}
    imagePullPolicy: {{ $c.image.pullPolicy | default "IfNotPresent" }}
    {{- else }}
    image: {{ $shoal | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    {{- end }}
    {{- if or $foreign $ownProgram }}
    {{- with $c.command }}
    command:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $c.args | default (ternary (list "serve") nil $ownProgram) }}
    args:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- else }}
    command: [{{ ternary "/opt/shoal/shoal" "/usr/local/bin/shoal" (not (empty $ownImage)) }}]
    args: [serve]
    {{- end }}
    env:
      {{- include (ternary "shoal.foreignEnv" "shoal.env" $foreign) . | nindent 6 }}
      {{- if $c.env }}
      {{- include "shoal.poolEnv" $c | trim | nindent 6 }}
      {{- end }}
      {{- with $c.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with $c.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if not $foreign }}
    ports:
      {{- if eq $c.role "edge" }}
      - {name: mcp, containerPort: 8080}
      {{- end }}
      - {name: admin, containerPort: 8081}
      {{- if ne $c.role "worker" }}
      - {name: cluster, containerPort: 7000}
      {{- else }}
      - {name: presence, containerPort: 7001}
      {{- end }}
    startupProbe:
      httpGet: {path: /livez, port: admin{{ $scheme }}}
      {{- toYaml $c.probes.startup | nindent 6 }}
    livenessProbe:
      httpGet: {path: /livez, port: admin{{ $scheme }}}
      {{- toYaml $c.probes.liveness | nindent 6 }}
    readinessProbe:
      httpGet: {path: /readyz, port: admin{{ $scheme }}}
      {{- toYaml $c.probes.readiness | nindent 6 }}
    {{- else }}
    {{- with $c.foreignProbes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
    securityContext:
      {{- toYaml $c.securityContext | nindent 6 }}
    resources:
      {{- toYaml $c.resources | nindent 6 }}
    # Whoever looks at a pod that cannot start is told why.
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
      {{- include "shoal.mounts" (dict "values" $values "c" $c "ownImage" $ownImage) | nindent 6 }}
volumes:
  {{- include "shoal.volumes" (dict "root" $root "name" .name "c" $c "ownImage" $ownImage) | nindent 2 }}
{{- end -}}

{{- define "shoal.mounts" -}}
{{- if eq .c.role "worker" }}
- {name: tmp, mountPath: /tmp}
{{- end }}
{{- if not .c.foreignWorker }}
- {name: config, mountPath: /etc/shoal, readOnly: true}
{{- if .values.adminTls.secret.name }}
- {name: tls-admin, mountPath: /run/tls-admin, readOnly: true}
{{- end }}
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
{{- end }}
{{- if .values.tls.enabled }}
- {name: tls, mountPath: /run/tls, readOnly: true}
{{- end }}
{{- with .c.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "shoal.volumes" -}}
{{- $values := .root.Values -}}
{{- if eq .c.role "worker" }}
# For the tools; Shoal itself writes no file.
- name: tmp
  emptyDir: {}
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
{{- if .ownImage }}
- name: shoal
  emptyDir: {}
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
{{- end }}
{{- if $values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "shoal.tlsSecret" (dict "root" .root "name" .name "component" .c) | quote }}
{{- end }}
{{- with .c.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Where the pods of a component may run. */}}
{{- define "shoal.spread" -}}
{{- $c := .component }}
{{- $labels := include "shoal.selector" (dict "root" .root "name" .name) | fromYaml }}
{{- if $c.affinity }}
affinity:
  {{- toYaml $c.affinity | nindent 2 }}
{{- else if eq $c.antiAffinity "hard" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- toYaml $labels | nindent 12 }}
{{- else if eq $c.antiAffinity "soft" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- toYaml $labels | nindent 14 }}
{{- end }}
{{- if $c.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml $c.topologySpreadConstraints | nindent 2 }}
{{- else if $c.topologyKeys }}
topologySpreadConstraints:
  {{- range $c.topologyKeys }}
  - topologyKey: {{ . | quote }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- toYaml $labels | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}
