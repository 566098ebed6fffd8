use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{Output, output};

struct Directory(TempDir);

impl Directory {
    fn new(settings: &str) -> Self {
        let it = Self(tempfile::tempdir().unwrap());
        it.write("shoal.toml", settings);
        it
    }

    fn write(&self, name: &str, text: &str) {
        let text = text.replace("HERE", self.0.path().to_str().unwrap());
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn config(&self) -> String {
        self.0.path().join("shoal.toml").display().to_string()
    }

    async fn check(&self, arguments: &[&str]) -> Output {
        let config = self.config();
        output(
            &[&["config", "check", "--config", &config], arguments].concat(),
            "",
        )
        .await
    }
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_by_the_check_and_by_the_start() {
    let directory = Directory::new(
        "[server]\nlisen = '127.0.0.1:0'\n[calls]\ntimeout = 30\n[pools.a.backend.stdio]\ncommand = 'python3 no-such-server.py'\n",
    );
    let checked = directory.check(&[]).await;
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (2, ""),
        "{}",
        checked.stderr
    );
    let config = directory.config();
    for part in [
        "shoal: the configuration has 3 errors\n".to_owned(),
        format!(
            "\n  {config}:2:1: server.lisen: there is no such setting; did you mean server.listen?\n"
        ),
        format!("\n  {config}:4:11: calls.timeout: 30 has no unit: write \"30s\""),
        format!(
            "\n  {config}:6:1: pools.a.backend.stdio.command: Shoal starts one program and no shell"
        ),
    ] {
        assert!(checked.stderr.contains(&part), "{part}\n{}", checked.stderr);
    }
    let served = output(&["serve", "--config", &config], "").await;
    assert_eq!((served.code, served.stderr), (2, checked.stderr));
    let told = directory.check(&["--output", "json"]).await;
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let findings = told["error"]["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 3, "{told}");
    let first = &findings[0];
    assert_eq!(first["setting"], "server.lisen");
    assert_eq!((&first["line"], &first["column"]), (&json!(2), &json!(1)));
    assert!(
        first["message"].as_str().unwrap().contains("did you mean"),
        "{first}"
    );
}

#[tokio::test]
async fn files_are_opened_where_they_are_and_missed_where_they_are_not() {
    let settings = "[auth]\nmode = 'tokens'\ntokens_file = 'HERE/tokens.toml'\n[policy]\nfile = 'HERE/rules.toml'\n\
                    [pools.api]\nconcurrency_per_principal = 8\n\
                    [pools.api.backend.openapi]\ndocument = 'HERE/api.yaml'\n";
    let directory = Directory::new(settings);
    let checked = directory.check(&[]).await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(
        checked
            .stdout
            .starts_with("the configuration can be used, with 3 warnings\n"),
        "{}",
        checked.stdout
    );
    for (place, name) in [
        (":3:1: auth.tokens_file: ", "tokens.toml"),
        (":5:1: policy.file: ", "rules.toml"),
        (":9:1: pools.api.backend.openapi.document: ", "api.yaml"),
    ] {
        let lines = checked.stdout.lines();
        let warning = lines.filter(|line| line.contains("warning: ") && line.contains(place));
        let warning: Vec<&str> = warning.collect();
        assert!(
            warning.len() == 1 && warning[0].contains(name),
            "{place}: {}",
            checked.stdout
        );
    }
    let hash = "a".repeat(64);
    directory.write("api.yaml", "openapi: 3.1.0\n");
    directory.write("rules.toml", "[[rules]]\nname = 'all'\neffect = 'allow'\n");
    directory.write(
        "tokens.toml",
        &format!("[[tokens]]\nname = 'a'\nsha256 = '{hash}'\n"),
    );
    let checked = directory.check(&[]).await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(!checked.stdout.contains("warning"), "{}", checked.stdout);
    for (name, text, part) in [
        ("tokens.toml", "[[token]]\n", "auth.tokens_file: "),
        ("rules.toml", "[[rules]]\nname = 'all'\n", "policy.file: "),
    ] {
        let directory = Directory::new(settings);
        directory.write(name, text);
        let checked = directory.check(&[]).await;
        assert_eq!(checked.code, 2, "{}", checked.stdout);
        assert!(
            checked.stderr.contains(part) && checked.stderr.contains(name),
            "{}",
            checked.stderr
        );
    }
}

#[tokio::test]
async fn a_configuration_without_a_pool_is_warned_of() {
    let directory = Directory::new("[server]\nlisten = '127.0.0.1:0'\n");
    let checked = directory.check(&[]).await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(
        checked.stdout.contains("warning: pools: there is none"),
        "{}",
        checked.stdout
    );
    let told = directory.check(&["--output", "json"]).await;
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(told["warnings"].as_array().unwrap().len(), 1, "{told}");
}

#[tokio::test]
async fn an_issuer_that_could_take_no_token_is_told_with_what_to_write() {
    let settings = |issuer: &str| {
        format!(
            "[auth]\nmode = 'oauth'\nresource = 'https://mcp.example.com/mcp'\n[[auth.issuers]]\n{issuer}\n[pools.a]\nbackend = 'demo'\n"
        )
    };
    let pool = "issuer_kind = 'cognito'\nissuer = 'https://cognito-idp.us-west-2.amazonaws.com/us-west-2_EXAMPLE'";
    let common = "issuer_kind = 'entra'\nissuer = 'https://login.microsoftonline.com/common/v2.0'\naudience = ['a']";
    for (issuer, due) in [
        (pool, "list the ids of your clients in clients"),
        (
            common,
            "list in tenants the ids of those whose tokens are taken",
        ),
        ("issuer_kind = 'entraa'", "\"entra\""),
        (
            "issuer = 'https://id.example.com'\nprincipal_claim = 'oid'",
            "principal_claims",
        ),
    ] {
        let checked = Directory::new(&settings(issuer)).check(&[]).await;
        assert_eq!(checked.code, 2, "{}", checked.stderr);
        assert!(
            checked.stderr.contains("auth.issuers"),
            "{}",
            checked.stderr
        );
        assert!(checked.stderr.contains(due), "{}", checked.stderr);
    }
    let sound = format!("{pool}\nclients = ['1example23456789']");
    let checked = Directory::new(&settings(&sound)).check(&[]).await;
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}

#[tokio::test]
async fn the_files_of_redis_are_looked_at() {
    let settings = "[node]\nstore = 'rediss://127.0.0.1:1'\n[redis]\nuser = 'shoal'\npassword = { file = 'HERE/password' }\n\
                    tls = { authority = 'HERE/ca.crt' }\n[pools.a]\nbackend = 'demo'\n";
    let directory = Directory::new(settings);
    let absent = directory.check(&[]).await;
    assert_eq!(absent.code, 0, "{}", absent.stderr);
    for setting in ["redis.password", "redis.tls.authority"] {
        assert!(absent.stdout.contains(setting), "{}", absent.stdout);
    }
    directory.write("password", "secret\n");
    directory.write("ca.crt", "no certificate\n");
    let wrong = directory.check(&[]).await;
    assert_eq!(wrong.code, 2, "{}", wrong.stdout);
    assert!(
        wrong.stderr.contains("ca.crt has no certificate in PEM"),
        "{}",
        wrong.stderr
    );
}
