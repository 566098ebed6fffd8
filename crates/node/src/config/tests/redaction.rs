use super::operator;

const SECRET: &str = "correct-horse-battery-staple";

#[test]
fn settings_in_force_are_shown_without_secrets() {
    let hash = "ab".repeat(32);
    let file = format!(
        "[server]\nadmin_token = {{ value = '{SECRET}-3' }}\n\
         [auth]\nmode = 'tokens'\ntokens = [{{ name = 'alice', sha256 = '{hash}' }}]\n\
         [state_keys]\nkeys = [{{ value = '{SECRET}' }}, {{ value = '{SECRET}-2' }}]\n\
         [pools.p.backend.stdio]\ncommand = 'x'\nenv = {{ API_KEY = '{SECRET}' }}\n\
         [telemetry]\nheaders = {{ authorization = '{SECRET}' }}\n"
    );
    let settings = operator().file(&file).settings();
    let shown = toml::to_string_pretty(&settings).unwrap();
    for printed in [shown.clone(), format!("{settings:?}")] {
        assert!(!printed.contains(SECRET), "{printed}");
        assert!(!printed.contains(&hash), "{printed}");
    }
    assert_eq!(shown.matches("(redacted)").count(), 6);
    assert!(shown.contains("alice") && shown.contains("API_KEY"));
}

#[test]
fn messages_do_not_repeat_secrets() {
    for (name, value) in [
        ("SHOAL_STATE_KEYS__KEYS", SECRET.to_owned()),
        ("SHOAL_STATE_KEYS__KEYS", format!("['{SECRET}']")),
        (
            "SHOAL_STATE_KEYS__KEYS",
            format!("[{{ value = ['{SECRET}'] }}]"),
        ),
        ("SHOAL_SERVER__ADMIN_TOKEN", SECRET.to_owned()),
        (
            "SHOAL_SERVER__ADMIN_TOKEN",
            format!("{{ value = ['{SECRET}'] }}"),
        ),
        ("SHOAL_AUTH__TOKENS", SECRET.to_owned()),
        ("SHOAL_TELEMETRY__HEADERS", SECRET.to_owned()),
        (
            "SHOAL_TELEMETRY__HEADERS",
            format!("{{ authorization = ['{SECRET}'] }}"),
        ),
        (
            "SHOAL_AUTH__TOKENS",
            format!("[{{ name = 'alice', sha256 = '{SECRET}' }}]"),
        ),
        (
            "SHOAL_POOLS__P__BACKEND",
            format!("{{ stdio = {{ command = 'x', env = '{SECRET}' }} }}"),
        ),
    ] {
        let message = operator().variable(name, &value).refusal();
        assert!(!message.contains(SECRET), "{message}");
        assert!(
            message.contains("needed") || message.contains("is not"),
            "{message}"
        );
    }
    let broken = operator().file(&format!("[state_keys]\nkeys = [{{ value = '{SECRET}' }}\n"));
    assert!(!broken.refusal().contains(SECRET), "{}", broken.refusal());
}

#[test]
fn secrets_may_stand_in_files() {
    let key = operator().file("  0123456789abcdef0123456789abcdef \n");
    let path = key.file.clone().unwrap();
    let keys = |text: &str| {
        let text = text.replace("PATH", path.to_str().unwrap());
        operator().variable("SHOAL_STATE_KEYS__KEYS", &text)
    };
    let settings = keys("[{ file = 'PATH' }]").settings();
    assert!(settings.state_keys.key_ring().is_ok());
    let missing = keys("[{ file = 'PATH.gone' }]").refusal();
    assert!(
        missing.contains("state_keys.keys") && missing.contains(".gone"),
        "{missing}"
    );
    let short = keys("[{ value = 'short' }]").refusal();
    assert!(short.contains("at least 16"), "{short}");
}

#[test]
fn the_consoles_token_is_checked_and_never_repeated() {
    let token = |text: &str| operator().variable("SHOAL_SERVER__ADMIN_TOKEN", text);
    let fine = token(&format!("{{ value = '{SECRET}' }}")).settings();
    let read = fine.server.admin_token.unwrap().read_token().unwrap();
    assert_eq!(read.expose(), SECRET);
    for (value, says) in [
        ("{ value = 'too-short' }", "at least 16"),
        ("{ value = 'sixteen bytes or more' }", "without spaces"),
        ("{ file = '/does/not/exist' }", "/does/not/exist"),
    ] {
        let refusal = token(value).refusal();
        assert!(refusal.contains("server.admin_token"), "{refusal}");
        assert!(refusal.contains(says), "{refusal}");
        assert!(
            !refusal.contains("too-short") && !refusal.contains("sixteen"),
            "{refusal}"
        );
    }
}
