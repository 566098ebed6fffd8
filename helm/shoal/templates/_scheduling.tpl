{{/* Common to all pods, of (dict "root" $ "settings" <values such as defaults>). */}}
{{- define "shoal.podBasics" -}}
{{- $values := .root.Values -}}
{{- $c := .settings -}}
# Variables that Kubernetes makes for Services (for example SHOAL_EDGE_PORT) look like settings.
enableServiceLinks: false
{{- $secrets := list -}}
{{- range concat (($values.global | default dict).imagePullSecrets | default list) $values.imagePullSecrets -}}
{{- $secrets = append $secrets (ternary (dict "name" .) . (kindIs "string" .)) -}}
{{- end }}
{{- with uniq $secrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $key := list "priorityClassName" "runtimeClassName" "schedulerName" "dnsPolicy" "dnsConfig" "hostAliases" "nodeSelector" "tolerations" }}
{{- with index $c $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
securityContext:
  {{- include "shoal.securityContext" (dict "root" .root "context" $c.podSecurityContext) | nindent 2 }}
{{- end -}}

{{/* A security context; without ids if the cluster assigns them. */}}
{{- define "shoal.securityContext" -}}
{{- $context := .context -}}
{{- if or .root.Values.openshift (.root.Values.global | default dict).openshift -}}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" "supplementalGroups" -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{/* The nodes on which a component's pods may run. */}}
{{- define "shoal.spread" -}}
{{- $c := .component }}
{{- $labels := include "shoal.selector" (dict "root" .root "name" .name) | fromYaml }}
{{- if $c.affinity }}
affinity:
  {{- toYaml $c.affinity | nindent 2 }}
{{- else if eq $c.antiAffinity "hard" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- toYaml $labels | nindent 12 }}
{{- else if eq $c.antiAffinity "soft" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- toYaml $labels | nindent 14 }}
{{- end }}
{{- if $c.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml $c.topologySpreadConstraints | nindent 2 }}
{{- else if $c.topologyKeys }}
topologySpreadConstraints:
  {{- range $c.topologyKeys }}
  - topologyKey: {{ . | quote }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- toYaml $labels | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}
