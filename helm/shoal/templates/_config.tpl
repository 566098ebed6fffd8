{{/*
The configuration file of one component, as TOML, of (dict "root" $ "name" <name> "component" <component>). With
"restart" true: only settings that need a restart; pods are replaced when they change.
*/}}
{{- define "shoal.config" -}}
{{- $values := .root.Values -}}
{{- $role := .component.role -}}
{{- $config := include "shoal.configOfRole" . | fromYaml -}}
{{- $node := dict "roles" (list $role) -}}
{{- $server := dict "admin" (printf "%s:8081" $values.bindAddress) -}}
{{- $cluster := dict -}}
{{- $pools := dict -}}
{{- if eq $role "worker" -}}
{{- $_ := set $cluster "join" (list (include "shoal.join" .root)) -}}
{{- $_ := set $cluster "presence_port" 7001 -}}
{{- if not .component.discovered -}}
{{- $backend := deepCopy .component.backend -}}
{{- if and .component.env (kindIs "map" $backend) -}}
{{- /* The pod's environment has the values; the server gets them by name. */ -}}
{{- $inherited := concat ($backend.stdio.inherit | default list) (keys .component.env | sortAlpha) | uniq -}}
{{- $_ := set $backend.stdio "inherit" $inherited -}}
{{- end -}}
{{- $_ := set $pools .component.pool (merge (dict "backend" $backend) (.component.settings | default dict)) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $cluster "listen" (printf "%s:7000" $values.bindAddress) -}}
{{- /* A pool's workers announce its tools; this defines their names and how they are called. */ -}}
{{- range $name, $component := include "shoal.components" .root | fromYaml -}}
{{- if and (eq $component.role "worker") (not $component.discovered) -}}
{{- $_ := set $pools $component.pool (include "shoal.poolElsewhere" $component | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- if $values.stateKeys.secret.name -}}
{{- $keys := list -}}
{{- range $values.stateKeys.secret.keys -}}
{{- $keys = append $keys (dict "file" (printf "/run/secrets/shoal/state-keys/%s" .)) -}}
{{- end -}}
{{- $_ := set $config "state_keys" (dict "keys" $keys) -}}
{{- end -}}
{{- if $values.adminToken.secret.name -}}
{{- $_ := set $server "admin_token" (dict "file" "/run/secrets/shoal/admin-token/token") -}}
{{- end -}}
{{- with include "shoal.redisSettings" .root | fromYaml -}}
{{- $_ := set $config "redis" (merge . ($config.redis | default dict)) -}}
{{- end -}}
{{- end -}}
{{- if $values.adminTls.secret.name -}}
{{- $_ := set $server "admin_tls" (dict "certificate" "/run/tls-admin/tls.crt" "key" "/run/tls-admin/tls.key") -}}
{{- end -}}
{{- if eq $role "edge" -}}
{{- $_ := set $server "listen" (printf "%s:8080" $values.bindAddress) -}}
{{- with ($config.server | default dict).allowed_hosts -}}
{{- /* Clients inside the cluster, including `helm test`, use the Service's names. */ -}}
{{- $service := printf "%s-edge" (include "shoal.fullname" $.root) -}}
{{- $inside := printf "%s.%s" $service $.root.Release.Namespace -}}
{{- $names := list $service $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside) -}}
{{- $_ := set $server "allowed_hosts" (concat . $names | uniq) -}}
{{- end -}}
{{- end -}}
{{- if $values.tls.enabled -}}
{{- $_ := set $cluster "tls" (dict
    "certificate" "/run/tls/tls.crt" "key" "/run/tls/tls.key" "authority" "/run/tls/ca.crt"
    "name" (include "shoal.tlsName" .root)) -}}
{{- if $values.tls.allowPlaintext -}}
{{- $_ := set $cluster.tls "allow_plaintext" true -}}
{{- end -}}
{{- else if ne $role "worker" -}}
{{- /* Without TLS, only the network policy protects the processes (docs/tls.md). */ -}}
{{- $_ := set $cluster "insecure" true -}}
{{- end -}}
{{- if and $values.controller.enabled (or (ne $role "worker") .component.discovered) -}}
{{- $_ := set $config "discovery" (dict "file" "/run/shoal/discovered/pools.toml") -}}
{{- end -}}
{{- $ours := dict "node" $node "server" $server "cluster" $cluster "pools" $pools -}}
{{- $all := mergeOverwrite $config $ours -}}
{{- if and .restart ($all.reload | default dict).watch -}}
{{- $all = include "shoal.takenAtStart" (dict "config" $all "component" .component) | fromYaml -}}
{{- end -}}
# {{ .name }}: what the chart renders from config{{ if .component.discovered }}, controller.worker{{ else if eq $role "worker" }}, pools.{{ .component.pool }}{{ else }}, pools, {{ $role }}.config{{ end }} and its own values.
{{- include "shoal.toml" (dict "path" "" "table" $all) }}
{{ end -}}

{{/*
A pool in the configuration of edges and session nodes, which do not run it. Settings that only workers read are left
out, so that their changes need no new pods here. The table must have a backend, which is not started.
*/}}
{{- define "shoal.poolElsewhere" -}}
{{- $settings := omit (.settings | default dict) "concurrency" "queue" "queue_age" "cancel_grace" "call_memory" "remembered_calls"
    "result_retention" "retained_results" "retained_bytes" -}}
{{- merge (dict "backend" "demo") $settings | toYaml -}}
{{- end -}}
