{{/* Names and labels. */}}

{{- define "shoal.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What the names of all objects begin with; short enough for what follows it. */}}
{{- define "shoal.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "shoal.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "shoal.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The headless Service at which workers find edges and session nodes. */}}
{{- define "shoal.nodes" -}}
{{- include "shoal.fullname" . }}-nodes
{{- end -}}

{{- define "shoal.join" -}}
{{- include "shoal.nodes" . }}.{{ .Release.Namespace }}.svc:7000
{{- end -}}

{{/* The labels that never change: of (dict "root" $ "name" <component>). */}}
{{- define "shoal.selector" -}}
app.kubernetes.io/name: {{ include "shoal.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{/* The labels of pods: nothing in them changes with a release of the chart, which would make new pods. */}}
{{- define "shoal.podLabels" -}}
{{ include "shoal.selector" . }}
app.kubernetes.io/part-of: shoal
{{- with .root.Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* All labels of an object: of (dict "root" $ "name" <component>). */}}
{{- define "shoal.labels" -}}
{{ include "shoal.podLabels" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end -}}

{{/* The metadata of an object: of (dict "root" $ "name" <component> "suffix" <end of its name>), with "annotations" and
     "labels" of its own. */}}
{{- define "shoal.metadata" -}}
name: {{ include "shoal.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "shoal.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.extraAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* repository, tag or digest of an image: of (dict "image" <image> "tag" <default tag>). */}}
{{- define "shoal.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .tag | toString) -}}
{{- end -}}
{{- end -}}
