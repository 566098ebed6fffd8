{{/* Lists and maps that the chart and the user fill together. Server-side apply refuses a name that comes twice. */}}

{{/* Lists as one, the last item of a name in the place of the first: of (dict "key" <what names an item> "lists" (list …)). */}}
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

{{/* Maps as one, later ones over earlier ones: of (list <map> …). */}}
{{- define "shoal.merged" -}}
{{- $all := dict -}}
{{- range . }}{{ $all = mergeOverwrite $all (deepCopy (. | default dict)) }}{{ end -}}
{{- toYaml $all -}}
{{- end -}}
