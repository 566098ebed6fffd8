use super::{RedisHost, RedisTarget, Topology};

fn host(name: &str, port: u16) -> RedisHost {
    RedisHost {
        name: name.to_owned(),
        port,
    }
}

fn parse(url: &str) -> RedisTarget {
    RedisTarget::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[test]
fn one_server() {
    let plain = parse("redis://localhost");
    assert_eq!(plain.place, Topology::Server(host("localhost", 6379)));
    assert_eq!((plain.tls, plain.db), (false, 0));
    assert_eq!((plain.user, plain.password), (None, None));

    let full = parse("rediss://user:p%40ss%2Fw:rd@[::1]:7000/3");
    assert_eq!(full.place, Topology::Server(host("::1", 7000)));
    assert_eq!((full.tls, full.db), (true, 3));
    assert_eq!(full.user.as_deref(), Some("user"));
    assert_eq!(full.password.as_deref(), Some("p@ss/w:rd"));

    let only_password = parse("redis://:secret@h:1/");
    assert_eq!(only_password.user, None);
    assert_eq!(only_password.password.as_deref(), Some("secret"));
    let socket = parse("redis+unix:///run/a%20b.sock?db=2");
    assert_eq!(socket.place, Topology::Socket("/run/a b.sock".into()));
    assert_eq!(socket.db, 2);
}

#[test]
fn many_servers() {
    let cluster = parse("rediss+cluster://u:p@a:1,b");
    assert_eq!(
        cluster.place,
        Topology::Cluster(vec![host("a", 1), host("b", 6379)])
    );
    assert!(cluster.tls);
    let sentinel = parse("redis+sentinel://u:p@a,b:2/mymaster/4");
    assert_eq!(
        sentinel.place,
        Topology::Sentinel {
            sentinels: vec![host("a", 26379), host("b", 2)],
            master: "mymaster".to_owned(),
        }
    );
    assert_eq!(sentinel.db, 4);
    assert_eq!(
        sentinel.to_string(),
        "master mymaster of the sentinels a:26379,b:2"
    );
}

#[test]
fn what_is_wrong_is_said_without_the_password() {
    for url in [
        "",
        "hunter2",
        "http://u:hunter2@h",
        "redis://u:hunter2@",
        "redis://u:hunter2@h:port",
        "redis://u:hunter2@h:0",
        "redis://u:hunter2@h:1x",
        "redis://u:hunter2@a,b",
        "redis://u:hunter2@h/x",
        "redis://u:hunter2@h/1#insecure",
        "redis://u:hunter2@h/1?x=y",
        "redis://u:hunter2%zz@h",
        "redis://u:hunter2%ff@h",
        "redis://u:hunter2@[::1",
        "redis+unix://",
        "redis+unix:///s?password=hunter2",
        "redis+cluster://u:hunter2@h/1",
        "redis+sentinel://u:hunter2@h",
        "redis+sentinel://u:hunter2@h/m/x",
    ] {
        let Err(error) = RedisTarget::parse(url) else {
            panic!("{url} is taken");
        };
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_login_that_is_not_encoded_is_told_how() {
    for url in [
        "redis://u:hun/ter2@h",
        "redis://u:hun?ter2@h:1",
        "redis://u:hun#ter2@h:1",
        "rediss://:100%@h",
        "redis+sentinel://u:a/b@h/main",
    ] {
        let error = RedisTarget::parse(url).err().unwrap_or_default();
        assert!(
            error.contains("percent-encoded (/ as %2F"),
            "{url}: {error}"
        );
    }
}
