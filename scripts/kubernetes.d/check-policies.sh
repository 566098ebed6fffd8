# shellcheck shell=bash
# Tests which connections between pods the chart's NetworkPolicies allow and block.

# process_of UID: a process of the pod, found by its cgroup
process_of() {
    local place
    place=$(grep -ls "pod$1" /proc/[0-9]*/cgroup | head -n 1)
    [[ $place =~ ^/proc/([0-9]+)/ ]] && echo "${BASH_REMATCH[1]}"
}

# pod_at NAMESPACE SELECTOR: uid and address of a pod
pod_at() { k --namespace "$1" get pods --selector "$2" -o 'jsonpath={.items[0].metadata.uid} {.items[0].status.podIP}'; }

# reaches PROCESS ADDRESS PORT: whether it can connect
reaches() {
    nsenter --net="/proc/$1/ns/net" timeout 3 bash -c "exec 3<>/dev/tcp/$2/$3" 2>/dev/null
}

# way NAME open|shut FROM TO PORT: FROM and TO are outputs of pod_at
way() {
    local process seen=shut
    process=$(process_of "${3% *}") || { fail "policies: $1" "no process of the pod is here" && return 1; }
    ! reaches "$process" "${4#* }" "$5" || seen=open
    [[ $seen == "$2" ]] || { fail "policies: $1" "the way is $seen" && return 1; }
    WAYS+=("$2")
}

WAYS=()

# check_policies: in the release with OAuth, beside its issuer
check_policies() {
    local name="policies" component edge session worker redis issuer failed=$FAILED
    local ours=app.kubernetes.io/component
    WAYS=()
    edge=$(pod_at "$NAMESPACE" $ours=edge) session=$(pod_at "$NAMESPACE" $ours=session)
    worker=$(pod_at "$NAMESPACE" $ours=worker-demo) redis=$(pod_at "$NAMESPACE" $ours=redis)
    issuer=$(pod_at identity app=issuer)
    way "edge to issuer" open "$edge" "$issuer" 8443
    way "edge to Redis" open "$edge" "$redis" 6379
    way "edge to session node" open "$edge" "$session" 7000
    way "worker to edge" open "$worker" "$edge" 7000
    way "session node to worker" open "$session" "$worker" 7001
    way "another namespace to edge" open "$issuer" "$edge" 8080
    way "another namespace to an admin port" shut "$issuer" "$edge" 8081
    way "another namespace to a node's port" shut "$issuer" "$session" 7000
    way "another namespace to Redis" shut "$issuer" "$redis" 6379
    way "worker to Redis" shut "$worker" "$redis" 6379
    way "worker to issuer" shut "$worker" "$issuer" 8443
    way "session node to issuer" shut "$session" "$issuer" 8443
    way "edge to the API server" shut "$edge" "api $(node_address 1)" 6443
    way "Redis to edge" shut "$redis" "$edge" 8080
    [[ $FAILED -eq $failed ]] || return 1
    pass "$name" "$(printf '%s\n' "${WAYS[@]}" | sort | uniq -c | awk '{ printf "%s%s %s", sep, $1, $2; sep = ", " }') ways, by kube-router"
}
