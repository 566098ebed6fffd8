{{/* Separates settings that running processes reload from those that need a restart. */}}

{{/*
The merged config of the component, without settings that its role does not read or that are in separate files, of (dict
"root" $ "component" <component>).
*/}}
{{- define "shoal.configOfRole" -}}
{{- $role := .component.role -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .component.config) -}}
{{- if eq $role "worker" -}}
{{- $config = omit $config "auth" "policy" "quotas" "redis" "session" "tasks" -}}
{{- else -}}
{{- $_ := set $config "reload" (mergeOverwrite (dict "watch" true) ($config.reload | default dict)) -}}
{{- /* A pool takes no calls before a node has read its settings, with their rules and quotas. */ -}}
{{- $_ := set $config "catalog" (mergeOverwrite (dict "unnamed_pools" false) ($config.catalog | default dict)) -}}
{{- if hasKey (include "shoal.policyFile" . | fromYaml) "rules" -}}
{{- $_ := set $config "policy" (merge (dict "file" "/etc/shoal/policy.toml") (omit ($config.policy | default dict) "rules" "file")) -}}
{{- end -}}
{{- end -}}
{{- if eq $role "session" -}}
{{- $config = omit $config "auth" "quotas" -}}
{{- end -}}
{{- if and (ne $role "edge") $config.server -}}
{{- $_ := set $config "server" (omit $config.server "path" "http_sse" "json_response" "websocket" "public_base" "allowed_hosts"
    "allowed_origins" "trusted_proxies" "body_timeout") -}}
{{- end -}}
{{- if eq $role "edge" -}}
{{- if .root.Values.auth.tokensSecret.name -}}
{{- $auth := mergeOverwrite (dict "mode" "tokens") ($config.auth | default dict) -}}
{{- $_ := set $config "auth" (merge (dict "tokens_file" "/run/secrets/shoal/tokens/tokens.toml") $auth) -}}
{{- else if (include "shoal.tokensFile" . | fromYaml).tokens -}}
{{- $_ := set $config "auth" (merge (dict "tokens_file" "/etc/shoal/tokens.toml") (omit $config.auth "tokens" "tokens_file")) -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
The rules for a file beside the configuration, which processes reload, of the same. A user's file replaces it. The file
exists without rules too, so that the first rule needs no new pods.
*/}}
{{- define "shoal.policyFile" -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .component.config) -}}
{{- $policy := $config.policy | default dict -}}
{{- if and (ne .component.role "worker") (not $policy.file) -}}
{{- toYaml (dict "rules" ($policy.rules | default list)) -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* The same for bearer tokens. */}}
{{- define "shoal.tokensFile" -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .component.config) -}}
{{- $auth := $config.auth | default dict -}}
{{- if and (eq .component.role "edge") $auth.tokens (not $auth.tokens_file) (eq ($auth.mode | default "none") "tokens") -}}
{{- toYaml (dict "tokens" $auth.tokens) -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/*
The settings that need a restart, of (dict "config" <table> "component" <component>). A worker could reload its backend,
but image, variables and files often change with it, and a rollout shows whether the new server works.
*/}}
{{- define "shoal.takenAtStart" -}}
{{- $config := omit .config "quotas" "pools" -}}
{{- if and (eq .component.role "worker") (not .component.discovered) -}}
{{- $_ := set $config "pools" (dict .component.pool (dict "backend" (index .config.pools .component.pool).backend)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
