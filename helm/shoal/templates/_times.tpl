{{/* Durations, and a pod's grace period. */}}

{{/*
Milliseconds, rounded up, of a duration such as "1m 15s" or "500ms", of (dict "setting" <its name> "time" <text>).
*/}}
{{- define "shoal.millis" -}}
{{- $text := .time | toString | trim -}}
{{- if not (regexMatch "^(0|[0-9.]+\\s*[a-zA-Zµ]+(\\s*[0-9.]+\\s*[a-zA-Zµ]+)*)$" $text) -}}
{{- fail (printf "%s: %q is not a time: use values such as \"500ms\", \"30s\" or \"1m 15s\"" .setting $text) -}}
{{- end -}}
{{- $nanos := dict
    "ns" 1 "nsec" 1 "nanos" 1 "us" 1000 "usec" 1000 "µs" 1000 "ms" 1000000 "msec" 1000000 "millis" 1000000
    "s" 1000000000 "sec" 1000000000 "secs" 1000000000 "second" 1000000000 "seconds" 1000000000
    "m" 60000000000 "min" 60000000000 "mins" 60000000000 "minute" 60000000000 "minutes" 60000000000
    "h" 3600000000000 "hr" 3600000000000 "hrs" 3600000000000 "hour" 3600000000000 "hours" 3600000000000
    "d" 86400000000000 "day" 86400000000000 "days" 86400000000000
    "w" 604800000000000 "wk" 604800000000000 "wks" 604800000000000 "week" 604800000000000 "weeks" 604800000000000 -}}
{{- $sum := int64 0 -}}
{{- range regexFindAll "[0-9.]+\\s*[a-zA-Zµ]+" $text -1 -}}
{{- $unit := regexFind "[a-zA-Zµ]+" . -}}
{{- if not (hasKey $nanos $unit) -}}
{{- fail (printf "%s: %q is not a unit that the chart accepts: use ms, s, m, h, d or w" $.setting $unit) -}}
{{- end -}}
{{- $sum = add $sum (int64 (ceil (mulf (float64 (regexFind "[0-9.]+" .)) (index $nanos $unit)))) -}}
{{- end -}}
{{- div (add $sum 999999) 1000000 -}}
{{- end -}}

{{/*
Seconds until Kubernetes may kill a pod: all deadlines of [shutdown], as often as the role's shutdown can use each
(crates/node/src/shutdown.rs), 2 s for telemetry and exit, and a margin, of (dict "root" $ "component" <component>).
*/}}
{{- define "shoal.gracePeriod" -}}
{{- if not (kindIs "invalid" .component.terminationGracePeriodSeconds) -}}
{{- int64 .component.terminationGracePeriodSeconds -}}
{{- else -}}
{{- $defaults := dict "balancer_delay" "0s" "streams" "2s" "connections" "6s" "calls" "15s" "sessions" "4s" "workers" "5s" "telemetry" "2s" -}}
{{- $uses := dict
    "edge" (dict "balancer_delay" 1 "connections" 1 "calls" 1 "streams" 2 "sessions" 2 "telemetry" 1)
    "session" (dict "balancer_delay" 1 "calls" 1 "streams" 1 "sessions" 4 "telemetry" 1)
    "worker" (dict "balancer_delay" 1 "calls" 2 "streams" 1 "workers" 1 "telemetry" 1) -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (deepCopy .component.config) -}}
{{- $shutdown := mergeOverwrite $defaults ($config.shutdown | default dict) -}}
{{- $sum := int64 0 -}}
{{- range $step, $times := index $uses .component.role -}}
{{- $millis := include "shoal.millis" (dict "setting" (printf "config.shutdown.%s" $step) "time" (index $shutdown $step)) -}}
{{- $sum = add $sum (mul $times (int64 $millis)) -}}
{{- end -}}
{{- add (div (add $sum 999) 1000) 2 (int64 .component.graceMarginSeconds) -}}
{{- end -}}
{{- end -}}
