"""Typical values of platforms over those of a trial, by name. A parent chart sets those in SUBCHART."""

def merged(below, above):
    """Merges values as Helm does."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{key: merged(below.get(key), value) for key, value in above.items()}}


TRIAL = {
    "image": {"repository": "registry.example.com/shoal"},
    "redis": {"bundled": {"enabled": True}},
    "config": {"auth": {"allow_anonymous": True}},
    "pools": {"demo": {"backend": "demo"}},
}
QUOTA = {
    "requests": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "32Mi"},
    "limits": {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "1Gi"},
}
OAUTH = {
    "mode": "oauth",
    "allow_anonymous": False,
    "resource": "https://mcp.example.com/mcp",
    "issuers": [{
        "issuer": "https://login.example.com:8443/realms/tools",
        "jwks_url": "http://keys.identity.svc.cluster.local:8080/jwks",
        "allow_http": True,
        "introspection": {"client_id": "shoal", "client_secret_file": "/run/id/secret", "endpoint": "https://203.0.113.7/introspect"},
    }],
}
EXTERNAL_REDIS = {"bundled": {"enabled": False}}
SIDECAR = {"name": "proxy", "image": "registry.example.com/proxy:1", "resources": QUOTA}

SETS = {
    "trial": {},
    "no pools": {"pools": {"demo": None}},
    "oauth": {"config": {"auth": OAUTH}},
    "oauth at a known address": {
        "config": {"auth": OAUTH},
        "networkPolicy": {"to": {"login.example.com": {"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}], "ports": [{"port": 8443}]}}},
    },
    "pools behind URLs": {"pools": {
        "web": {"backend": {"http": {
            "urls": ["https://tools.example.com/mcp", "http://tools.apps.svc:8000/mcp"],
            "client_credentials": {"client_id": "shoal", "client_secret_file": "/run/s", "issuer": "https://id.example.com:9443"},
        }}},
        "pets": {"backend": {"openapi": {
            "document": "/etc/pets.json", "base_url": "http://pets:8080",
            "token_exchange": {"endpoint": "https://sts.example.com:8444/token", "client_id": "shoal", "client_secret_file": "/run/s"},
        }}},
    }},
    "servers of the cluster": {"controller": {"enabled": True, "namespaces": ["team-a"]}},
    "servers at addresses": {
        "controller": {"enabled": True, "namespaces": ["team-a"]},
        "config": {"outbound": {"allow": ["10.9.0.0/16", "10.8.0.7"]}, "telemetry": {"endpoint": "http://collector.telemetry.svc:4317"}},
        "networkPolicy": {"monitoring": []},
    },
    "servers of all namespaces": {"controller": {"enabled": True, "namespaces": ["*"], "tokens": True}},
    "collector by name": {"config": {"telemetry": {"endpoint": "http://collector.telemetry.svc:4317"}}},
    "collector by variable": {"defaults": {"extraEnv": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "https://otel.example.com"}]}},
    "proxy": {
        "config": {"outbound": {"proxy_from_environment": True}},
        "defaults": {"extraEnv": [{"name": "HTTPS_PROXY", "value": "http://user@proxy.example.com:3128"}]},
    },
    "Redis with TLS": {"redis": {**EXTERNAL_REDIS, "url": "rediss://shoal:$(REDIS_PASSWORD)@10.0.0.9:6380", "passwordSecret": {"name": "redis"}}},
    "Redis Sentinel in a namespace": {"redis": {**EXTERNAL_REDIS, "url": "redis+sentinel://a.redis.svc,b.redis.svc:26380/main"}},
    "Redis in a Secret": {
        "redis": {**EXTERNAL_REDIS, "urlSecret": {"name": "redis"}}, "networkPolicy": {"redis": {"ports": [6390]}},
    },
    "Redis by a password's file": {"redis": {**EXTERNAL_REDIS, "url": "redis://10.0.0.9", "user": "shoal", "passwordSecret": {"name": "redis"}}},
    "Redis by a Secret and a password's file": {
        "redis": {**EXTERNAL_REDIS, "urlSecret": {"name": "redis"}, "passwordSecret": {"name": "redis"}},
        "networkPolicy": {"redis": {"ports": [6390]}},
    },
    "Redis with an authority": {"redis": {**EXTERNAL_REDIS, "url": "rediss+cluster://10.0.0.9:6380", "tls": {"secret": {"name": "redis-tls"}}}},
    "Redis by certificates": {"redis": {
        **EXTERNAL_REDIS, "url": "rediss://10.0.0.9",
        "tls": {"secret": {"name": "redis-tls", "authorityKey": "", "certificateKey": "client.crt", "keyKey": "client.key"}},
    }},
    "Redis Sentinel with files": {"redis": {
        **EXTERNAL_REDIS, "url": "redis+sentinel://a.redis.svc,b.redis.svc/main", "user": "shoal", "passwordSecret": {"name": "redis", "key": "main"},
        "tls": {"secret": {"name": "redis-tls"}},
        "sentinel": {"user": "watcher", "passwordSecret": {"name": "redis", "key": "sentinel"}, "tls": True},
    }},
    "a pool at zero": {"pools": {"demo": {
        "settings": {"scale_to_zero": {"wait": "2m"}}, "autoscaling": {"enabled": True, "by": "keda", "minReplicas": 0},
    }}},
    "tokens of a Secret": {"auth": {"tokensSecret": {"name": "tokens", "key": "list"}}, "config": {"auth": {"allow_anonymous": False}}},
    "tokens and rules": {"config": {
        "auth": {"allow_anonymous": False, "mode": "tokens", "tokens": [{"name": "alice", "sha256": "ab" * 32}]},
        "policy": {"reread": "1s", "rules": [{"name": "all", "effect": "allow", "tools": ["echo"]}]},
        "quotas": [{"name": "calls", "per": "principal", "rate": "10/s"}],
        "session": {"idle": "5m"},
    }},
    "tokens and rules in files of one's own": {
        "config": {
            "auth": {"allow_anonymous": False, "mode": "tokens", "tokens": [{"name": "alice", "sha256": "ab" * 32}], "tokens_file": "/run/mine/tokens.toml"},
            "policy": {"file": "/run/mine/rules.toml", "rules": [{"name": "all", "effect": "allow", "tools": ["echo"]}]},
            "reload": {"watch": False},
        },
    },
    "Redis at its peers": {
        "redis": {**EXTERNAL_REDIS, "url": "redis://redis.example.com:6390"},
        "networkPolicy": {"redis": {"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]}},
    },
    "DNS elsewhere": {"networkPolicy": {"dns": {"ports": [1053], "to": [{"ipBlock": {"cidr": "10.96.0.10/32"}}]}}},
    "no network policy": {"networkPolicy": {"enabled": False}},
    "own variables": {
        "defaults": {"extraEnv": [{"name": "SHOAL_NODE__NAME", "value": "mine"}, {"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        "pools": {"files": {
            "image": {"repository": "files", "tag": "1"},
            "backend": {"stdio": {"command": "files"}},
            "env": {"HOME": "/data", "TOKEN": {"secret": {"name": "files", "key": "token"}}},
            "extraEnv": [{"name": "TOKEN", "value": "other"}],
        }},
    },
    "own labels": {
        "extraLabels": {"app.kubernetes.io/part-of": "tools", "app.kubernetes.io/version": "7", "team": "a"},
        "defaults": {"podLabels": {"team": "b", "app.kubernetes.io/part-of": "other"}, "labels": {"tier": "back"}},
        "ingress": {"enabled": True, "hosts": ["mcp.example.com"], "labels": {"team": "c"}},
        "extraAnnotations": {"a": "1"},
        "edge": {"annotations": {"a": "2"}, "podAnnotations": {"kubectl.kubernetes.io/default-container": "proxy"}},
    },
    "own volumes": {"defaults": {
        "extraVolumes": [{"name": "tmp", "persistentVolumeClaim": {"claimName": "tmp"}}, {"name": "data", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/tmp"}],
    }},
    "sidecars": {"defaults": {
        "extraContainers": [SIDECAR],
        "extraInitContainers": [{**SIDECAR, "name": "vault", "restartPolicy": "Always"}],
        "automountServiceAccountToken": True,
        "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 8081}}},
    }},
    "places": {"defaults": {
        "nodeSelector": {"pool": "tools"}, "tolerations": [{"operator": "Exists"}], "schedulerName": "bin-packing",
        "runtimeClassName": "gvisor", "priorityClassName": "high", "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}]},
        "hostAliases": [{"ip": "10.1.1.1", "hostnames": ["redis.local"]}],
    }},
    "budgets": {
        "defaults": {"podDisruptionBudget": {"minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow", "annotations": {"a": "b"}}},
        "edge": {"podDisruptionBudget": {"enabled": False}},
    },
    "load balancer": {"service": {
        "type": "LoadBalancer", "port": 443, "nodePort": 30443, "class": "service.k8s.aws/nlb", "sourceRanges": ["10.0.0.0/8"],
        "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4", "IPv6"],
        "ipFamilyPolicy": "PreferDualStack", "externalIPs": ["192.0.2.1"], "loadBalancerIP": "192.0.2.2", "clusterIP": "10.96.0.77",
        "trafficDistribution": "PreferClose", "labels": {"expose": "yes"}, "annotations": {"a": "b"}, "appProtocol": "kubernetes.io/h2c",
    }},
    "scaling": {"defaults": {"autoscaling": {
        "enabled": True, "cpu": 0, "maxReplicas": 4, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 60}},
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "3"}}}],
    }}},
    "monitoring by Services": {"monitoring": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}},
    "monitoring with TLS": {
        "monitoring": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
        "adminTls": {"secret": {"name": "admin"}, "serverName": "shoal.internal"},
    },
    "ingress by prefix": {
        "ingress": {"enabled": True, "pathType": "Prefix", "hosts": ["mcp.example.com"]},
        "config": {"limits": {"body_bytes": 1}}, "edge": {"config": {"limits": {"body_bytes": 8388608}}},
    },
    "route with filters": {"httpRoute": {
        "enabled": True, "parentRefs": [{"name": "public"}], "labels": {"a": "b"},
        "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x-internal"]}}],
    }},
    "Istio": {
        "defaults": {"podLabels": {"sidecar.istio.io/inject": "true"}, "podAnnotations": {"proxy.istio.io/config": "holdApplicationUntilProxyStarts: true"}},
        "tls": {"enabled": False},
        "networkPolicy": {
            "allEgress": [{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "istio-system"}}}], "ports": [{"port": 15012, "protocol": "TCP"}]}],
            "allIngress": [{"ports": [{"port": 15008, "protocol": "TCP"}]}],
        },
    },
    "rollout of TLS": {"tls": {"allowPlaintext": True}},
    "certificates of a Secret": {"tls": {"secret": {"name": "own"}, "job": {"enabled": False}}},
    "certificates of cert-manager": {"tls": {"certManager": {"enabled": True}}},
    "certificates of a Job": {
        "tls": {"job": {"ttlSecondsAfterFinished": 600, "annotations": {"argocd.argoproj.io/sync-wave": "-1"}}},
        "pools": {"a_b": {"backend": "demo"}},
    },
    "OpenShift": {"openshift": True, "pools": {"files": {"image": {"repository": "files", "tag": "1"}, "backend": {"stdio": {"command": "files"}}}}},
    "quotas": {
        "defaults": {"resources": QUOTA, "initResources": QUOTA}, "test": {"resources": QUOTA},
        "tls": {"job": {"resources": QUOTA}},
        "redis": {"bundled": {"enabled": True, "resources": QUOTA}},
        "pools": {"files": {"image": {"repository": "files", "tag": "1"}, "backend": {"stdio": {"command": "files"}}}},
    },
    "one account": {"defaults": {"serviceAccount": {"name": "shoal"}}},
    "odd names": {"fullnameOverride": "Tools.Of_Mine", "nameOverride": "MCP.server"},
    "no test": {"test": {"enabled": False}},
    "more objects": {"extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}, "data": {"a": "b"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"shoal.fullname\" . }}-text\n",
    ]},
}

SUBCHART = {
    "subchart": {"shoal": {}},
    "subchart with globals": {
        "global": {"imageRegistry": "mirror.example.com/hub", "imagePullSecrets": ["one", {"name": "two"}], "openshift": True, "other": {"a": 1}},
        "shoal": {"enabled": True, "imagePullSecrets": [{"name": "two"}, {"name": "three"}]},
    },
    "subchart that is off": {"shoal": {"enabled": False}},
}
