//! Typical mistakes of platform engineers.

use super::{Operator, operator};

/// Words of Rust and its libraries, which messages must not contain.
const FOREIGN: [&str; 17] = [
    "usize",
    "u32",
    "u64",
    "i64",
    "f64",
    "sequence",
    "a map",
    "struct ",
    "variant",
    "unknown field",
    "invalid type",
    "invalid value",
    "serde",
    "Option",
    "tuple",
    "newtype",
    "string \"",
];

type Mistake = (&'static str, &'static [&'static str]);

const IN_FILE: &[Mistake] = &[
    (
        "[sever]\nlisten = '127.0.0.1:1'\n",
        &[":1:2: sever: there is no such setting; did you mean server?"],
    ),
    (
        "[server]\nlisen = '127.0.0.1:1'\n",
        &[":2:1: server.lisen: ", "did you mean server.listen?"],
    ),
    (
        "[server]\nallowedHosts = ['a.com']\n",
        &[":2:1: ", "did you mean server.allowed_hosts?"],
    ),
    (
        "[server]\nallowed-origins = []\n",
        &["did you mean server.allowed_origins?"],
    ),
    (
        "listen = '0.0.0.0:8080'\n",
        &[
            ":1:1: listen: ",
            "did you mean server.listen or cluster.listen?",
        ],
    ),
    (
        "[server]\nport = 8080\n",
        &[":2:1: server.port: there is no such setting; did you mean server.listen?"],
    ),
    (
        "[server]\nlisten_address = '127.0.0.1:1'\n",
        &["did you mean server.listen?"],
    ),
    (
        "[pools.a]\ncommand = 'python3'\n",
        &[
            "pools.a.command: ",
            "did you mean pools.a.backend.stdio.command?",
        ],
    ),
    (
        "[pools.a]\nbackend = 'demo'\nconcurency = 3\n",
        &[":3:1: ", "did you mean pools.a.concurrency?"],
    ),
    (
        "[pools.a.backend.stdio]\ncommand = 'sh'\nargv = ['-c']\n",
        &[":3:1: pools.a.backend.stdio.argv", "args"],
    ),
    (
        "[pool.a]\nbackend = 'demo'\n",
        &[":1:2: pool: ", "did you mean pools?"],
    ),
    (
        "[auth]\nmode = 'tokens'\ntoken = 'hunter2-hunter2-hunter2'\n",
        &[":3:1: auth.token: ", "did you mean auth.tokens?"],
    ),
    (
        "[[auth.tokens]]\nname = 'a'\nhash = 'x'\n",
        &[":3:1: auth.tokens[0].hash: ", "name, sha256"],
    ),
    (
        "[log]\nlevel = 'debug'\n",
        &[":1:2: log: ", "did you mean logging?"],
    ),
    (
        "[logging]\nlog_level = 'debug'\n",
        &[":2:1: logging.log_level: ", "here there are format, level"],
    ),
    (
        "[redis]\nurl = 'redis://h:1'\n",
        &["redis.url: there is no such setting; did you mean node.store?"],
    ),
    (
        "[limits]\nmax_connections = 5\n",
        &[":2:1: limits.max_connections: ", "limits.connections"],
    ),
    (
        "[server]\nlisten = true\n",
        &[":2:10: server.listen: true stands where text in quotes is needed"],
    ),
    (
        "[server]\nlisten = 'localhost:http'\n",
        &[":2:10: server.listen: \"localhost:http\" is no address to listen on"],
    ),
    (
        "server = '0.0.0.0:8080'\n",
        &[":1:10: server: ", "write its settings below [server]"],
    ),
    (
        "[server]\nhttp_sse = 'yes'\n",
        &["\"yes\" stands where true or false is needed, without quotes"],
    ),
    (
        "[server]\nallowed_hosts = 'a.com'\n",
        &[":2:17: ", "put it in brackets"],
    ),
    (
        "[server]\nallowed_hosts = [1]\n",
        &["server.allowed_hosts[0]: 1 stands where text is needed"],
    ),
    (
        "[server]\nadmin_token = 'hunter2-hunter2-hunter2'\n",
        &[
            "server.admin_token: a text stands where",
            "{ file = … }, { value = … }",
        ],
    ),
    (
        "[server]\nadmin_token = { path = '/run/t' }\n",
        &["server.admin_token.path: ", "here there are file, value"],
    ),
    (
        "[server]\nadmin_token = { file = '/run/t', value = 'hunter2' }\n",
        &["`file` and `value` stand here, but only one may"],
    ),
    (
        "[pools.a]\nbackend = 'demo'\nconcurrency = '8'\n",
        &[":3:15: ", "\"8\" is text: write the number without quotes"],
    ),
    (
        "[pools.a]\nbackend = 'demo'\nconcurrency = 1.5\n",
        &["1.5 stands where a whole number is needed"],
    ),
    (
        "[pools.a]\nbackend = 'demo'\nconcurrency = -1\n",
        &["-1 is less than 0"],
    ),
    (
        "[limits]\nbody_bytes = '4MB'\n",
        &["\"4MB\" has a unit, but a whole number without one is needed"],
    ),
    (
        "[limits]\nrequests_per_connection = 5000000000\n",
        &["5000000000 is more than 4294967295"],
    ),
    (
        "[calls]\ntimeout = 30\n",
        &[":2:11: calls.timeout: 30 has no unit: write \"30s\" for seconds"],
    ),
    (
        "[calls]\ntimeout = '30'\n",
        &["calls.timeout: \"30\" is not a time with its unit"],
    ),
    (
        "[calls]\ntimeout = 'soon'\n",
        &["calls.timeout: \"soon\" is not a time with its unit, such as \"500ms\""],
    ),
    (
        "[logging]\nformat = 'yaml'\n",
        &["\"yaml\" is not one of \"pretty\", \"json\""],
    ),
    ("[logging]\nformat = 'JSON'\n", &["did you mean \"json\"?"]),
    (
        "[auth]\nmode = 'token'\n",
        &[":2:8: auth.mode: ", "did you mean \"tokens\"?"],
    ),
    (
        "[node]\nroles = ['edge', 'sesion', 'worker']\n",
        &["node.roles[1]: ", "did you mean \"session\"?"],
    ),
    (
        "[node]\nroles = 'edge'\n",
        &["node.roles: \"edge\" stands where a list is needed"],
    ),
    (
        "[auth.tokens]\nname = 'a'\n",
        &["auth.tokens: this is a list of tables: write [[auth.tokens]]"],
    ),
    (
        "[auth]\nmode = 'tokens'\n[[auth.tokens]]\nname = 'a'\n",
        &[":3:1: auth.tokens[0].sha256: it is not set, and has no default"],
    ),
    (
        "[auth]\nmode = 'tokens'\n[[auth.tokens]]\nname = 'a'\nsha256 = 'hunter2'\n",
        &[":5:10: auth.tokens[0].sha256: ", "64"],
    ),
    (
        "[pools.a]\nconcurrency = 3\n",
        &["pools.a.backend: it is not set, and has no default"],
    ),
    (
        "[pools.a]\nbackend = 'stdio'\n",
        &[":2:11: ", "write { stdio = { … } }"],
    ),
    (
        "[pools.a]\nbackend = 'magic'\n",
        &["\"magic\" is not one of \"demo\"", "{ stdio = { … } }"],
    ),
    (
        "[pools.a]\nbackend = { stdoi = { command = 'sh' } }\n",
        &[
            "pools.a.backend.stdoi: ",
            "did you mean pools.a.backend.stdio?",
        ],
    ),
    (
        "[[quotas]]\nname = 'q'\nper = 'user'\nrate = '1/s'\n",
        &["quotas[0].per: \"user\" is not one of \"principal\""],
    ),
    (
        "[[quotas]]\nname = 'q'\nper = 'all'\nrate = '10 per second'\n",
        &[":4:8: quotas[0].rate: \"10 per second\" is no rate: write"],
    ),
    (
        "[[server.operators]]\nname = 'a'\nsha256 = 'hunter2'\nrole = 'viewer'\n",
        &[":3:10: server.operators[0].sha256: a text is not 64"],
    ),
    (
        "[pools.a]\nbackend = 'demo'\nqueue_age = 'soon'\nlinger = 'soon'\nscale_to_zero = { wait = 'late' }\n",
        &[
            ":3:13: pools.a.queue_age: \"soon\" is not a time with its unit",
            ":4:10: pools.a.linger: \"soon\" is not a time with its unit",
            ":5:26: pools.a.scale_to_zero.wait: \"late\" is not a time with its unit",
        ],
    ),
    (
        "[pools.a.backend.http]\nurl = 'http://h/mcp'\nheaders = { Authorization = 7357 }\n",
        &["Authorization: a value stands where text is needed"],
    ),
    (
        "[[pools]]\nname = 'a'\n",
        &["pools: a list stands where a table is needed: write its settings below [pools.<name>]"],
    ),
    (
        "[limits]\nbody_bytes = 99999999999999999999\n",
        &[":2:14: this is not TOML: this number is too large"],
    ),
    (
        "[server]\nlisten = '0.0.0.0:8080'\n",
        &[":2:1: server.listen: ", "auth.mode = \"tokens\""],
    ),
    (
        "[server]\nallowed_origins = ['https://*.a.com']\n",
        &[":2:1: ", "would match nothing"],
    ),
    (
        "[server]\nallowed_hosts = ['*.a.com']\n",
        &["server.allowed_hosts: ", "would match nothing"],
    ),
    (
        "[server]\nallowed_origins = ['a.com']\n",
        &["is no origin as a browser sends it"],
    ),
    (
        "[pools.a]\nbackend = { stdio = { command = 'python3 server.py --fast' } }\n",
        &[
            ":2:23: ",
            "command = \"python3\", args = [\"server.py\", \"--fast\"]",
        ],
    ),
    (
        "[pools.a]\nbackend = { stdio = { command = '' } }\n",
        &["pools.a.backend.stdio.command: ", "program"],
    ),
    (
        "[pools.'My Tools']\nbackend = 'demo'\n",
        &["pools.\"My Tools\": ", "a-z"],
    ),
    (
        "[node]\nstore = 'localhost:6379'\n",
        &["node.store: ", "redis://"],
    ),
    (
        "[node]\nroles = ['worker']\n[pools.a]\nbackend = 'demo'\n",
        &[":2:1: node.roles: ", "--join"],
    ),
    (
        "[server\nlisten = '127.0.0.1:1'\n",
        &[":1:8: this is not TOML: "],
    ),
    (
        "[server]\nlisten = 127.0.0.1:8080\n",
        &[
            ":2:",
            "this is not TOML: this is no number: put text in quotes",
        ],
    ),
    (
        "[server]\nlisten: '127.0.0.1:1'\n",
        &[":2:", "this is not TOML: "],
    ),
    (
        "[server]\nhttp_sse = True\n",
        &[":2:12: this is not TOML: "],
    ),
    (
        "[server]\npath = '/a'\npath = '/b'\n",
        &[":3:1: this is not TOML: duplicate key"],
    ),
];

const IN_VARIABLES: &[(&str, &str, &[&str])] = &[
    (
        "SHOAL_SERVER__LISEN",
        "127.0.0.1:1",
        &[
            "SHOAL_SERVER__LISEN: server.lisen: ",
            "did you mean SHOAL_SERVER__LISTEN?",
        ],
    ),
    (
        "SHOAL_LISTEN__",
        "127.0.0.1:1",
        &[
            "SHOAL_LISTEN__: listen: ",
            "did you mean SHOAL_SERVER__LISTEN",
        ],
    ),
    (
        "SHOAL_CALLS__TIMEOUT",
        "30",
        &["SHOAL_CALLS__TIMEOUT: calls.timeout: 30 has no unit"],
    ),
    (
        "SHOAL_POOLS__A__CONCURRENCY",
        "many",
        &["\"many\" stands where a whole number is needed"],
    ),
    (
        "SHOAL_POOLS__A__COMMAND",
        "sh",
        &["did you mean SHOAL_POOLS__A__BACKEND__STDIO__COMMAND?"],
    ),
    (
        "SHOAL_NODE__ROLES",
        "edge,worker",
        &["node.roles: ", "put it in brackets"],
    ),
    (
        "SHOAL_SERVER__HTTP_SSE",
        "False",
        &["\"False\" stands where true or false is needed"],
    ),
    (
        "SHOAL_TELEMETRY__HEADERS",
        "authorization=hunter2",
        &["telemetry.headers: "],
    ),
    (
        "SHOAL_AUTH__TOKENS",
        "hunter2-hunter2",
        &["auth.tokens: a text stands where a list is needed"],
    ),
];

fn in_file(text: &str) -> Operator {
    operator().file(text)
}

#[track_caller]
fn expect(message: &str, what: &str, parts: &[&str]) {
    for part in parts {
        assert!(
            message.contains(part),
            "{part:?} is not in the answer to\n{what}\n{message}"
        );
    }
    // The random path of the file may contain "f64".
    let words = message.split(' ');
    let said: Vec<&str> = words.filter(|word| !word.contains("/shoal-")).collect();
    let said = said.join(" ");
    for word in FOREIGN {
        assert!(
            !said.contains(word),
            "{word:?} is in the answer to\n{what}\n{message}"
        );
    }
    assert!(
        !said.contains("hunter2") && !said.contains("7357"),
        "a secret is in the answer to\n{what}\n{message}"
    );
}

#[test]
fn each_mistake_in_a_file_is_answered_with_its_place_and_what_to_write() {
    assert!(IN_FILE.len() > 50);
    for (text, parts) in IN_FILE {
        let message = in_file(text).refusal();
        println!("{text}=> {message}\n");
        expect(&message, text, parts);
        assert!(message.contains("shoal.toml:"), "{message}");
    }
}

/// To check the rest, Shoal removes an unreadable value. If its table then breaks a rule, this is no second mistake.
#[test]
fn a_value_that_cannot_be_read_is_told_of_once() {
    for mistake in [
        "document = 'a.json'\nsecurity.key = { secret = 7357 }",
        "document = 'a.json'\nsecurity.key = { secrt = 'a' }",
        "document = 7357",
    ] {
        let message = in_file(&format!("[pools.a.backend.openapi]\n{mistake}\n")).refusal();
        assert!(!message.contains("2 errors"), "{message}");
    }
    // The name is a second mistake.
    for name in ["My Tools", "a.b", "a.b.c"] {
        let text = format!("[pools.'{name}']\nbackend = 'demo'\nprefix = 7357\n");
        let message = in_file(&text).refusal();
        assert!(message.contains("2 errors"), "{message}");
        let place = format!(":1:8: pools.\"{name}\": a pool's name begins");
        assert!(message.contains(&place), "{message}");
        let help = format!("pools.\"{name}\".prefix: Prefix of tool");
        assert!(message.contains(&help), "{message}");
    }
}

#[test]
fn each_mistake_in_a_variable_is_answered_in_its_words() {
    for (name, value, parts) in IN_VARIABLES {
        let message = operator().variable(name, value).refusal();
        println!("{name}={value}\n=> {message}\n");
        expect(&message, name, parts);
    }
}

#[test]
fn all_mistakes_are_answered_at_once_in_the_order_of_the_file() {
    let text = "[sever]\n[server]\nlisten = true\npath = 'mcp'\nallowed_origins = ['*.a.com', 'b.com']\n\
                [auth]\nmode = 'tokens'\n[[auth.tokens]]\nname = 'a'\nsha256 = 'x'\n[[auth.tokens]]\nname = 'b'\nsha256 = 'y'\n\
                [calls]\ntimeout = 'soon'\n[limits]\nconnections = 0\nrequests = 0\n[pools.a]\n[pools.b]\nbackend = 'demo'\nprefix = 'ä'\n";
    let both = in_file(text).variable("SHOAL_CALLS__ATTEMPTS", "few");
    let message = both.refusal();
    println!("{message}");
    let places = [
        "has 13 errors",
        ":1:2: sever",
        ":3:10: server.listen",
        ":4:1: server.path",
        ":5:1: server.allowed_origins: \"*.a.com\"",
        ":5:1: server.allowed_origins: \"b.com\"",
        ":10:10: auth.tokens[0].sha256",
        ":13:10: auth.tokens[1].sha256",
        ":15:11: calls.timeout",
        ":17:1: limits.connections",
        ":18:1: limits.requests",
        ":19:8: pools.a.backend",
        ":22:1: pools.b.prefix",
        "SHOAL_CALLS__ATTEMPTS: calls.attempts",
    ];
    let mut at = 0;
    for place in places {
        let found = message[at..].find(place);
        at += found.unwrap_or_else(|| panic!("{place:?} is missing, or not in order: {message}"));
    }
    // Consequences of a mistake are not reported.
    let typo = in_file(
        "[server]\nlisten = '0.0.0.0:1'\n[auth]\nmode = 'token'\n[[auth.tokens]]\nname = 'a'\nsha256 = 'x'\n",
    );
    assert!(
        !typo.refusal().contains("server.listen"),
        "{}",
        typo.refusal()
    );
}

#[test]
fn what_can_be_used_and_is_hardly_meant_is_warned_of_with_its_place() {
    let warned = |operator: Operator| -> Vec<String> {
        let loaded = operator.load().unwrap();
        loaded
            .warnings
            .iter()
            .chain(&loaded.absent)
            .map(ToString::to_string)
            .collect()
    };
    for (text, parts) in [
        (
            "[server]\nallowed_origins = ['*']\n",
            &[":2:1: server.allowed_origins: ", "ANY WEB PAGE"][..],
        ),
        (
            "[server]\nallowed_hosts = ['*']\n",
            &[":2:1: server.allowed_hosts: ", "rebinding"],
        ),
        (
            "[server]\nadmin_hosts = ['*']\n",
            &[":2:1: server.admin_hosts: ", "rebinding"],
        ),
        (
            "[auth]\nmode = 'tokens'\ntokens_file = '/no/tokens.toml'\n",
            &[":3:1: auth.tokens_file: /no/tokens.toml is not on this machine"],
        ),
        (
            "[policy]\nfile = '/no/rules.toml'\n",
            &[":2:1: policy.file: ", "not on this machine"],
        ),
        (
            "[pools.a]\nbackend = { openapi = { document = '/no/api.yaml' } }\n",
            &["pools.a.backend.openapi.document: /no/api.yaml is not"],
        ),
        (
            "[pools.a.backend.stdio]\ncommand = 'no-such-program'\n",
            &[":2:1: ", "\"no-such-program\" cannot be started", "PATH"],
        ),
        (
            "[pools.a.backend.stdio]\ncommand = 'sh'\ncwd = '/no/dir'\n",
            &[":3:1: ", "/no/dir is not on this machine"],
        ),
        (
            "[server.tls]\ncertificate = '/no/a.crt'\nkey = '/no/a.key'\n",
            &[":2:1: server.tls.certificate: /no/a.crt", "not on this"],
        ),
    ] {
        let all = warned(in_file(text)).join("\n");
        println!("{text}=> {all}\n");
        expect(&all, text, parts);
    }
    let single = operator().variable("SHOAL_SERVER_LISTEN", "0.0.0.0:80");
    let all = warned(single).join("\n");
    expect(
        &all,
        "",
        &[
            "SHOAL_SERVER_LISTEN",
            "it sets nothing",
            "SHOAL_SERVER__LISTEN",
        ],
    );
    let of_kubernetes = operator().variable("SHOAL_PORT_8080_TCP_ADDR", "10.0.0.1");
    assert_eq!(warned(of_kubernetes), [""; 0]);
}

#[test]
fn all_mistakes_of_a_list_are_told_and_none_that_follows_from_them() {
    let quotas = "[[quotas]]\nname = 'a'\nper = 'all'\nburst = 1\n\
                  [[quotas]]\nname = 'a'\nper = 'all'\nconcurrent = 0\n";
    for (text, parts) in [
        (
            "[[policy.rules]]\nname = 'x'\neffect = 'allow'\nhints = ['readonly']\n",
            &["policy.rules[0].hints[0]: "][..],
        ),
        (
            "[state_keys]\nkeys = [{ value = 'short' }, { file = '/no/key' }]\n",
            &["state_keys.keys[0]: ", "state_keys.keys[1]: "],
        ),
        (
            quotas,
            &["quotas[0]: ", "quotas[1]: ", "two quotas are called \"a\""],
        ),
        (
            "[pools.a]\nbackend = 'demo'\ntools = { rename = { echo = 'x', add = 'x' } }\n",
            &["\"add\" and \"echo\" are both called \"x\""],
        ),
    ] {
        let told = in_file(text).refusal();
        expect(&told, text, parts);
        assert!(!told.contains("cannot be used: an empty list"), "{told}");
    }
}

#[test]
fn a_hint_names_no_variable_that_cannot_be_set() {
    let told = in_file("[pools.\"bad name\"]\nbackend = 'demo'\nconcurrency = 'many'\n").refusal();
    assert!(
        told.contains("concurrency") && !told.contains("SHOAL_POOLS__BAD NAME"),
        "{told}"
    );
    let told = in_file("[pools.good]\nbackend = 'demo'\nconcurrency = 'many'\n").refusal();
    assert!(told.contains("SHOAL_POOLS__GOOD__CONCURRENCY"), "{told}");
}
