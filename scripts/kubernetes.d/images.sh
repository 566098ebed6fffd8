# shellcheck shell=bash
# Packs the cluster's images without fetching any.

PAUSE_IMAGE=localhost/pause:1
DNS_IMAGE=localhost/coredns:1
SHOAL_IMAGE=localhost/shoal:trial
# The same program under another name, for an upgrade of the image.
NEXT_IMAGE=localhost/shoal:next
REDIS_IMAGE=localhost/redis:trial
ISSUER_IMAGE=localhost/issuer:1
export PAUSE_IMAGE DNS_IMAGE SHOAL_IMAGE NEXT_IMAGE REDIS_IMAGE ISSUER_IMAGE

image() {
    attempt "image-$1" 120 "$PARTS/image" "$WORK/images/$1.tar" "${@:2}"
}

# The files of Shoal's image: the program and the certificate authorities.
SHOAL_FILES=(--program "/etc/ssl/certs/ca-certificates.crt" --entrypoint /usr/local/bin/shoal)

pack_images() {
    mkdir -p "$WORK/images"
    [[ -e /etc/ssl/certs/ca-certificates.crt ]] || apt_install ca-certificates || {
        fail "images" "needs certificate authorities: apt-get install ca-certificates"
        return 1
    }
    if image pause "$PAUSE_IMAGE" --program "$KUBE/bin/pause=/pause" --entrypoint /pause &&
        image dns "$DNS_IMAGE" --program "$KUBE/bin/dns=/dns" --entrypoint /dns &&
        image issuer "$ISSUER_IMAGE" --program "$KUBE/bin/issuer=/issuer" --entrypoint /issuer &&
        image shoal "$SHOAL_IMAGE" --program "$SHOAL_BIN=/usr/local/bin/shoal" "${SHOAL_FILES[@]}" &&
        image next "$NEXT_IMAGE" --program "$SHOAL_BIN=/usr/local/bin/shoal" "${SHOAL_FILES[@]}" &&
        image redis "$REDIS_IMAGE" --program "$(command -v redis-server)=/usr/local/bin/redis-server" \
            --program "$(command -v redis-cli)=/usr/local/bin/redis-cli" --program /bin/sh=/bin/sh --entrypoint redis-server; then
        pass "images" "$(du -sh "$WORK/images" | cut -f 1)"
        return
    fi
    fail "images" "see below"
    return 1
}
