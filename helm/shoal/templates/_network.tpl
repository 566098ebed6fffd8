{{/* The port of the collector that the component's configuration names; empty without one. */}}
{{- define "shoal.collectorPort" -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .component.config) -}}
{{- $telemetry := $config.telemetry | default dict -}}
{{- with $telemetry.endpoint -}}
{{- $url := urlParse . -}}
{{- with regexFind ":[0-9]+$" $url.host -}}
{{- trimPrefix ":" . -}}
{{- else -}}
{{- ternary "443" "80" (eq $url.scheme "https") -}}
{{- end -}}
{{- end -}}
{{- end -}}
