# shellcheck shell=bash
# The JVM clients: the official Java SDK with both transports, Spring AI, and the official Kotlin SDK.

# Versions of the Java SDK. 0.17 speaks 2025-06-18. From 0.18 to 2.0, it refuses all lines of a stream except `event`, `id`, `data` and
# comments.
JAVA_VERSIONS=(0.17.0 0.18.0 1.1.0 2.0.0 2.0.1 2.1.0)
JAVA_TRANSPORTS=(HttpClient WebClient)
JVM_CLIENTS=(spring-ai-HttpClient spring-ai-WebClient kotlin)
for version in "${JAVA_VERSIONS[@]}"; do
    # The SDK's own transport, and Spring's.
    for transport in "${JAVA_TRANSPORTS[@]}"; do JVM_CLIENTS+=("java-$version-$transport"); done
done
# Concurrent runs; they mostly wait.
JVM_TURNS=4
# These programs and Maven run for seconds, and spent half of their processor time in the optimising compiler.
export JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# A server that can resume, if there is one.
DIRECT=

# jvm_program_of CLIENT: its build; both transports of a version of the Java SDK share one
jvm_program_of() {
    case $1 in
        java-*) echo "${1%-*}" ;;
        *) echo "$1" ;;
    esac
}

# jvm_maven_of PROGRAM: sets COMMAND to the words that build it
jvm_maven_of() {
    local directory=$INTEROP/java arguments=()
    case $1 in
        java-0.1[78].*)
            local version=${1#java-}
            arguments=("-Dmcp.version=$version" -Dwebflux.group=io.modelcontextprotocol.sdk "-Dwebflux.version=$version"
                -Dspring.version=6.2.19 -Dreactor.netty.version=1.2.18)
            ;;
        # Spring AI 2.0.0-M3 was built for 1.1.
        java-1.*) arguments=("-Dmcp.version=${1#java-}" -Dwebflux.version=2.0.0-M3) ;;
        java-*) arguments=("-Dmcp.version=${1#java-}") ;;
        spring-ai-HttpClient) directory=$INTEROP/spring-ai ;;
        spring-ai-WebClient)
            directory=$INTEROP/spring-ai
            arguments=(-Dspring-ai.version=2.0.0 -Dstarter=spring-ai-starter-mcp-client-webflux)
            ;;
        kotlin) directory=$INTEROP/kotlin ;;
    esac
    COMMAND=(mvn --quiet --batch-mode --file "$directory/pom.xml" "-Dbuild.into=$TOOLS/jvm/$1" "${arguments[@]}"
        compile dependency:copy-dependencies)
}

# jvm_build PROGRAM: builds it, or waits for its running build
jvm_build() {
    ! jvm_is_built "$1" || return 0
    install_by "build-$1" "${COMMAND[@]}" && echo "${COMMAND[*]}" >"$TOOLS/jvm/$1/built"
}

# jvm_is_built PROGRAM: whether the same words have built it from the same files; sets COMMAND
jvm_is_built() {
    local built=$TOOLS/jvm/$1/built
    jvm_maven_of "$1"
    [[ -f $built && $(cat "$built") == "${COMMAND[*]}" ]] &&
        [[ -z $(find "$INTEROP"/{java,spring-ai,kotlin}/{pom.xml,src} -newer "$built" -print -quit) ]]
}

# jvm_command_of CLIENT: sets COMMAND to the words that run it
jvm_command_of() {
    local built main=(shoal.interop.Client --transport "${1##*-}")
    built=$TOOLS/jvm/$(jvm_program_of "$1")
    case $1 in
        spring-ai-*) main=(shoal.interop.Application) ;;
        kotlin) main=(shoal.interop.MainKt) ;;
    esac
    COMMAND=(java -cp "$built/classes:$built/dependency/*" "${main[@]}")
}

# jvm_clients NAME: all clients against the demo tools behind URL; their handling of losses is compared with DIRECT, a server that can
# resume
jvm_clients() {
    local client arguments
    if have java; then
        for client in "${JVM_CLIENTS[@]}"; do
            once prepare "$client" || continue
            jvm_arguments_of "$client"
            command_of "$client"
            begin_in_turn "$JVM_TURNS" "$1: $client" "$CLIENT_SECONDS" "${COMMAND[@]}" "${ARGUMENTS[@]}"
        done
    fi
    for client in "${JVM_CLIENTS[@]}"; do
        jvm_arguments_of "$client"
        client "$1: $client" "$client" "${ARGUMENTS[@]}"
    done
}

# jvm_arguments_of CLIENT: sets ARGUMENTS
jvm_arguments_of() {
    ARGUMENTS=(--url "$URL")
    [[ -z $DIRECT || $1 == spring-ai-* ]] || ARGUMENTS+=(--direct "$DIRECT")
}

# jvm_builds_begin: begins all builds, two at a time
jvm_builds_begin() {
    local client program
    for client in "${JVM_CLIENTS[@]}"; do
        program=$(jvm_program_of "$client")
        [[ -z ${BEGUN[build-$program]:-} && -z ${VERDICTS[jvm_build $program]:-} ]] || continue
        ! jvm_is_built "$program" || continue
        # Remove another version's files from the class path.
        rm -rf "${TOOLS:?}/jvm/$program"
        begin_in_turn 2 "build-$program" "$TRY_SECONDS" "${COMMAND[@]}"
    done
}

# resumable_upstream NAME: starts a server on the Go SDK that keeps its events; sets DIRECT, or leaves it empty
resumable_upstream() {
    local name="interop: server that can resume"
    DIRECT=
    ready "$name" go || return 0
    asking_server_of go
    start_upstream "$1-resumable" env INTEROP_RECORD=/dev/null "${COMMAND[@]}" --resumable-http @PORT@ || return 0
    DIRECT=$UPSTREAM
}

# against_draining: one of two edges shuts down while clients of the newest Java SDK wait there
against_draining() {
    local name="interop: java at an edge that ends" client=java-${JAVA_VERSIONS[-1]} redis joined url process
    ready "$name" "$client-HttpClient" || return 0
    have redis || { skip "$name" "$(needs redis)" && return 0; }
    redis=$(free_port)
    joined=$(free_port)
    start_worker draining-redis redis-server --port "$redis" --save '' --maxmemory-policy noeviction --dir "$WORK"
    start_worker draining-worker "$SHOAL" serve --roles worker --join "127.0.0.1:$joined" --admin 127.0.0.1:0 --demo
    set -- --roles edge,session --store "redis://127.0.0.1:$redis"
    start_server draining-edge "$@" --cluster-listen "127.0.0.1:$joined" || return 0
    url=$URL
    process=${SERVERS[-1]%%:*}
    if start_server draining-other "$@" --cluster-listen 127.0.0.1:0; then
        jvm_command_of "$client-HttpClient"
        check "$name" "$CLIENT_SECONDS" "${COMMAND[@]:0:4}" --url "$url" --drain "$process" || true
    fi
    stop_servers
}
