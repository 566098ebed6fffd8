#!/usr/bin/env python3
"""The schema or the chart refuses unusable values, with a message that says what to do."""
from chart import Report, helm

GOOD = ["image.repository=shoal", "redis.bundled.enabled=true", "config.auth.allow_anonymous=true", "pools.demo.backend=demo"]

EXTERNAL = ["redis.bundled.enabled=false"]

# Values, and parts of the message.
BAD = [
    (["pools.web.backend.http.uri=https://example.com"], ["pools", "web", "http", "uri"]),
    (["pools.web.backend.openapi.url=https://example.com"], ["pools", "web", "openapi", "url"]),
    (["pools.web.backend=magic"], ["web", "backend", "demo"]),
    (["pools.web.replicas=2"], ["pools.web", "set backend"]),
    (["pools.web.backend=demo", "pools.web.settings.concurency=3"], ["settings", "concurency"]),
    (["pools.web.backend=demo", "pools.web.settings.concurrency=many"], ["concurrency", "integer"]),
    (["pools.Web.backend=demo"], ["Web"]),
    (["pools.a_b.backend=demo", "pools.a-b.backend=demo"], ["another pool"]),
    (["pools.web.foreignWorker=true"], ["pools.web.image.repository"]),
    (["pools.web.foreignWorker=true", "pools.web.image.repository=a"], ["tag or a digest"]),
    (["pools.web.foreignWorker=true", "pools.web.backend=demo"], ["Leave backend out"]),
    (["image.repository="], ["deploy/image", "image.repository=registry.example.com/shoal", "kind load", "The image"]),
    (["pools.web.backend=handler"], ["pools.web", "built into a program", "pools.web.image.repository"]),
    (["pools.web.backend=handler", "pools.web.image.repository=a"], ["tag or a digest"]),
    (["pools.web.backend=handler", "pools.web.foreignWorker=true"], ["Leave backend out"]),
    (["pools.demo.env.API_KEY=a"], ["pools.demo.env", "only stdio servers"]),
    (["pools.demo.env.SHOAL_CONFIG=a"], ["pools.demo.env.SHOAL_CONFIG", "settings"]),
    (["pools.demo.env.API_KEY.secret.name=a"], ["API_KEY", "key"]),
    (["pools.demo.args={a}"], ["for the backend \"handler\"", "backend.stdio.args"]),
    (["config.pools.demo.backend=demo"], ["set by the chart: use pools"]),
    (["config.node.store=redis://redis"], ["set by the chart: use redis.url"]),
    (["config.node.roles={edge}"], ["have Deployments of their own"]),
    (["config.server.listen=0.0.0.0:80"], ["use bindAddress"]),
    (["config.server.admin_token.value=abc"], ["use adminToken.secret"]),
    (["config.state_keys.keys={}"], ["use stateKeys.secret"]),
    (["config.cluster.advertise=me:1"], ["the address of the pod"]),
    (["edge.config.cluster.join={a:1}"], ["the Service of the nodes"]),
    (["config.server.bogus=1"], ["bogus"]),
    (["config.limits.streams=lots"], ["streams", "integer"]),
    (["config.limits.streams=0"], ["streams", " 1"]),
    (["config.calls.timeout=0s"], ["calls", "timeout"]),
    (["config.shutdown.calls=soon"], ["calls", "pattern"]),
    (["config.shutdown.calls=3 fortnights"], ["shutdown", "calls", "minutes"]),
    (["redis.bundled.enabled=false"], ["redis.url", "redis.urlSecret.name", "redis.bundled.enabled=true"]),
    (["redis.url=redis://redis"], ["there is one Redis"]),
    (["redis.bundled.enabled=false", "redis.url=redis://user:secret@redis"], ["redis", "url", "pattern"]),
    (["redis.bundled.enabled=false", "redis.url=redis://:$(REDIS_PASSWORD)@redis"], ["redis.passwordSecret.name"]),
    (["config.auth.mode=oauth"], ["config.auth.resource"]),
    (["config.auth.mode=oauth", "config.auth.resource=https://a/mcp"], ["config.auth.issuers"]),
    (["config.auth.mode=tokens"], ["auth.tokensSecret.name"]),
    (["config.auth.mode=oidc"], ["mode", "none", "tokens", "oauth"]),
    (["config.auth.allow_anonymous=false"], ["auth.tokensSecret.name", "config.auth.allow_anonymous=true"]),
    (["auth.tokensSecret.name=tokens", "config.auth.mode=none"], ["remove one of them"]),
    (["pools.web.backend.stdio.command=npx"], ["pools.web.image.repository", "has the command"]),
    (["tls.secret.name=a", "tls.certManager.enabled=true"], ["given twice", "Keep one of them"]),
    (["adminTls.secret.name=a", "monitoring.podMonitor.enabled=true"], ["adminTls.serverName"]),
    (["config.server.admin_tls.key=a"], ["use adminTls"]),
    (["ingress.enabled=true"], ["ingress.hosts"]),
    (["httpRoute.enabled=true"], ["httpRoute.parentRefs"]),
    (["edge.autoscaling.enabled=true", "edge.autoscaling.cpu=0"], ["autoscaling.streams"]),
    (["pools.demo.autoscaling.enabled=true", "pools.demo.autoscaling.minReplicas=0", "pools.demo.autoscaling.by=keda"], ["demo", "scale_to_zero"]),
    (["edge.autoscaling.enabled=true", "edge.autoscaling.minReplicas=0", "edge.autoscaling.by=keda"], ["edge", "scale_to_zero"]),
    (["edge.autoscaling.enabled=true", "edge.autoscaling.minReplicas=11"], ["edge", "minReplicas (11)", "maxReplicas (10)"]),
    (["edge.autoscaling.by=magic"], ["by", "keda"]),
    (["edge.replica=3"], ["replica"]),
    (["image.digest=abc"], ["digest"]),
    (["pools.a__b.backend=demo"], ["a__b"]),
    (["pools.a_.backend=demo"], ["a_"]),
    (["pools.web.backend.http.era=modern"], ["pools.web.backend.http", "url or urls"]),
    (["pools.web.backend.openapi.document=/etc/pets.json"], ["pools.web.backend.openapi.base_url", "pools.web.egress"]),
    (["pools.web.backend.openapi.base_url=https://a"], ["set document"]),
    (["pools.web.backend.http.url=https://a", "pools.web.backend.http.client_credentials.client_id=me"], ["token_endpoint or issuer", "pools.web.egress"]),
    (["pools.web.backend.http.url=https://a", "pools.web.backend.openapi.document=https://a"], ["one backend, not 2"]),
    (["config.outbound.proxy_from_environment=true"], ["HTTPS_PROXY", "networkPolicy.nodesEgress"]),
    (["redis.bundled.enabled=false", "redis.urlSecret.name=a"], ["networkPolicy.redis.ports"]),
    (["config.redis.user=a"], ["set by the chart: use redis.user"]),
    (["config.redis.password.file=/a"], ["set by the chart: use redis.passwordSecret"]),
    (["config.redis.tls.authority=/a"], ["set by the chart: use redis.tls.secret"]),
    (["edge.config.redis.sentinel.tls=true"], ["set by the chart: use redis.sentinel"]),
    (["redis.passwordSecret.name=a"], ["bundled Redis", "redis.bundled.enabled=false"]),
    (["redis.sentinel.tls=false"], ["bundled Redis", "redis.bundled.enabled=false"]),
    ([*EXTERNAL, "redis.url=redis://me@redis", "redis.user=you", "redis.passwordSecret.name=a"], ["\"me\"", "redis.user is \"you\"", "leave redis.user out"]),
    ([*EXTERNAL, "redis.url=redis://:$(REDIS_PASSWORD)@redis", "redis.user=you", "redis.passwordSecret.name=a"], ["take :$(REDIS_PASSWORD)@ out of redis.url"]),
    ([*EXTERNAL, "redis.url=redis://redis", "redis.user=you"], ["redis.passwordSecret.name"]),
    ([*EXTERNAL, "redis.url=redis://redis", "redis.tls.secret.name=a"], ["begin it with rediss://"]),
    ([*EXTERNAL, "redis.url=redis+cluster://redis", "redis.tls.secret.name=a"], ["begin it with rediss+cluster://"]),
    ([*EXTERNAL, "redis.url=rediss://redis", "redis.tls.secret.name=a", "redis.tls.secret.authorityKey="], ["redis.tls.secret.authorityKey", "certificateKey and keyKey"]),
    ([*EXTERNAL, "redis.url=rediss://redis", "redis.tls.secret.name=a", "redis.tls.secret.certificateKey=b"], ["set redis.tls.secret.keyKey"]),
    ([*EXTERNAL, "redis.url=rediss://redis", "redis.tls.secret.name=a", "redis.tls.secret.keyKey=b"], ["set redis.tls.secret.certificateKey"]),
    ([*EXTERNAL, "redis.url=rediss://redis", "redis.tls.secret.certificateKey=b"], ["redis.tls.secret.name"]),
    ([*EXTERNAL, "redis.url=redis://redis", "redis.sentinel.passwordSecret.name=a"], ["redis+sentinel://HOST:26379/MASTER"]),
    ([*EXTERNAL, "redis.url=redis+sentinel://redis/main", "redis.sentinel.user=a"], ["redis.sentinel.passwordSecret.name"]),
    (["auth.tokensSecret.name=a", "config.auth.tokens_file=/b"], ["given twice", "config.auth.tokens_file"]),
    (["tls.job.enabled=false"], ["tls.secret.name", "tls.certManager.enabled=true", "tls.enabled=false"]),
    (["defaults.podLabels.app\\.kubernetes\\.io/name=mine"], ["app.kubernetes.io/name", "podLabels", "selectors"]),
    (["extraLabels.app\\.kubernetes\\.io/instance=mine"], ["app.kubernetes.io/instance", "extraLabels"]),
    (["service.sourceRanges={10.0.0.1}"], ["sourceRanges"]),
]


def refused(sets):
    """Helm's error about the values; None if it accepts them."""
    words = ["--kube-version", "1.34.0"]
    for one in sets:
        words += ["--set", one]
    done = helm(*words)
    return None if done.returncode == 0 else done.stderr


def main():
    report = Report()
    report.say("good values are taken", [text for text in [refused(GOOD)] if text])
    for sets, parts in BAD:
        said = refused(GOOD + sets)
        missing = ["it is taken"] if said is None else [f"{part!r} is not in: {said}" for part in parts if part not in said]
        report.say(", ".join(sets), missing)
    report.end()


if __name__ == "__main__":
    main()
