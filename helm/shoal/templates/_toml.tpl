{{/*
Writes TOML for the binary. Helm's own toToml writes all numbers of a values file with a decimal point (8080.0), which
TOML does not accept as integers. Strings are written as JSON, whose escapes TOML shares.
*/}}

{{/* A table and its subtables, of (dict "path" <its name> "table" <map>). */}}
{{- define "shoal.toml" -}}
{{- $path := .path -}}
{{- $tables := dict -}}
{{- $lines := list -}}
{{- range $key, $value := .table -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $tables $key $value -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $lines = append $lines (printf "%s = %s" (include "shoal.toml.key" $key) (include "shoal.toml.value" $value)) -}}
{{- end -}}
{{- end -}}
{{- if and $path (or $lines (not $tables)) }}

[{{ $path }}]
{{- end -}}
{{- range $lines }}
{{ . }}
{{- end -}}
{{- range $key, $table := $tables -}}
{{- $name := include "shoal.toml.key" $key -}}
{{- include "shoal.toml" (dict "path" (ternary (printf "%s.%s" $path $name) $name (ne $path "")) "table" $table) -}}
{{- end -}}
{{- end -}}

{{- define "shoal.toml.key" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end -}}

{{- define "shoal.toml.value" -}}
{{- if typeIs "json.Number" . -}}
{{- . -}}
{{- else if kindIs "string" . -}}
{{- toJson . -}}
{{- else if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . -}}
{{- $items = append $items (include "shoal.toml.value" .) -}}
{{- end -}}
[{{ join ", " $items }}]
{{- else if kindIs "map" . -}}
{{- $items := list -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $items = append $items (printf "%s = %s" (include "shoal.toml.key" $key) (include "shoal.toml.value" $value)) -}}
{{- end -}}
{{- end -}}
{ {{ join ", " $items }} }
{{- else if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ printf "%d" (int64 .) }}{{ else }}{{ printf "%v" . }}{{ end -}}
{{- else -}}
{{- printf "%v" . -}}
{{- end -}}
{{- end -}}
