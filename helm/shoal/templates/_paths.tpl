{{/* The paths that clients use, as a YAML list. */}}
{{- define "shoal.paths" -}}
{{- $config := mergeOverwrite (deepCopy .Values.config) (deepCopy (.Values.edge.config | default dict)) -}}
{{- $server := $config.server | default dict -}}
- {{ $server.path | default "/mcp" | quote }}
{{- if ne (get $server "http_sse" | toString) "false" }}
- /sse
- /messages
{{- end }}
{{- end -}}
