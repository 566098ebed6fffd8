# shellcheck shell=bash
# Finds, fetches or builds a cluster's programs.

KUBERNETES_VERSION=$(sed -n 's|^.*k8s.io/kubernetes v\([0-9.]*\).*|\1|p' "$PARTS/go/go.mod")
HELM_VERSION=$(sed -n 's|^.*helm.sh/helm/v3 v\([0-9.]*\).*|\1|p' "$PARTS/go/go.mod")
# Kube-router's firewall enforces NetworkPolicies; its router and proxy are off.
KUBE_ROUTER_MODULE=github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0
BUILD_SECONDS=3600
# Debian packages of services. Missing ones are unpacked and not installed, so that no service starts.
declare -A PACKAGES=(
    [etcd]=etcd-server
    [containerd]=containerd
    [ctr]=containerd
    [containerd-shim-runc-v2]=containerd
    [runc]=runc
    [/usr/lib/cni/bridge]=containernetworking-plugins
)

# unpack PACKAGE: to $KUBE/debian
unpack() {
    local package=$1 directory
    directory=$(mktemp -d "$WORK/deb.XXXXXX")
    if [[ -z ${APT_UPDATED:-} ]]; then
        install_by apt-update apt-get update || return 1
        APT_UPDATED=yes
    fi
    # apt drops its privileges for downloads.
    chmod 755 "$WORK" && chmod 777 "$directory"
    (cd "$directory" && install_by "fetch-$package" apt-get download "$package") || return 1
    mkdir -p "$KUBE/debian"
    attempt "unpack-$package" 60 dpkg-deb -x "$directory"/*.deb "$KUBE/debian"
}

find_programs() {
    local program missing=()
    PATH=$PATH:/usr/sbin:/sbin
    for program in "${!PACKAGES[@]}"; do
        command -v "$program" >/dev/null || missing+=("${PACKAGES[$program]}")
    done
    PATH=$KUBE/bin:$PATH:$KUBE/debian/usr/bin:$KUBE/debian/usr/sbin
    CNI_PLUGINS=/usr/lib/cni
    [[ -x $CNI_PLUGINS/bridge ]] || CNI_PLUGINS=$KUBE/debian/usr/lib/cni
    export CNI_PLUGINS
    for program in "${missing[@]}"; do
        [[ -e $KUBE/debian/usr/share/doc/$program ]] || unpack "$program" || {
            fail "tools" "needs $program of Debian's archive"
            return 1
        }
    done
    for program in iptables:iptables ipset:ipset openssl:openssl curl:curl diff:diffutils ip:iproute2 conntrack:conntrack unshare:util-linux python3:python3; do
        command -v "${program%%:*}" >/dev/null || apt_install "${program##*:}" || {
            fail "tools" "needs ${program%%:*}: apt-get install ${program##*:}"
            return 1
        }
    done
    have redis || { fail "tools" "$(needs redis)" && return 1; }
    pass "tools" "etcd $(etcd --version | sed -n 's/^etcd Version: //p'), $(containerd --version | cut -d ' ' -f 1,3)"
}

# sources: everything that the programs are built from
sources() { cat "$PARTS"/go/go.mod "$PARTS"/go/*/*.go && echo "$1 $KUBE_ROUTER_MODULE"; }

# link_flags: the programs' versions, as their makefiles link them
link_flags() {
    local package=k8s.io/component-base/version minor place
    minor=$(cut -d . -f 2 <<<"$KUBERNETES_VERSION")
    printf '%s' "-s -w -X helm.sh/helm/v3/internal/version.version=v$HELM_VERSION"
    # The Kubernetes version for which `helm template` renders.
    for place in helm.sh/helm/v3/pkg/chartutil helm.sh/helm/v3/pkg/lint/rules; do
        printf ' %s' "-X $place.k8sVersionMajor=1 -X $place.k8sVersionMinor=$minor"
    done
    printf ' %s' "-X $package.gitVersion=v$KUBERNETES_VERSION" "-X $package.gitTreeState=clean" \
        "-X $package.gitMajor=1" "-X $package.gitMinor=$minor"
}

# build_kubernetes: builds every program of the Go module here, unless the same versions are built
build_kubernetes() {
    local stamp=$KUBE/built began=$SECONDS flags
    flags=$(link_flags)
    if ! sources "$flags" | cmp -s - "$stamp"; then
        have go || { fail "build of Kubernetes" "$(needs go)" && return 1; }
        echo "building Kubernetes $KUBERNETES_VERSION, which takes some minutes"
        mkdir -p "$KUBE/bin"
        # Statically, because some run in empty images.
        attempt build-kubernetes "$BUILD_SECONDS" env CGO_ENABLED=0 GOFLAGS=-mod=readonly nice \
            go build -C "$PARTS/go" -trimpath -ldflags "$flags" -o "$KUBE/bin/" tool ./dns ./issuer ./pause &&
            attempt build-kube-router "$BUILD_SECONDS" env CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN="$KUBE/bin" nice \
                go install -trimpath -ldflags "-s -w" "$KUBE_ROUTER_MODULE" || {
            fail "build of Kubernetes" "see below"
            return 1
        }
        sources "$flags" >"$stamp"
    fi
    have helm4 || { fail "build of Helm 4" "$(needs go)" && return 1; }
    export HELM4
    pass "Kubernetes $KUBERNETES_VERSION" "Helm $(helm version --template '{{.Version}}') and 4, $((SECONDS - began)) s"
}

# find_binaries: Shoal, and its load clients
find_binaries() {
    local target=${CARGO_TARGET_DIR:-$ROOT/target}/release
    if [[ -z ${KUBE_SHOAL_BIN:-} || -z ${KUBE_ROLL_BIN:-} ]]; then
        have rust || { fail "build of Shoal" "$(needs rust)" && return 1; }
        attempt build-shoal "$BUILD_SECONDS" cargo build --release --locked -p shoal-node --bin shoal -p shoal-testkit --bin roll || {
            fail "build of Shoal" "see below"
            return 1
        }
    fi
    SHOAL_BIN=${KUBE_SHOAL_BIN:-$target/shoal}
    ROLL=${KUBE_ROLL_BIN:-$target/roll}
    export SHOAL_BIN ROLL
    pass "Shoal" "$("$SHOAL_BIN" --version)"
}
