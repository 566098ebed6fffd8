{{/*
All Deployments of Shoal as one map: name of the component -> its values merged with the defaults, with "role", and
"pool" for workers. Read it with fromYaml.
*/}}
{{- define "shoal.components" -}}
{{- $all := dict -}}
{{- range $role := list "edge" "session" -}}
{{- $own := mergeOverwrite (deepCopy $.Values.defaults) (deepCopy (index $.Values $role)) -}}
{{- $_ := set $all $role (merge (dict "role" $role) $own) -}}
{{- end -}}
{{- range $pool, $values := .Values.pools -}}
{{- if $values -}}
{{- $name := printf "worker-%s" ($pool | replace "_" "-") -}}
{{- if hasKey $all $name -}}
{{- fail (printf "pools.%s: its Deployment would have the same name as another pool's, because the chart replaces _ by -. Rename one of the pools" $pool) -}}
{{- end -}}
{{- $own := mergeOverwrite (deepCopy $.Values.defaults) (deepCopy $.Values.poolDefaults) (deepCopy $values) -}}
{{- $_ := set $all $name (merge (dict "role" "worker" "pool" $pool) $own) -}}
{{- end -}}
{{- end -}}
{{- if .Values.controller.enabled -}}
{{- /* Workers of the pools that the controller finds. */ -}}
{{- $own := mergeOverwrite (deepCopy $.Values.defaults) (deepCopy $.Values.poolDefaults) (deepCopy (.Values.controller.worker | default dict)) -}}
{{- $_ := set $all "servers" (merge (dict "role" "worker" "pool" "*" "discovered" true) $own) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Whether the component's pods run the shoal binary. */}}
{{- define "shoal.runsShoal" -}}
{{- if not .foreignWorker }}true{{ end -}}
{{- end -}}

{{/* Whether the component's pods run a program that embeds Shoal. */}}
{{- define "shoal.ownProgram" -}}
{{- if eq (.backend | toString) "handler" }}true{{ end -}}
{{- end -}}

{{- define "shoal.serviceAccount" -}}
{{- if .component.serviceAccount.create -}}
{{- .component.serviceAccount.name | default (printf "%s-%s" (include "shoal.fullname" .root) .name) -}}
{{- else -}}
{{- .component.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}
