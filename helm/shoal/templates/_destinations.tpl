{{/*
A component's destinations besides Shoal and Redis, of (dict "root" $ "name" <name> "component" <component>), as a YAML
list of {for: <setting>, url: <URL>}. Refuses destinations that the chart cannot know.
*/}}
{{- define "shoal.destinations" -}}
{{- $c := .component -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy $c.config) -}}
{{- $all := list -}}
{{- if not $c.foreignWorker -}}
{{- $telemetry := $config.telemetry | default dict -}}
{{- $all = append $all (dict "for" "telemetry.endpoint" "url" ($telemetry.endpoint | default "")) -}}
{{- $proxied := ($config.outbound | default dict).proxy_from_environment -}}
{{- range $c.extraEnv -}}
{{- $isProxy := and $proxied (has (upper .name) (list "HTTP_PROXY" "HTTPS_PROXY")) -}}
{{- if or $isProxy (has .name (list "OTEL_EXPORTER_OTLP_ENDPOINT" "SHOAL_TELEMETRY__ENDPOINT")) -}}
{{- $all = append $all (dict "for" .name "url" (.value | default "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $c.role "edge" -}}
{{- $all = concat $all (include "shoal.issuers" ($config.auth | default dict) | fromYamlArray) -}}
{{- else if and (eq $c.role "worker") (not $c.discovered) (kindIs "map" $c.backend) -}}
{{- $all = concat $all (include "shoal.backendUrls" . | fromYamlArray) -}}
{{- end -}}
{{- $known := list -}}
{{- range $all }}{{ if .url }}{{ $known = append $known . }}{{ end }}{{ end -}}
{{- toYaml $known -}}
{{- end -}}

{{/* The authorization servers of edges: URLs of metadata, keys and introspection. */}}
{{- define "shoal.issuers" -}}
{{- $all := list -}}
{{- if eq (.mode | default "none") "oauth" -}}
{{- range .issuers -}}
{{- $asked := .introspection | default dict -}}
{{- range $url := list .issuer .jwks_url $asked.endpoint -}}
{{- $all = append $all (dict "for" "auth.issuers" "url" ($url | default "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* A pool's servers behind URLs, and the token endpoints for them. */}}
{{- define "shoal.backendUrls" -}}
{{- $pool := .component.pool -}}
{{- /* If the user's own rules define where workers may go, the chart need not know it. */ -}}
{{- $ruled := or .component.egress .root.Values.networkPolicy.workersEgress (not .root.Values.networkPolicy.enabled) -}}
{{- $all := list -}}
{{- range $kind := list "http" "openapi" -}}
{{- with index $.component.backend $kind -}}
{{- $where := printf "pools.%s.backend.%s" $pool $kind -}}
{{- $urls := concat (list .url .base_url) (.urls | default list) (.base_urls | default list) -}}
{{- if regexMatch "^https?://" (.document | default "") -}}
{{- $urls = append $urls .document -}}
{{- else if and .document (not .base_url) (not .base_urls) (not $ruled) -}}
{{- fail (printf "%s.document is a file, from which the chart cannot read the service's address: set %s.base_url or pools.%s.egress for the NetworkPolicy" $where $where $pool) -}}
{{- end -}}
{{- $credentials := .client_credentials | default dict -}}
{{- if and $credentials.client_id (not $credentials.token_endpoint) (not $credentials.issuer) (not $ruled) -}}
{{- fail (printf "%s.client_credentials: the chart cannot know the authorization server that the MCP server names: set %s.client_credentials.token_endpoint or issuer, or pools.%s.egress, for the NetworkPolicy" $where $where $pool) -}}
{{- end -}}
{{- if $credentials.client_id -}}
{{- $urls = append $urls ($credentials.token_endpoint | default $credentials.issuer) -}}
{{- end -}}
{{- $urls = append $urls (.token_exchange | default dict).endpoint -}}
{{- range $urls -}}
{{- $all = append $all (dict "for" $where "url" (. | default "")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}
