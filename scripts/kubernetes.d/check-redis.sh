# shellcheck shell=bash
# Redis as operators run it: with client certificates, and with sentinels that have their own user.

OF_SERVERS=of-the-servers
OF_SENTINELS=of-the-sentinels
# The rights in docs/redis.md.
RIGHTS="~shoal:* &shoal:* -@all +@hash +@list +@scripting -script +get +set +exists +unlink +pexpire +pttl +time +publish +subscribe +ping +hello +select"

# server NAME COMMAND [MOUNT]: a Deployment of one pod with a headless Service; COMMAND is for the shell
server() {
    cat <<YAML
---
apiVersion: v1
kind: Service
metadata: {name: $1}
spec: {clusterIP: None, selector: {app: $1}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: redis
          image: $REDIS_IMAGE
          command: [/bin/sh, -c]
          args:
            - |
$(sed 's/^/              /' <<<"$2")
          readinessProbe: {tcpSocket: {port: $3}, periodSeconds: 1}
          securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: data, mountPath: /data}, {name: tls, mountPath: /tls, readOnly: true}]
      volumes: [{name: data, emptyDir: {}}, {name: tls, secret: {secretName: tls}}]
YAML
}

# redis_with OPTION…: the command of a server with one user for Shoal, and another for sentinels and replicas
redis_with() {
    local users="--user default off --user shoal on '>$OF_SERVERS' ${RIGHTS//[~&]/\\&} --user replica on '>$OF_SERVERS' '~*' '&*' +@all"
    echo "exec redis-server --dir /data --save '' --maxmemory-policy noeviction --protected-mode no $users $*"
}

stores() {
    local tls="--port 0 --tls-port 6379 --tls-cert-file /tls/tls.crt --tls-key-file /tls/tls.key --tls-ca-cert-file /tls/ca.crt --tls-auth-clients yes"
    local replica="--masteruser replica --masterauth $OF_SERVERS"
    server redis "$(redis_with "$tls")" 6379
    server first "$(redis_with "$replica")" 6379
    server second "$(redis_with "$replica" --replicaof first.stores.svc 6379)" 6379
    server sentinel "printf '%s\n' 'sentinel resolve-hostnames yes' 'sentinel monitor main first.stores.svc 6379 1' \\
  'sentinel auth-user main replica' 'sentinel auth-pass main $OF_SERVERS' 'sentinel down-after-milliseconds main 5000' \\
  'user default off' 'user watcher on >$OF_SENTINELS ~* &* +@all' 'protected-mode no' >/data/sentinel.conf
exec redis-server /data/sentinel.conf --sentinel" 26379
}

start_stores() {
    certificate redis /CN=redis "DNS:redis.stores.svc"
    n create secret generic tls --from-file="tls.crt=$KEYS/redis.crt" --from-file="tls.key=$KEYS/redis.key" \
        --from-file="ca.crt=$KEYS/ca.crt" && stores >"$WORK/stores.yaml" && n apply -f "$WORK/stores.yaml" || return 1
    # A sentinel resolves its first server only once.
    n rollout status deployment/first --timeout 50s && n rollout restart deployment/second deployment/sentinel && rolled_out
}

# store_values YAML: values of a release with an external Redis
store_values() { bundled | sed '/^redis:/d' && cat; }

check_redis() { with_place stores with_stores; }

with_stores() {
    must stores start_stores || return 1
    certificate shoal /CN=shoal
    with_place redis-certificates with_certificates
    with_place redis-sentinel with_sentinel
}

# cli POD_SELECTOR OPTION…: redis-cli in a pod of the stores
cli() {
    local address
    address=$(pod_at stores "$1")
    in_net node1 timeout 10 redis-cli -h "${address#* }" --no-auth-warning "${@:2}"
}

# store_secret: Shoal's certificate for Redis
store_secret() {
    n create secret generic shoal-redis --from-literal="password=$OF_SERVERS" --from-literal="sentinel=$OF_SENTINELS" \
        --from-file="tls.crt=$KEYS/shoal.crt" --from-file="tls.key=$KEYS/shoal.key" --from-file="ca.crt=$KEYS/ca.crt"
}

# installed_with_store NAME: whether the release with store.yaml becomes ready and answers
installed_with_store() {
    must "$1-secret" store_secret && must "$1-install" h install "$RELEASE" "$CHART" -f "$WORK/store.yaml" --wait --timeout 180s &&
        must "$1-call" answers
}

# connections CLI_ARGUMENT…: a server's number of connections of Shoal's user
connections() { cli "$@" --user replica --pass "$OF_SERVERS" client list | grep -c 'user=shoal'; }

with_certificates() {
    local name="Redis with client certificates" theirs=(--tls --cacert "$KEYS/ca.crt")
    store_values >"$WORK/store.yaml" <<YAML
redis:
  url: rediss://redis.stores.svc:6379
  user: shoal
  passwordSecret: {name: shoal-redis}
  tls: {secret: {name: shoal-redis, certificateKey: tls.crt, keyKey: tls.key}}
YAML
    installed_with_store redis-certificates || return 1
    if [[ $(cli app=redis "${theirs[@]}" --user shoal --pass "$OF_SERVERS" ping 2>&1) == PONG ]]; then
        fail "$name" "Redis takes connections without a certificate"
        return 1
    fi
    pass "$name" "$(connections app=redis "${theirs[@]}" --cert "$KEYS/shoal.crt" --key "$KEYS/shoal.key") connections of the user shoal; none is taken without a certificate"
}

# primary: the address that the sentinel reports
primary() { cli app=sentinel -p 26379 --user watcher --pass "$OF_SENTINELS" sentinel get-master-addr-by-name main | head -n 1; }

fail_over() { cli app=sentinel -p 26379 --user watcher --pass "$OF_SENTINELS" sentinel failover main | grep -x OK; }

# failed_over ADDRESS: whether the sentinel reports another server, which has Shoal's connections
failed_over() { [[ $(primary) != "$1" && $(primary) ]] && [[ $(connections app=second) -gt 0 ]]; }

with_sentinel() {
    local name="Sentinel with a user of its own" before
    store_values >"$WORK/store.yaml" <<YAML
redis:
  url: redis+sentinel://sentinel.stores.svc:26379/main
  user: shoal
  passwordSecret: {name: shoal-redis}
  sentinel: {user: watcher, passwordSecret: {name: shoal-redis, key: sentinel}}
YAML
    installed_with_store redis-sentinel || return 1
    before=$(primary)
    wait_for 30 "$name: replica" fail_over || return 1
    wait_for 60 "$name: failover" failed_over "$before" || return 1
    wait_for 60 "$name: calls after the failover" answers || return 1
    pass "$name" "ready, and calls pass after a failover from $before to $(primary)"
}
