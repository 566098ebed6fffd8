{{/* Shoal's credentials and trust for Redis: settings, files and checks. Only edges and session nodes use Redis. */}}

{{/* Whether the URL contains the password, which is then a variable of the pods, of the root. */}}
{{- define "shoal.redisPasswordInUrl" -}}
{{- if contains "$(REDIS_PASSWORD)" .Values.redis.url }}true{{ end -}}
{{- end -}}

{{/* The files: name of the volume -> its Secret, mount path, and key -> file, of the root. */}}
{{- define "shoal.redisFiles" -}}
{{- $redis := .Values.redis -}}
{{- $all := dict -}}
{{- if and $redis.passwordSecret.name (not (include "shoal.redisPasswordInUrl" .)) -}}
{{- $_ := set $all "redis-password" (dict "secret" $redis.passwordSecret.name "path" "/run/secrets/shoal/redis"
    "items" (list (dict "key" $redis.passwordSecret.key "path" "password"))) -}}
{{- end -}}
{{- if $redis.sentinel.passwordSecret.name -}}
{{- $_ := set $all "redis-sentinel-password" (dict "secret" $redis.sentinel.passwordSecret.name "path" "/run/secrets/shoal/redis-sentinel"
    "items" (list (dict "key" $redis.sentinel.passwordSecret.key "path" "password"))) -}}
{{- end -}}
{{- if $redis.tls.secret.name -}}
{{- $items := list -}}
{{- with $redis.tls.secret.authorityKey }}{{ $items = append $items (dict "key" . "path" "ca.crt") }}{{ end -}}
{{- with $redis.tls.secret.certificateKey }}{{ $items = append $items (dict "key" . "path" "tls.crt") }}{{ end -}}
{{- with $redis.tls.secret.keyKey }}{{ $items = append $items (dict "key" . "path" "tls.key") }}{{ end -}}
{{- $_ := set $all "tls-redis" (dict "secret" $redis.tls.secret.name "path" "/run/tls-redis" "items" $items) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* The table [redis] for these files, of the root. */}}
{{- define "shoal.redisSettings" -}}
{{- $redis := .Values.redis -}}
{{- $files := include "shoal.redisFiles" . | fromYaml -}}
{{- $table := dict -}}
{{- with $redis.user }}{{ $_ := set $table "user" . }}{{ end -}}
{{- with index $files "redis-password" }}{{ $_ := set $table "password" (dict "file" (printf "%s/password" .path)) }}{{ end -}}
{{- with index $files "tls-redis" -}}
{{- $tls := dict -}}
{{- $path := .path -}}
{{- $settings := dict "ca.crt" "authority" "tls.crt" "certificate" "tls.key" "key" -}}
{{- range .items }}{{ $_ := set $tls (index $settings .path) (printf "%s/%s" $path .path) }}{{ end -}}
{{- $_ := set $table "tls" $tls -}}
{{- end -}}
{{- $sentinel := dict -}}
{{- with $redis.sentinel.user }}{{ $_ := set $sentinel "user" . }}{{ end -}}
{{- with index $files "redis-sentinel-password" }}{{ $_ := set $sentinel "password" (dict "file" (printf "%s/password" .path)) }}{{ end -}}
{{- if not (kindIs "invalid" $redis.sentinel.tls) }}{{ $_ := set $sentinel "tls" $redis.sentinel.tls }}{{ end -}}
{{- if $sentinel }}{{ $_ := set $table "sentinel" $sentinel }}{{ end -}}
{{- toYaml $table -}}
{{- end -}}

{{/* Checks that values fit together, of the root. */}}
{{- define "shoal.redisChecks" -}}
{{- $redis := .Values.redis -}}
{{- $inUrl := include "shoal.redisPasswordInUrl" . -}}
{{- $tls := $redis.tls.secret -}}
{{- $sentinel := $redis.sentinel -}}
{{- $user := regexReplaceAll ":.*$" (regexFind "^[^/@]*@" (regexReplaceAll "^[^:]*://" $redis.url "")) "" | trimSuffix "@" -}}
{{- if and $inUrl (not $redis.passwordSecret.name) -}}
{{- fail "redis.url contains $(REDIS_PASSWORD): name the Secret with the password in redis.passwordSecret.name" -}}
{{- end -}}
{{- if $redis.bundled.enabled -}}
{{- if or $redis.user $redis.passwordSecret.name $tls.name $sentinel.user $sentinel.passwordSecret.name (not (kindIs "invalid" $sentinel.tls)) -}}
{{- fail "the bundled Redis has no passwords and no TLS: remove redis.user, redis.passwordSecret, redis.tls and redis.sentinel, or set redis.bundled.enabled=false and redis.url" -}}
{{- end -}}
{{- end -}}
{{- if and $redis.user $user -}}
{{- fail (printf "redis.url names the user %q, but redis.user is %q: leave redis.user out, or remove the part before @ from redis.url" $user $redis.user) -}}
{{- end -}}
{{- if and $redis.user $inUrl -}}
{{- fail "redis.url contains $(REDIS_PASSWORD), so the user must be in redis.url too: take :$(REDIS_PASSWORD)@ out of redis.url to log in with redis.user and redis.passwordSecret, or leave redis.user out and put the user into redis.url" -}}
{{- end -}}
{{- if and $redis.user (not $redis.passwordSecret.name) -}}
{{- fail "redis.user needs a password: name its Secret in redis.passwordSecret.name" -}}
{{- end -}}
{{- if $tls.name -}}
{{- if not (or $tls.authorityKey $tls.certificateKey) -}}
{{- fail "redis.tls.secret.name is set without a key: set redis.tls.secret.authorityKey, or certificateKey and keyKey" -}}
{{- end -}}
{{- if and $redis.url (not (hasPrefix "rediss" $redis.url)) (not (eq (toString $sentinel.tls) "true")) -}}
{{- fail (printf "redis.tls.secret.name is set, but redis.url does not use TLS: begin it with %s://" (regexFind "^[a-z+]*" $redis.url | replace "redis" "rediss")) -}}
{{- end -}}
{{- else if or $tls.certificateKey $tls.keyKey -}}
{{- fail "redis.tls.secret.certificateKey and keyKey are keys of a Secret: name it in redis.tls.secret.name" -}}
{{- end -}}
{{- if and $tls.certificateKey (not $tls.keyKey) }}{{ fail "redis.tls.secret.certificateKey needs the certificate's private key: set redis.tls.secret.keyKey, such as tls.key" }}{{ end -}}
{{- if and $tls.keyKey (not $tls.certificateKey) }}{{ fail "redis.tls.secret.keyKey needs the key's certificate: set redis.tls.secret.certificateKey, such as tls.crt" }}{{ end -}}
{{- if and $redis.url (not (contains "+sentinel" $redis.url)) -}}
{{- if or $sentinel.user $sentinel.passwordSecret.name (not (kindIs "invalid" $sentinel.tls)) -}}
{{- fail "redis.sentinel is set, but redis.url names no sentinels: set redis.url to redis+sentinel://HOST:26379/MASTER, or remove redis.sentinel" -}}
{{- end -}}
{{- end -}}
{{- if and $sentinel.user (not $sentinel.passwordSecret.name) -}}
{{- fail "redis.sentinel.user needs a password: name its Secret in redis.sentinel.passwordSecret.name" -}}
{{- end -}}
{{- end -}}
