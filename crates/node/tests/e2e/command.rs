use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::process::{Bridge, SOON, shoal};

pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) async fn output(arguments: &[&str], input: &str) -> Output {
    let mut command = shoal(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may have exited.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = timeout(SOON, child.wait_with_output()).await.unwrap();
    let output = output.unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// `shoal config check` succeeds, because an operator may run it on a machine without the files. `shoal serve` needs
/// the files.
#[tokio::test]
async fn certificates_that_cannot_be_used_end_the_start_with_exit_code_2() {
    let directory = std::env::temp_dir().join(format!("shoal-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("shoal.toml");
    let settings = "[cluster.tls]\ncertificate = '/nowhere/tls.crt'\nkey = '/nowhere/tls.key'\n\
                    authority = '/nowhere/ca.crt'\n[pools.demo]\nbackend = 'demo'\n";
    std::fs::write(&file, settings).unwrap();
    let file = file.to_str().unwrap();
    let checked = output(&["config", "check", "--config", file], "").await;
    let served = output(&["serve", "--config", file], "").await;
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert_eq!(served.code, 2, "{}", served.stderr);
    let message = served.stderr.lines().last().unwrap();
    for part in [
        "cluster.tls",
        "certificate /nowhere/tls.crt",
        "cannot be read",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(served.stdout, "");
}

/// Other processes would not accept this certificate from a node.
#[tokio::test]
async fn a_node_with_the_certificate_of_a_pools_worker_does_not_start() {
    let directory = std::env::temp_dir().join(format!("shoal-pool-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let place = |name: &str| directory.join(name).display().to_string();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names = ["shoal", "other.pool.shoal"].map(str::to_owned);
    let key = KeyPair::generate().unwrap();
    let issued = CertificateParams::new(names).unwrap();
    let issued = issued.signed_by(&key, &authority).unwrap();
    std::fs::write(place("ca.crt"), authority.pem()).unwrap();
    std::fs::write(place("tls.crt"), issued.pem()).unwrap();
    std::fs::write(place("tls.key"), key.serialize_pem()).unwrap();
    let settings = format!(
        "[node]\nroles = ['edge', 'session']\nstore = 'redis://127.0.0.1:1'\n[cluster]\nlisten = '127.0.0.1:0'\n\
         [cluster.tls]\ncertificate = '{}'\nkey = '{}'\nauthority = '{}'\n[pools.demo]\nbackend = 'demo'\n",
        place("tls.crt"),
        place("tls.key"),
        place("ca.crt"),
    );
    std::fs::write(place("shoal.toml"), settings).unwrap();
    let file = place("shoal.toml");
    for command in [&["config", "check"][..], &["serve"]] {
        let ended = output(&[command, &["--config", &file]].concat(), "").await;
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let message = ended.stderr.lines().last().unwrap();
        for part in [
            "tls.crt: is for workers of the pools other",
            "edge or session",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn what_cannot_be_done_is_said_once_with_exit_code_2() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (arguments, part) in [
        (&["serve", "--roles", "edge"][..], "--store redis://"),
        (&["serve", "--store", "disk"], "redis://"),
        (&["serve", "--roles", "worker"], "--join"),
        (&["serve", "--listen", "0.0.0.0:0"], "auth.allow_anonymous"),
        (&["serve", "--config", "/does/not/exist"], "cannot be read"),
        (&["serve", "--config", file], "there is no such setting"),
        (&["serve", "--port", "1"], "--port"),
        (&["stdio"], "nothing to serve"),
        (&["stdio", "--url", "nonsense"], "http://HOST:PORT/mcp"),
    ] {
        let output = output(arguments, "").await;
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(
            output.stderr.contains(part),
            "{arguments:?}: {}",
            output.stderr
        );
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = output(&["serve", "--demo", "--listen", &address], "").await;
    assert_eq!(output.code, 1);
    for part in [&address, "server.listen", "in use"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[tokio::test]
async fn a_server_that_is_not_in_the_program_is_refused_by_the_check_as_by_the_start() {
    let settings = [
        ("SHOAL_POOLS__OWN__BACKEND", "handler"),
        ("SHOAL_CLUSTER__LISTEN", "127.0.0.1:0"),
    ];
    let said = async |arguments: &[&str], roles: &str| {
        let mut command = shoal(arguments);
        command.envs(settings).env("SHOAL_NODE__ROLES", roles);
        let output = command.output().await.unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let all = "['edge', 'session', 'worker']";
    let checked = said(&["config", "check"], all).await;
    assert_eq!(checked.0, Some(2), "{}", checked.1);
    assert!(checked.1.contains("is built in"), "{}", checked.1);
    assert_eq!(said(&["serve"], all).await, checked);
    let elsewhere = said(&["config", "check"], "['edge', 'session']").await;
    assert_eq!(elsewhere.0, Some(0), "{}", elsewhere.1);
}

#[tokio::test]
async fn the_configuration_is_checked_shown_and_documented() {
    let check = output(&["config", "check"], "").await;
    assert_eq!(check.code, 0);
    assert!(check.stdout.contains("can be used"));
    let show = output(&["config", "show"], "").await;
    assert!(show.stdout.contains("[server]") && show.stdout.contains("127.0.0.1:8080"));
    let doc = output(&["config", "doc"], "").await;
    assert!(doc.stdout.starts_with("# Configuration"));
    let schema = output(&["config", "schema"], "").await;
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert!(schema["properties"]["server"].is_object());
    let hash = output(&["config", "hash-token"], "secret\n").await;
    let secret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    assert_eq!(hash.stdout.trim(), secret);
}

#[tokio::test]
async fn the_version_is_printed() {
    let version = output(&["--version"], "").await;
    assert_eq!(
        version.stdout.trim(),
        concat!("shoal ", env!("CARGO_PKG_VERSION"))
    );
}

#[tokio::test]
async fn what_is_dangerous_is_said_by_the_check_and_at_the_start() {
    let file = std::env::temp_dir().join(format!("shoal-warned-{}.toml", std::process::id()));
    let settings = "[cluster]\ninsecure = true\nlisten = '0.0.0.0:0'\nadvertise = 'localhost:1'\n[pools.demo]\nbackend = 'demo'\n";
    std::fs::write(&file, settings).unwrap();
    let file = file.to_str().unwrap();
    let checked = output(&["config", "check", "--config", file], "").await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(
        checked
            .stdout
            .contains("cluster.listen: NO TLS BETWEEN PROCESSES"),
        "{}",
        checked.stdout
    );
    let arguments = [
        "serve",
        "--config",
        file,
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ];
    let mut process = shoal(&arguments);
    process.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("NO TLS BETWEEN PROCESSES") {
                return;
            }
        }
        panic!("nothing was said");
    };
    timeout(SOON, said).await.unwrap();
    child.kill().await.unwrap();
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_be_started_ends_the_start_with_exit_code_2() {
    for command in ["serve", "stdio"] {
        for (server, reason) in [
            ("no-such-program-anywhere", "no such program on the PATH"),
            ("/etc/passwd", "not executable"),
        ] {
            let output = output(&[command, "--", server], "").await;
            assert_eq!(output.code, 2, "{command} {server}: {}", output.stderr);
            assert!(output.stderr.contains(reason), "{}", output.stderr);
            assert_eq!(output.stdout, "");
        }
        let words = [command, "--env", "NO_SUCH_VARIABLE", "--", "sh"];
        let output = output(&words, "").await;
        assert_eq!(output.code, 2, "{command}: {}", output.stderr);
        assert!(
            output.stderr.contains("NO_SUCH_VARIABLE=VALUE"),
            "{}",
            output.stderr
        );
    }
}

#[tokio::test]
async fn a_server_that_ends_before_it_is_ready_ends_the_start_too() {
    let opened = "import json, sys
opening = json.loads(sys.stdin.readline())
result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}
print(json.dumps({'jsonrpc': '2.0', 'id': opening['id'], 'result': result}), flush=True)
";
    let at_once = "import sys; sys.exit('no licence')";
    let at_its_lists = format!("{opened}sys.exit('no licence')");
    let refuses = format!(
        "{opened}for line in sys.stdin:
    message = json.loads(line)
    if 'id' in message:
        error = {{'code': -32603, 'message': 'no licence'}}
        print(json.dumps({{'jsonrpc': '2.0', 'id': message['id'], 'error': error}}), flush=True)
"
    );
    let servers = [
        (at_once, "exit status: 1"),
        (&at_its_lists, "exit status: 1"),
        (&refuses, "its lists could not be read"),
    ];
    for (server, reason) in servers {
        let given = ["--", "python3", "-c", server];
        let parts = ["cannot start the server `python3", reason, "no licence"];
        let mut words = vec!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        words.extend(given);
        let output = output(&words, "").await;
        assert_eq!(output.code, 1, "{}", output.stderr);
        for part in parts {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
        let bridge = Bridge::start(&given);
        for part in parts {
            bridge.said(part).await;
        }
        assert_eq!(bridge.end().await.0, 1);
    }
}

#[tokio::test]
async fn whoever_has_read_enough_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = shoal(&["config", "doc"]);
    command.stdout(writer).stderr(Stdio::piped());
    let output = timeout(SOON, command.output()).await.unwrap().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
}
