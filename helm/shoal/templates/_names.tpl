{{/* Names and labels. */}}

{{- define "shoal.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The prefix of all objects' names: a DNS label, short enough for suffixes. A release may be called "mcp.prod". */}}
{{- define "shoal.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $name = ternary .Release.Name (printf "%s-%s" .Release.Name (include "shoal.name" .)) (contains (include "shoal.name" .) .Release.Name) -}}
{{- end -}}
{{- regexReplaceAll "[^a-z0-9-]" (lower $name) "-" | trunc 40 | trimAll "-" -}}
{{- end -}}

{{/* The headless Service through which workers find edges and session nodes. */}}
{{- define "shoal.nodes" -}}
{{- include "shoal.fullname" . }}-nodes
{{- end -}}

{{- define "shoal.join" -}}
{{- include "shoal.nodes" . }}.{{ .Release.Namespace }}.svc:7000
{{- end -}}

{{/* The labels that never change, of (dict "root" $ "name" <component>). */}}
{{- define "shoal.selector" -}}
app.kubernetes.io/name: {{ include "shoal.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .name | quote }}
{{- end -}}

{{/* The labels of all pods with Shoal or a worker, and of those whose role others can join. */}}
{{- define "shoal.processes" -}}
{{ include "shoal.release" . }}
shoal.dev/process: "true"
{{- end -}}

{{- define "shoal.nodeLabels" -}}
{{ include "shoal.release" . }}
shoal.dev/node: "true"
{{- end -}}

{{- define "shoal.release" -}}
app.kubernetes.io/name: {{ include "shoal.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/*
The labels in selectors, which other labels must not replace, of (dict "root" $ "name" <component>), with "component"
for Shoal's components.
*/}}
{{- define "shoal.ownLabels" -}}
{{ include "shoal.selector" . }}
{{- if .component }}
shoal.dev/process: "true"
{{- if not (has .component.role (list "worker" "controller")) }}
shoal.dev/node: "true"
{{- end }}
{{- end }}
{{- end -}}

{{/*
The labels of pods. None changes with the chart's release, because a change would replace pods. With "podLabels".
*/}}
{{- define "shoal.podLabels" -}}
{{- $c := .component | default dict -}}
{{- $theirs := include "shoal.merged" (list .root.Values.extraLabels $c.podLabels .podLabels) | fromYaml -}}
{{- include "shoal.labelled" (dict "ours" (dict "app.kubernetes.io/part-of" "shoal") "theirs" $theirs "fixed" (include "shoal.ownLabels" . | fromYaml)) -}}
{{- end -}}

{{/* All labels of an object, of (dict "root" $ "name" <component>), with "component" and "labels". */}}
{{- define "shoal.labels" -}}
{{- $c := .component | default dict -}}
{{- $ours := dict
    "app.kubernetes.io/part-of" "shoal"
    "app.kubernetes.io/version" (.root.Values.image.tag | default .root.Chart.AppVersion | toString | trunc 63)
    "app.kubernetes.io/managed-by" .root.Release.Service
    "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63) -}}
{{- $theirs := include "shoal.merged" (list .root.Values.extraLabels $c.labels .labels) | fromYaml -}}
{{- include "shoal.labelled" (dict "ours" $ours "theirs" $theirs "fixed" (include "shoal.selector" . | fromYaml)) -}}
{{- end -}}

{{- define "shoal.labelled" -}}
{{- range $key, $value := .fixed -}}
{{- if and (hasKey $.theirs $key) (ne (index $.theirs $key) $value) -}}
{{- fail (printf "the chart's selectors use the label %s with the value %q, so it cannot be %q: remove it from extraLabels, labels and podLabels" $key $value (index $.theirs $key)) -}}
{{- end -}}
{{- end -}}
{{- include "shoal.merged" (list .ours .theirs .fixed) -}}
{{- end -}}

{{/*
The metadata of an object, of (dict "root" $ "name" <component> "suffix" <end of its name>), with "component",
"fullname" instead of the name, "namespace" for another namespace, "ofCluster" without one, "annotations" and "labels".
*/}}
{{- define "shoal.metadata" -}}
{{- $c := .component | default dict -}}
name: {{ .fullname | default (printf "%s%s" (include "shoal.fullname" .root) (ternary (printf "-%s" .suffix) "" (not (empty .suffix)))) | quote }}
{{- if not .ofCluster }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
{{- end }}
labels:
  {{- include "shoal.labels" . | nindent 2 }}
{{- $annotations := include "shoal.merged" (list .root.Values.extraAnnotations $c.annotations .annotations) | fromYaml }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Repository, tag or digest of an image, of (dict "root" $ "image" <image> "tag" <default tag>). */}}
{{- define "shoal.image" -}}
{{- $repository := .image.repository -}}
{{- with (.root.Values.global | default dict).imageRegistry -}}
{{- /* Replaces the registry in the name, if there is one. */ -}}
{{- $parts := splitList "/" $repository -}}
{{- $first := first $parts -}}
{{- if and (gt (len $parts) 1) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- $parts = rest $parts -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (join "/" $parts) -}}
{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.image.tag | default .tag | toString) -}}
{{- end -}}
{{- end -}}
