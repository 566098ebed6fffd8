use super::operator;

fn warned(file: &str) -> Vec<String> {
    let loaded = operator().file(file).load().unwrap();
    loaded.warnings.iter().map(ToString::to_string).collect()
}

const TLS: &str = "[cluster.tls]\ncertificate = '/a'\nkey = '/b'\nauthority = '/c'\n";

#[test]
fn defaults_are_not_dangerous() {
    assert_eq!(warned(""), Vec::<String>::new());
}

#[test]
fn a_cluster_port_that_others_reach_wants_tls() {
    let open = "[cluster]\ninsecure = true\nlisten = '0.0.0.0:7001'\nadvertise = 'a:7001'\n";
    let [said] = &warned(open)[..] else {
        panic!("{:?}", warned(open))
    };
    for part in [
        "cluster.listen",
        "0.0.0.0:7001",
        "join as a worker",
        "cluster.tls",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let half = format!("{open}{TLS}allow_plaintext = true\n");
    assert!(warned(&half)[0].contains("cluster.tls.allow_plaintext"));
    assert!(warned(&format!("{open}{TLS}")).is_empty());
    assert!(warned("[cluster]\nlisten = '127.0.0.1:7001'\n").is_empty());
}

#[test]
fn a_cluster_port_without_tls_that_others_reach_needs_a_word() {
    let open = "[cluster]\nlisten = '10.0.0.1:7001'\n";
    let refused = operator().file(open).load().unwrap_err().to_string();
    for part in [
        "cluster.listen",
        "10.0.0.1:7001",
        "[cluster.tls]",
        "cluster.insecure = true",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    for fine in [
        format!("{open}{TLS}"),
        format!("{open}insecure = true\n"),
        "[cluster]\nlisten = '[::1]:7001'\n".to_owned(),
    ] {
        assert!(operator().file(&fine).load().is_ok(), "{fine}");
    }
}

#[test]
fn everybody_who_may_call_is_worth_a_warning() {
    let open = "[server]\nlisten = '0.0.0.0:8080'\n[auth]\nallow_anonymous = true\n";
    let said = warned(open);
    assert!(
        said[0].contains("server.listen") && said[0].contains("auth.mode"),
        "{said:?}"
    );
    let worker = format!("{open}[node]\nroles = ['worker']\n[cluster]\njoin = ['a:1']\n");
    assert!(warned(&worker).is_empty(), "nobody calls a worker");
}

#[test]
fn rules_that_only_deny_are_worth_a_warning() {
    let rule = |effect: &str| {
        format!("[[policy.rules]]\nname = '{effect}'\neffect = '{effect}'\ntools = ['a']\n")
    };
    let said = warned(&rule("deny"));
    assert!(
        matches!(&said[..], [said] if said.contains("policy.rules") && said.contains("effect = \"allow\"")),
        "{said:?}"
    );
    for other in ["allow", "ask"] {
        let rules = rule("deny") + &rule(other);
        assert!(warned(&rules).is_empty(), "{other}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.toml");
    let with_file = format!("[policy]\nfile = '{}'\n", file.display());
    let and_rule = format!("{with_file}{}", rule("deny"));
    assert!(
        warned(&and_rule).is_empty(),
        "nobody knows what the file allows"
    );
    let in_file =
        |effect: &str| format!("[[rules]]\nname = 'b'\neffect = '{effect}'\ntools = ['b']\n");
    for (text, both, alone) in [
        (in_file("deny"), true, true),
        (in_file("allow"), false, false),
        ("rules = []".to_owned(), true, false),
    ] {
        std::fs::write(&file, &text).unwrap();
        for (config, expected) in [(&and_rule, both), (&with_file, alone)] {
            let said = warned(config);
            assert_eq!(
                said.len(),
                usize::from(expected),
                "{text} {config} {said:?}"
            );
            assert!(
                said.iter().all(|said| said.contains("rules.toml) deny")),
                "{said:?}"
            );
        }
    }
    let worker = format!(
        "{}[node]\nroles = ['worker']\n[cluster]\njoin = ['a:1']\n",
        rule("deny")
    );
    assert!(warned(&worker).is_empty(), "a worker decides nothing");
}

#[test]
fn edges_of_one_cluster_want_one_key() {
    let shared = "[node]\nstore = 'redis://127.0.0.1'\n";
    assert!(warned(shared)[0].contains("state_keys.keys"));
}

#[test]
fn a_setting_of_an_earlier_release_is_read_and_said_to_be_of_no_effect() {
    let [said] = &warned("[session]\ndoze_after = '2s'\n")[..] else {
        panic!("one warning");
    };
    for part in ["session.doze_after", "no effect", "take it out"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn places_that_one_of_several_principals_may_have_alone_are_worth_a_warning() {
    let token =
        |name: &str, digit: &str| format!("{{ name = '{name}', sha256 = '{}' }}", digit.repeat(64));
    let (one, other) = (token("a", "1"), token("b", "2"));
    let pool = "[pools.slow]\nbackend = 'demo'\n";
    let of = |tokens: &str, pool: &str| {
        warned(&format!(
            "[auth]\nmode = 'tokens'\ntokens = [{tokens}]\n{pool}"
        ))
    };
    let both = format!("{one}, {other}");
    let said = of(&both, pool);
    assert!(
        matches!(&said[..], [said] if said.contains("slow") && said.contains("concurrency_per_principal")),
        "{said:?}"
    );
    let in_file = warned(&format!(
        "[auth]\nmode = 'tokens'\ntokens_file = '/tokens.toml'\n{pool}"
    ));
    let place = said[0].find("pools: ").unwrap();
    assert!(
        matches!(&in_file[..], [warning] if warning.ends_with(&said[0][place..])),
        "{in_file:?}"
    );
    let shared = format!("{pool}concurrency_per_principal = 96\n");
    let single = format!("{pool}concurrency = 1\n");
    for fine in [
        of(&one, pool),
        of(&both, &shared),
        of(&both, &single),
        warned(pool),
    ] {
        assert_eq!(fine, Vec::<String>::new());
    }
}
