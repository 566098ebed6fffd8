{{/* Checks that involve several values. */}}
{{- define "shoal.checks" -}}
{{- $v := .Values -}}
{{- if not $v.image.repository -}}
{{- fail "image.repository is not set. Shoal's image is in no registry yet: build it with deploy/image, then push it to a registry and set image.repository=registry.example.com/shoal, or load it into the cluster (kind load image-archive target/shoal-image.tar) and set image.repository=shoal. The chart's README has the commands for other clusters: \"The image\"" -}}
{{- end -}}
{{- $stores := list -}}
{{- if $v.redis.url }}{{ $stores = append $stores "redis.url" }}{{ end -}}
{{- if $v.redis.urlSecret.name }}{{ $stores = append $stores "redis.urlSecret.name" }}{{ end -}}
{{- if $v.redis.bundled.enabled }}{{ $stores = append $stores "redis.bundled.enabled" }}{{ end -}}
{{- if not $stores -}}
{{- fail "edges and session nodes share a Redis: set redis.url or redis.urlSecret.name, or for a trial redis.bundled.enabled=true" -}}
{{- end -}}
{{- if gt (len $stores) 1 -}}
{{- fail (printf "%s are set, but there is one Redis: keep one of them" (join " and " $stores)) -}}
{{- end -}}
{{- include "shoal.redisChecks" . -}}
{{- $auth := mergeOverwrite (deepCopy ($v.config.auth | default dict)) (deepCopy (($v.edge.config | default dict).auth | default dict)) -}}
{{- if not (or $v.auth.tokensSecret.name (has ($auth.mode | default "none") (list "tokens" "oauth")) $auth.allow_anonymous) -}}
{{- fail "the values do not say how callers authenticate: name a Secret with bearer tokens in auth.tokensSecret.name, set config.auth.mode=oauth with its issuers, or set config.auth.allow_anonymous=true to let everyone who reaches the edges call every tool" -}}
{{- end -}}
{{- if eq ($auth.mode | default "none") "oauth" -}}
{{- if not $auth.resource }}{{ fail "config.auth.mode is \"oauth\": set config.auth.resource to the URL that clients use, such as https://mcp.example.com/mcp" }}{{ end -}}
{{- if not $auth.issuers }}{{ fail "config.auth.mode is \"oauth\": name the authorization servers in config.auth.issuers, such as [{issuer: https://login.example.com}]" }}{{ end -}}
{{- end -}}
{{- if and (eq ($auth.mode | default "none") "tokens") (not (or $auth.tokens $auth.tokens_file $v.auth.tokensSecret.name)) -}}
{{- fail "config.auth.mode is \"tokens\": name a Secret with bearer tokens in auth.tokensSecret.name, or set config.auth.tokens or config.auth.tokens_file" -}}
{{- end -}}
{{- if and (or $auth.tokens $auth.tokens_file) $v.auth.tokensSecret.name -}}
{{- fail (printf "bearer tokens are given twice: in config.auth.%s and in auth.tokensSecret.name. Keep one of them" (ternary "tokens" "tokens_file" (not (empty $auth.tokens)))) -}}
{{- end -}}
{{- if and (eq ($auth.mode | default "tokens") "none") $v.auth.tokensSecret.name -}}
{{- fail "auth.tokensSecret.name is set, but config.auth.mode is \"none\": remove one of them" -}}
{{- end -}}
{{- if and $v.tls.enabled (not (or $v.tls.secret.name $v.tls.certManager.enabled $v.tls.job.enabled)) -}}
{{- fail "TLS between processes needs certificates: name a Secret in tls.secret.name, or set tls.certManager.enabled=true or tls.job.enabled=true. To turn TLS off, set tls.enabled=false" -}}
{{- end -}}
{{- if and $v.tls.enabled $v.tls.certManager.enabled $v.tls.secret.name -}}
{{- fail "the certificates between processes are given twice: by tls.secret.name and by tls.certManager.enabled. Keep one of them" -}}
{{- end -}}
{{- if and $v.tls.enabled (not $v.tls.allowPlaintext) -}}
{{- /* Old pods without TLS and new pods would refuse one another. */ -}}
{{- $before := lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-edge" (include "shoal.fullname" .)) | default dict -}}
{{- if and $before.data (not (contains "[cluster.tls]" (index $before.data "shoal.toml"))) -}}
{{- fail "this release runs without TLS between its processes: upgrade once with tls.allowPlaintext=true, then without it, or set tls.enabled=false" -}}
{{- end -}}
{{- end -}}
{{- if and $v.adminTls.secret.name $v.monitoring.podMonitor.enabled (not $v.adminTls.serverName) -}}
{{- fail "Prometheus scrapes pods by address, so it needs a name to check their certificate: set adminTls.serverName to a DNS name in the certificate of adminTls.secret.name" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.redis.urlSecret.name (not $v.networkPolicy.redis.ports) -}}
{{- fail "the chart cannot read the port of Redis from the Secret in redis.urlSecret.name: set networkPolicy.redis.ports for the NetworkPolicy, such as [6379]" -}}
{{- end -}}
{{- $outbound := mergeOverwrite (deepCopy ($v.config.outbound | default dict)) (deepCopy (($v.edge.config | default dict).outbound | default dict)) -}}
{{- if and $v.networkPolicy.enabled $outbound.proxy_from_environment (not $v.networkPolicy.nodesEgress) -}}
{{- $named := false -}}
{{- range concat ($v.defaults.extraEnv | default list) ($v.edge.extraEnv | default list) -}}
{{- if and (has (upper .name) (list "HTTP_PROXY" "HTTPS_PROXY")) .value }}{{ $named = true }}{{ end -}}
{{- end -}}
{{- if not $named -}}
{{- fail "config.outbound.proxy_from_environment is true, but extraEnv has no HTTP_PROXY or HTTPS_PROXY with a value, so the NetworkPolicy cannot allow the proxy. Set defaults.extraEnv, or networkPolicy.nodesEgress and networkPolicy.workersEgress" -}}
{{- end -}}
{{- end -}}
{{- range $pool, $values := $v.pools -}}
{{- if $values -}}
{{- with $values.image -}}
{{- if not (or .tag .digest) }}{{ fail (printf "pools.%s.image needs a tag or a digest" $pool) }}{{ end -}}
{{- end -}}
{{- range $name, $_ := $values.env -}}
{{- if hasPrefix "SHOAL_" $name }}{{ fail (printf "pools.%s.env.%s: env is for the tools. Configure Shoal with config and settings" $pool $name) }}{{ end -}}
{{- end -}}
{{- if $values.foreignWorker -}}
{{- if $values.backend }}{{ fail (printf "pools.%s: a foreign worker brings its own tools. Leave backend out" $pool) }}{{ end -}}
{{- if not ($values.image | default dict).repository }}{{ fail (printf "pools.%s: a foreign worker needs its own image: set pools.%s.image.repository" $pool $pool) }}{{ end -}}
{{- else -}}
{{- if not $values.backend }}{{ fail (printf "pools.%s: set backend to \"demo\", {http: {url: …}}, {openapi: {document: …}}, {stdio: {command: …}} or \"handler\", or foreignWorker: true for an image that speaks Shoal's gRPC contract itself" $pool) }}{{ end -}}
{{- include "shoal.backendCheck" (dict "pool" $pool "backend" $values.backend) -}}
{{- if and (kindIs "map" $values.backend) (hasKey $values.backend "stdio") (not ($values.image | default dict).repository) }}{{ fail (printf "pools.%s: Shoal's image contains only Shoal: set pools.%s.image.repository to an image that has the command" $pool $pool) }}{{ end -}}
{{- if eq (include "shoal.ownProgram" $values) "true" -}}
{{- if not ($values.image | default dict).repository }}{{ fail (printf "pools.%s: the backend \"handler\" is a server that you have built into a program: set pools.%s.image.repository to the image of this program" $pool $pool) }}{{ end -}}
{{- else -}}
{{- if and $values.env (not (and (kindIs "map" $values.backend) $values.backend.stdio)) }}{{ fail (printf "pools.%s.env: only stdio servers, the backend \"handler\" and foreign workers get variables. Leave env out" $pool) }}{{ end -}}
{{- if or $values.command $values.args }}{{ fail (printf "pools.%s: command and args are for the backend \"handler\" and for foreignWorker. For a stdio server, set backend.stdio.command and backend.stdio.args" $pool) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.controller.enabled (not $v.controller.namespaces) -}}
{{- fail "controller.enabled needs namespaces: set controller.namespaces, such as [team-a], or [\"*\"] for all namespaces" -}}
{{- end -}}
{{- if and (has "*" $v.controller.namespaces) (gt (len $v.controller.namespaces) 1) -}}
{{- fail "controller.namespaces: remove the other namespaces, because \"*\" means all" -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}
{{- fail "ingress.enabled needs host names: set ingress.hosts" -}}
{{- end -}}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled needs the Gateway to attach to: set httpRoute.parentRefs" -}}
{{- end -}}
{{- end -}}

{{/* Checks each kind of backend. */}}
{{- define "shoal.backendCheck" -}}
{{- $where := printf "pools.%s.backend" .pool -}}
{{- if kindIs "map" .backend -}}
{{- if ne (len .backend) 1 }}{{ fail (printf "%s: a pool has one backend, not %d: keep stdio, http or openapi" $where (len .backend)) }}{{ end -}}
{{- with .backend.http }}{{ if not (or .url .urls) }}{{ fail (printf "%s.http: set url or urls" $where) }}{{ end }}{{ end -}}
{{- with .backend.openapi }}{{ if not .document }}{{ fail (printf "%s.openapi: set document to a URL, or to a file that you mount with extraVolumes" $where) }}{{ end }}{{ end -}}
{{- with .backend.stdio }}{{ if not .command }}{{ fail (printf "%s.stdio: set command" $where) }}{{ end }}{{ end -}}
{{- range $kind, $settings := .backend }}{{ if not $settings }}{{ fail (printf "%s.%s has no settings: set url or urls for http, document for openapi, command for stdio" $where $kind) }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
