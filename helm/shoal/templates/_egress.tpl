{{/* Egress rules of NetworkPolicies. */}}

{{/*
The rule for one host, of (dict "root" $ "host" <host> "ports" <list>). A NetworkPolicy sees addresses and ports of
pods, not names. So a Service is allowed by its namespace with any port, an address by itself, and any other name by its
port. Empty for the pod itself.
*/}}
{{- define "shoal.egressRule" -}}
{{- $ports := list -}}
{{- range .ports | uniq }}{{ $ports = append $ports (dict "port" (int .) "protocol" "TCP") }}{{ end -}}
{{- $host := lower .host -}}
{{- $labels := splitList "." $host -}}
{{- $rule := dict "ports" $ports -}}
{{- with index .root.Values.networkPolicy.to $host -}}
{{- $rule = mergeOverwrite (dict "ports" $ports) (deepCopy .) -}}
{{- else -}}
{{- if or (eq $host "localhost") (hasPrefix "127." $host) (eq $host "[::1]") -}}
{{- $rule = dict -}}
{{- else if regexMatch "^[0-9.]+$" $host -}}
{{- $_ := set $rule "to" (list (dict "ipBlock" (dict "cidr" (printf "%s/32" $host)))) -}}
{{- else if hasPrefix "[" $host -}}
{{- $_ := set $rule "to" (list (dict "ipBlock" (dict "cidr" (printf "%s/128" (trimAll "[]" $host))))) -}}
{{- else if eq (len $labels) 1 -}}
{{- $rule = dict "to" (list (dict "podSelector" dict)) -}}
{{- else if and (gt (len $labels) 2) (eq (index $labels 2) "svc") -}}
{{- $rule = dict "to" (list (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" (index $labels 1))))) -}}
{{- else if and (gt (len $labels) 3) (eq (index $labels 3) "svc") -}}
{{- /* A pod of a StatefulSet. */ -}}
{{- $rule = dict "to" (list (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" (index $labels 2))))) -}}
{{- end -}}
{{- end -}}
{{- if $rule }}{{ toYaml $rule }}{{ end -}}
{{- end -}}

{{/* Host and port of a URL, as a map. */}}
{{- define "shoal.hostPort" -}}
{{- $scheme := lower (regexFind "^[a-zA-Z][a-zA-Z0-9+.-]*" .) -}}
{{- $authority := regexReplaceAll "^.*@" (regexFind "^[^/?#]*" (regexReplaceAll "^[^:]*://" . "")) "" -}}
{{- $port := trimPrefix ":" (regexFind ":[0-9]+$" $authority) -}}
host: {{ regexReplaceAll ":[0-9]+$" $authority "" | quote }}
port: {{ $port | default (ternary "443" "80" (eq $scheme "https")) }}
{{- end -}}

{{/* The rules for a component's destinations, without duplicates, each with its purpose. */}}
{{- define "shoal.destinationRules" -}}
{{- $rules := list -}}
{{- $reasons := dict -}}
{{- range include "shoal.destinations" . | fromYamlArray -}}
{{- $at := include "shoal.hostPort" .url | fromYaml -}}
{{- $rule := include "shoal.egressRule" (dict "root" $.root "host" $at.host "ports" (list $at.port)) -}}
{{- if $rule -}}
{{- $rules = append $rules $rule -}}
{{- $reason := printf "%s (%s)" $at.host .for -}}
{{- $_ := set $reasons $rule (append (index $reasons $rule | default list) $reason | uniq) -}}
{{- end -}}
{{- end -}}
{{- range uniq $rules }}
# {{ index $reasons . | join ", " }}
{{ . | fromYaml | list | toYaml }}
{{- end -}}
{{- end -}}

{{/* Redis, according to networkPolicy.redis or redis.url, of the root. */}}
{{- define "shoal.redisRules" -}}
{{- $policy := .Values.networkPolicy.redis -}}
{{- if .Values.redis.bundled.enabled -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "shoal.selector" (dict "root" . "name" "redis") | nindent 10 }}
  ports:
    - {port: 6379, protocol: TCP}
{{- else -}}
{{- $several := regexMatch "^rediss?\\+" .Values.redis.url -}}
{{- $default := ternary "26379" "6379" (contains "+sentinel" .Values.redis.url) -}}
{{- $rules := list -}}
{{- $ports := list -}}
{{- range splitList "," (regexReplaceAll "^.*@" (regexFind "^[^/?#]*" (regexReplaceAll "^[^:]*://" .Values.redis.url "")) "") -}}
{{- $port := trimPrefix ":" (regexFind ":[0-9]+$" .) | default $default -}}
{{- /* Sentinel and Cluster refer to other servers, usually at the default port. */ -}}
{{- $its := ternary (list $port "6379") (list $port) $several -}}
{{- $ports = concat $ports $its -}}
{{- $rules = append $rules (include "shoal.egressRule" (dict "root" $ "host" (regexReplaceAll ":[0-9]+$" . "") "ports" $its)) -}}
{{- end -}}
{{- if or $policy.to $policy.ports -}}
- ports:
    {{- range $policy.ports | default (uniq $ports) }}
    - {port: {{ int . }}, protocol: TCP}
    {{- end }}
  {{- with $policy.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- else -}}
{{- range uniq $rules }}
{{- if . }}
{{ . | fromYaml | list | toYaml }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* DNS, of the root. */}}
{{- define "shoal.dnsRule" -}}
{{- $dns := .Values.networkPolicy.dns -}}
- ports:
    {{- range $dns.ports }}
    - {port: {{ int . }}, protocol: UDP}
    - {port: {{ int . }}, protocol: TCP}
    {{- end }}
  {{- with $dns.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
