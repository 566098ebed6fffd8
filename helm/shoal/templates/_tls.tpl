{{/* TLS between processes. */}}

{{/* The name that makes a process a member. */}}
{{- define "shoal.tlsName" -}}
{{- .Values.tls.name | default (printf "%s.%s.svc" (include "shoal.nodes" .) .Release.Namespace) -}}
{{- end -}}

{{/* Who makes the certificates: secret (the user), certManager, or chart; empty without TLS. */}}
{{- define "shoal.tlsFrom" -}}
{{- if .Values.tls.enabled -}}
{{- $wanted := .Values.tls.certManager.enabled -}}
{{- if .Values.tls.secret.name -}}
secret
{{- else if or $wanted (and (kindIs "invalid" $wanted) (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
certManager
{{- else -}}
chart
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the certificates are: suffix of the Secret -> the DNS names. Those of a pool's workers name it, so that they can serve no other. */}}
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

{{/* The Secret of a component's certificate: of (dict "root" $ "name" <component> "component" <its values>). */}}
{{- define "shoal.tlsSecret" -}}
{{- $suffix := ternary (printf "tls-%s" .name) "tls" (eq .component.role "worker") -}}
{{- .root.Values.tls.secret.name | default (printf "%s-%s" (include "shoal.fullname" .root) $suffix) -}}
{{- end -}}
