{{/* What processes take while they run, apart from what they take at their start. */}}

{{/*
config and that of the component, without what its role does not read, and without what is in files beside it: of (dict "root" $
"component" <component>).
*/}}
{{- define "shoal.configOfRole" -}}
{{- $role := .component.role -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .component.config) -}}
{{- if eq $role "worker" -}}
{{- $config = omit $config "auth" "policy" "quotas" "redis" "session" "tasks" -}}
{{- else -}}
{{- $_ := set $config "reload" (mergeOverwrite (dict "watch" true) ($config.reload | default dict)) -}}
{{- /* A pool takes no call before a node has read its settings, and the rules and quotas that are written with them. */ -}}
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
The rules that go into a file beside the configuration, which is read again: of the same. A file of the user's has its own. Without
rules the file says so: the first one must not need new pods.
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

{{/* The same of bearer tokens. */}}
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
What of a configuration counts only at the start of a process that watches it: of (dict "config" <table> "component" <component>).
A worker could change its backend while it runs. But its image, variables and files often change with it, and a rollout shows
whether the new server works.
*/}}
{{- define "shoal.takenAtStart" -}}
{{- $config := omit .config "quotas" "pools" -}}
{{- if and (eq .component.role "worker") (not .component.discovered) -}}
{{- $_ := set $config "pools" (dict .component.pool (dict "backend" (index .config.pools .component.pool).backend)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
