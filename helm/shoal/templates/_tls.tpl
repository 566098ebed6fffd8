{{/* TLS between processes. */}}

{{/* The DNS name of all member processes. */}}
{{- define "shoal.tlsName" -}}
{{- .Values.tls.name | default (printf "%s.%s.svc" (include "shoal.nodes" .) .Release.Namespace) -}}
{{- end -}}

{{/* The source of certificates: secret (the user's), certManager, or job; empty without TLS. */}}
{{- define "shoal.tlsFrom" -}}
{{- if .Values.tls.enabled -}}
{{- if .Values.tls.secret.name -}}
secret
{{- else if .Values.tls.certManager.enabled -}}
certManager
{{- else -}}
job
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
cert-manager's certificates: suffix of the Secret -> DNS names. A pool's workers have the pool's name, so that they
cannot serve another one.
*/}}
{{- define "shoal.tlsCertificates" -}}
{{- $name := include "shoal.tlsName" . -}}
{{- $all := dict "tls" (list $name) -}}
{{- range $component, $c := include "shoal.components" . | fromYaml -}}
{{- if eq $c.role "worker" -}}
{{- $_ := set $all (printf "tls-%s" $component) (list $name (printf "%s.pool.%s" $c.pool $name)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* The prefix of the Secrets that the Job fills; `shoal certificates --secrets` adds the rest. */}}
{{- define "shoal.madeSecrets" -}}
{{- include "shoal.fullname" . }}-made
{{- end -}}

{{/* The Secret of a component's certificate, of (dict "root" $ "name" <component> "component" <its values>). */}}
{{- define "shoal.tlsSecret" -}}
{{- $from := include "shoal.tlsFrom" .root -}}
{{- $isWorker := eq .component.role "worker" -}}
{{- if eq $from "secret" -}}
{{- .root.Values.tls.secret.name -}}
{{- else if eq $from "certManager" -}}
{{- printf "%s-%s" (include "shoal.fullname" .root) (ternary (printf "tls-%s" .name) "tls" $isWorker) -}}
{{- else -}}
{{- printf "%s-%s" (include "shoal.madeSecrets" .root) (ternary (include "shoal.madeForWorker" .) "nodes" $isWorker) -}}
{{- end -}}
{{- end -}}

{{/*
The suffix of the Secret that the Job fills for a worker, of (dict "name" <component> "component" <its values>).
*/}}
{{- define "shoal.madeForWorker" -}}
{{- if .component.discovered -}}
any-pool
{{- else -}}
{{- printf "pool-%s" (trimPrefix "worker-" .name) -}}
{{- end -}}
{{- end -}}
