{{/* The spec of a component's pods, of (dict "root" $ "name" <name> "component" <component>). */}}
{{- define "shoal.pod" -}}
{{- $root := .root -}}
{{- $c := .component -}}
{{- /* An image without Shoal, which needs the binary beside it. */ -}}
{{- $ownImage := and (eq $c.role "worker") (not $c.foreignWorker) (ne (include "shoal.ownProgram" $c) "true") ($c.image | default dict).repository -}}
{{- $about := dict "root" $root "values" $root.Values "name" .name "c" $c "component" $c "ownImage" $ownImage -}}
serviceAccountName: {{ include "shoal.serviceAccount" . }}
automountServiceAccountToken: {{ $c.automountServiceAccountToken }}
terminationGracePeriodSeconds: {{ include "shoal.gracePeriod" . }}
{{ include "shoal.podBasics" (dict "root" $root "settings" $c) }}
{{- include "shoal.spread" . }}
{{- $init := ternary (include "shoal.installer" $about | fromYaml | list) list (not (empty $ownImage)) }}
{{- with concat $init $c.extraInitContainers }}
initContainers:
  {{- include "shoal.byKey" (dict "key" "name" "lists" (list .)) | nindent 2 }}
{{- end }}
containers:
  {{- include "shoal.byKey" (dict "key" "name" "lists" (list (include "shoal.container" $about | fromYaml | list) $c.extraContainers)) | nindent 2 }}
volumes:
  {{- include "shoal.volumes" $about | nindent 2 }}
{{- end -}}

{{/* Copies the binary for an image without Shoal. */}}
{{- define "shoal.installer" -}}
name: shoal-install
image: {{ include "shoal.image" (dict "root" .root "image" .values.image "tag" .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .values.image.pullPolicy }}
command: [/usr/local/bin/shoal]
args: [install, /opt/shoal]
securityContext:
  {{- include "shoal.securityContext" (dict "root" .root "context" .c.securityContext) | nindent 2 }}
resources:
  {{- toYaml .c.initResources | nindent 2 }}
volumeMounts:
  - {name: shoal, mountPath: /opt/shoal}
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* The main container. */}}
{{- define "shoal.container" -}}
{{- $c := .c -}}
{{- $foreign := $c.foreignWorker | default false -}}
{{- $ownProgram := eq (include "shoal.ownProgram" $c) "true" -}}
name: {{ ternary "worker" "shoal" $foreign }}
{{- if or $foreign $ownProgram .ownImage }}
image: {{ include "shoal.image" (dict "root" .root "image" $c.image) | quote }}
imagePullPolicy: {{ $c.image.pullPolicy | default "IfNotPresent" }}
{{- else }}
image: {{ include "shoal.image" (dict "root" .root "image" .values.image "tag" .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .values.image.pullPolicy }}
{{- end }}
{{- if or $foreign $ownProgram }}
{{- with $c.command }}
command:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $c.args | default (ternary (list "serve") nil $ownProgram) }}
args:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- else }}
command: [{{ ternary "/opt/shoal/shoal" "/usr/local/bin/shoal" (not (empty .ownImage)) }}]
args: [serve]
{{- end }}
env:
  {{- include "shoal.environment" . | nindent 2 }}
{{- with $c.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $foreign }}
{{- with $c.foreignProbes }}
{{ toYaml . }}
{{- end }}
{{- else }}
{{ include "shoal.portsAndProbes" . }}
{{- end }}
{{- with $c.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "shoal.securityContext" (dict "root" .root "context" $c.securityContext) | nindent 2 }}
resources:
  {{- toYaml $c.resources | nindent 2 }}
# Shows why a pod cannot start.
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  {{- include "shoal.mounts" . | nindent 2 }}
{{- end -}}

{{- define "shoal.portsAndProbes" -}}
{{- /* The kubelet uses the admin port's scheme, and does not check the certificate. */ -}}
{{- $scheme := ternary ", scheme: HTTPS" "" (not (empty .values.adminTls.secret.name)) -}}
ports:
  {{- if eq .c.role "edge" }}
  - {name: mcp, containerPort: 8080}
  {{- end }}
  - {name: admin, containerPort: 8081}
  {{- if ne .c.role "worker" }}
  - {name: cluster, containerPort: 7000}
  {{- else }}
  - {name: presence, containerPort: 7001}
  {{- end }}
startupProbe:
  httpGet: {path: /livez, port: admin{{ $scheme }}}
  {{- toYaml .c.probes.startup | nindent 2 }}
livenessProbe:
  httpGet: {path: /livez, port: admin{{ $scheme }}}
  {{- toYaml .c.probes.liveness | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: admin{{ $scheme }}}
  {{- toYaml .c.probes.readiness | nindent 2 }}
{{- end -}}
