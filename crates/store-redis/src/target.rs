use std::path::PathBuf;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisTarget {
    pub(crate) place: Topology,
    pub(crate) tls: bool,
    pub(crate) db: i64,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Server(RedisHost),
    Socket(PathBuf),
    /// A Redis Cluster, by some of its nodes.
    Cluster(Vec<RedisHost>),
    Sentinel {
        sentinels: Vec<RedisHost>,
        master: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedisHost {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl std::fmt::Display for RedisHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.name.contains(':') {
            return write!(f, "[{}]:{}", self.name, self.port);
        }
        write!(f, "{}:{}", self.name, self.port)
    }
}

impl std::fmt::Display for RedisTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts = |hosts: &[RedisHost]| {
            let hosts: Vec<_> = hosts.iter().map(RedisHost::to_string).collect();
            hosts.join(",")
        };
        match &self.place {
            Topology::Server(host) => write!(f, "Redis at {host}"),
            Topology::Socket(path) => write!(f, "Redis at {}", path.display()),
            Topology::Cluster(nodes) => write!(f, "the Redis Cluster of {}", hosts(nodes)),
            Topology::Sentinel { sentinels, master } => {
                write!(f, "master {master} of the sentinels {}", hosts(sentinels))
            }
        }
    }
}

const FORMS: &str = "redis://, rediss://, redis+unix://, redis+cluster://, redis+sentinel://";
const LOGIN_IS_RAW: &str = "the user or password in the Redis URL has a character that must be percent-encoded \
     (/ as %2F, ? as %3F, # as %23, % as %25); or set redis.user and redis.password";
const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

impl RedisTarget {
    /// Errors do not contain the URL, because it may contain a password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url).map_err(|why| {
            if hides_login(url) {
                LOGIN_IS_RAW.to_owned()
            } else {
                why
            }
        })
    }

    fn read(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| format!("the Redis URL must begin with one of {FORMS}"))?;
        let (tls, kind) = match scheme {
            "redis" => (false, "server"),
            "rediss" => (true, "server"),
            "redis+unix" | "unix" => (false, "socket"),
            "redis+cluster" => (false, "cluster"),
            "rediss+cluster" => (true, "cluster"),
            "redis+sentinel" => (false, "sentinel"),
            "rediss+sentinel" => (true, "sentinel"),
            _ => return Err(format!("the Redis URL must begin with one of {FORMS}")),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        if rest.contains('#') || query.is_some_and(|query| query.contains('#')) {
            return Err("the Redis URL has a fragment (encode # as %23)".to_owned());
        }
        // A path may contain @, while a / in a password must be percent-encoded.
        let slash = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = login.map(parse_login).transpose()?.unwrap_or_default();
        let (place, db) = match kind {
            "server" => {
                let mut hosts = parse_hosts(hosts, REDIS_PORT)?;
                let (Some(host), true) = (hosts.pop(), hosts.is_empty()) else {
                    return Err("the Redis URL names several servers: \
                         use redis+cluster:// or redis+sentinel://"
                        .to_owned());
                };
                (Topology::Server(host), parse_db(path.trim_matches('/'))?)
            }
            "socket" => {
                if path.len() < 2 || !hosts.is_empty() {
                    return Err("the Redis URL needs a path: redis+unix:///path".to_owned());
                }
                let db = query.map_or(Ok(""), |query| {
                    query
                        .strip_prefix("db=")
                        .ok_or("the Redis URL has an unknown parameter")
                })?;
                (Topology::Socket(decode(path)?.into()), parse_db(db)?)
            }
            "cluster" => {
                if !path.trim_matches('/').is_empty() {
                    return Err(
                        "a Redis Cluster has one database: the URL must not name one".to_owned(),
                    );
                }
                (Topology::Cluster(parse_hosts(hosts, REDIS_PORT)?), 0)
            }
            _ => {
                let sentinels = parse_hosts(hosts, SENTINEL_PORT)?;
                let path = path.trim_matches('/');
                let (master, db) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err("the Redis URL must name the master: \
                         redis+sentinel://host:port/<master-name>"
                        .to_owned());
                }
                let master = decode(master)?;
                (Topology::Sentinel { sentinels, master }, parse_db(db)?)
            }
        };
        if query.is_some() && kind != "socket" {
            return Err("the Redis URL must not have parameters".to_owned());
        }
        Ok(Self {
            place,
            tls,
            db,
            user,
            password,
        })
    }
}

/// An `@` may come too late to end a login, or a login be encoded badly.
fn hides_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']);
    let later = end.is_some_and(|end| rest[end..].contains('@'));
    let encoded_badly = rest
        .rsplit_once('@')
        .is_some_and(|(login, _)| decode(login).is_err());
    later || encoded_badly
}

fn parse_login(login: &str) -> Result<(Option<String>, Option<String>), String> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (login, None),
    };
    let user = Some(decode(user)?).filter(|user| !user.is_empty());
    Ok((user, password))
}

fn parse_hosts(hosts: &str, default_port: u16) -> Result<Vec<RedisHost>, String> {
    hosts
        .split(',')
        .map(|host| parse_host(host, default_port))
        .collect()
}

fn parse_host(host: &str, default_port: u16) -> Result<RedisHost, String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(v6) => v6
            .split_once(']')
            .ok_or("the Redis URL has a [ without ]")?,
        None => match host.find(':') {
            Some(colon) => host.split_at(colon),
            None => (host, ""),
        },
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port > 0),
        None if port.is_empty() => Some(default_port),
        None => None,
    };
    let port = port.ok_or("a port of the Redis URL is not a number from 1 to 65535")?;
    if name.is_empty() {
        return Err("the Redis URL has no host".to_owned());
    }
    Ok(RedisHost {
        name: decode(name)?,
        port,
    })
}

fn parse_db(db: &str) -> Result<i64, String> {
    match db {
        "" => Ok(0),
        db => {
            let number = db.parse::<u16>().map(i64::from);
            number.map_err(|_| "the database in the Redis URL is not a number".to_owned())
        }
    }
}

fn decode(text: &str) -> Result<String, String> {
    let wrong = || "the Redis URL is not percent-encoded as it must be".to_owned();
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = bytes.next().map(char::from)?;
            digit
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong());
        };
        decoded.push(high << 4 | low);
    }
    String::from_utf8(decoded).map_err(|_| wrong())
}

#[cfg(test)]
mod tests;
