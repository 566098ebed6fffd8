{{/* Lists and maps that the chart and the user fill together. Server-side apply refuses duplicate names. */}}

{{/*
Merges lists: the last item with a name takes the position of the first, of (dict "key" <the name's key> "lists" (list
…)).
*/}}
{{- define "shoal.byKey" -}}
{{- $order := list -}}
{{- $found := dict -}}
{{- range $items := .lists -}}
{{- range $item := $items -}}
{{- $id := index $item $.key -}}
{{- if not (hasKey $found $id) }}{{ $order = append $order $id }}{{ end -}}
{{- $_ := set $found $id $item -}}
{{- end -}}
{{- end -}}
{{- $all := list -}}
{{- range $order }}{{ $all = append $all (index $found .) }}{{ end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Merges maps; later ones win, of (list <map> …). */}}
{{- define "shoal.merged" -}}
{{- $all := dict -}}
{{- range . }}{{ $all = mergeOverwrite $all (deepCopy (. | default dict)) }}{{ end -}}
{{- toYaml $all -}}
{{- end -}}
