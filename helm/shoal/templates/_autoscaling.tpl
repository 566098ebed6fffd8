{{/* The metrics for a component's scaling: CPU, and one of its role. Foreign workers have none that Shoal knows. */}}

{{- define "shoal.scalesBy" -}}
{{- if gt (int .autoscaling.cpu) 0 }}cpu {{ end -}}
{{- if and (eq .role "edge") (gt (int .autoscaling.streams) 0) }}streams {{ end -}}
{{- if and (eq .role "session") (gt (int .autoscaling.sessions) 0) }}sessions {{ end -}}
{{- if and (eq .role "worker") (not .foreignWorker) (gt (int .autoscaling.queued) 0) }}queued {{ end -}}
{{- end -}}

{{/* Whether a pool may have no pods while it has no calls. */}}
{{- define "shoal.scalesToZero" -}}
{{- if and (eq .role "worker") (hasKey (.settings | default dict) "scale_to_zero") }}true{{ end -}}
{{- end -}}

{{- define "shoal.horizontalPodAutoscaler" -}}
{{- $scale := .component.autoscaling -}}
{{- $by := include "shoal.scalesBy" .component -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "shoal.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "shoal.fullname" .root }}-{{ .name }}
  minReplicas: {{ int $scale.minReplicas }}
  maxReplicas: {{ int $scale.maxReplicas }}
  metrics:
    {{- if contains "cpu" $by }}
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ int $scale.cpu }}}
    {{- end }}
    {{- if contains "streams" $by }}
    - type: Pods
      pods:
        metric: {name: shoal_stream_open}
        target: {type: AverageValue, averageValue: {{ int $scale.streams | quote }}}
    {{- end }}
    {{- if contains "sessions" $by }}
    - type: Pods
      pods:
        metric: {name: shoal_session_held}
        target: {type: AverageValue, averageValue: {{ int $scale.sessions | quote }}}
    {{- end }}
    {{- if contains "queued" $by }}
    - type: Pods
      pods:
        metric: {name: shoal_pool_queued}
        target: {type: AverageValue, averageValue: {{ int $scale.queued | quote }}}
    {{- end }}
    {{- with $scale.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $scale.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "shoal.scaledObject" -}}
{{- $scale := .component.autoscaling -}}
{{- $by := include "shoal.scalesBy" .component -}}
{{- $pods := printf "namespace=%q,pod=~%q" .root.Release.Namespace (printf "%s-%s-.*" (include "shoal.fullname" .root) .name) -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "shoal.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    name: {{ include "shoal.fullname" .root }}-{{ .name }}
  minReplicaCount: {{ int $scale.minReplicas }}
  maxReplicaCount: {{ int $scale.maxReplicas }}
  {{- if eq (int $scale.minReplicas) 0 }}
  # A first call waits for this poll, and for the pod.
  pollingInterval: {{ int $scale.keda.pollingInterval }}
  cooldownPeriod: {{ int $scale.keda.cooldownPeriod }}
  # Nodes learn the pool's offers from a worker.
  initialCooldownPeriod: {{ int $scale.keda.cooldownPeriod }}
  {{- end }}
  {{- with $scale.behavior }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- toYaml . | nindent 8 }}
  {{- end }}
  triggers:
    {{- if eq (int $scale.minReplicas) 0 }}
    {{- $nodes := printf "namespace=%q,pod=~%q,shoal_pool=%q" .root.Release.Namespace (printf "%s-(edge|session)-.*" (include "shoal.fullname" .root)) .component.pool }}
    {{- include "shoal.prometheusTrigger" (dict "scale" $scale "target" $scale.calls "query" (printf "sum(shoal_pool_awaiting{%s}) + sum(shoal_pool_in_flight{%s})" $nodes $nodes)) | nindent 4 }}
    {{- end }}
    {{- if contains "cpu" $by }}
    - type: cpu
      metricType: Utilization
      metadata: {value: {{ int $scale.cpu | quote }}}
    {{- end }}
    {{- if contains "streams" $by }}
    {{- include "shoal.prometheusTrigger" (dict "scale" $scale "target" $scale.streams "query" (printf "sum(shoal_stream_open{%s})" $pods)) | nindent 4 }}
    {{- end }}
    {{- if contains "sessions" $by }}
    {{- include "shoal.prometheusTrigger" (dict "scale" $scale "target" $scale.sessions "query" (printf "sum(shoal_session_held{%s})" $pods)) | nindent 4 }}
    {{- end }}
    {{- if contains "queued" $by }}
    {{- include "shoal.prometheusTrigger" (dict "scale" $scale "target" $scale.queued "query" (ternary (printf "sum(shoal_pool_queued{%s})" $pods) (printf "sum(shoal_pool_queued{%s,shoal_pool=%q})" $pods .component.pool) (.component.discovered | default false))) | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "shoal.prometheusTrigger" -}}
- type: prometheus
  metricType: AverageValue
  metadata:
    serverAddress: {{ .scale.keda.prometheusAddress | quote }}
    query: {{ .query | squote }}
    threshold: {{ int .target | quote }}
  {{- with .scale.keda.authentication }}
  authenticationRef: {name: {{ . | quote }}}
  {{- end }}
{{- end -}}
