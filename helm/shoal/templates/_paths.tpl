{{/* The paths that clients use, as a YAML list. */}}
{{- define "shoal.paths" -}}
{{- $config := mergeOverwrite (deepCopy .Values.config) (deepCopy (.Values.defaults.config | default dict)) (deepCopy (.Values.edge.config | default dict)) -}}
{{- $server := $config.server | default dict -}}
- {{ $server.path | default "/mcp" | quote }}
{{- if ne (get $server "http_sse" | toString) "false" }}
- /sse
- /messages
{{- end }}
{{- $auth := $config.auth | default dict }}
{{- if eq ($auth.mode | default "none") "oauth" }}
{{- /* The metadata that names the authorization servers: after the server's path, and at the root. */}}
{{- $known := "/.well-known/oauth-protected-resource" }}
{{- $public := (urlParse ($auth.resource | default "")).path | trimSuffix "/" }}
{{- range uniq (list $known (print $known ($server.path | default "/mcp")) (print $known $public)) }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
