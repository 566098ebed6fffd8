use shoal_ports::Principal;

use super::super::{Operator, SecretSource, Token};
use super::{AuthMode, Broken, Settings};

pub(super) fn anonymous(settings: &Settings, broken: &mut Broken) {
    let auth = &settings.auth;
    let open = auth.mode == AuthMode::None && !settings.server.listen.ip().is_loopback();
    if open && !auth.allow_anonymous {
        broken.add(
            "server.listen",
            format!(
                "{} can be reached by other machines, and auth.mode = \"none\" would let everybody there call \
                 every tool: set auth.mode = \"tokens\", listen on 127.0.0.1, or accept it with \
                 auth.allow_anonymous = true",
                settings.server.listen
            ),
        );
    }
}

pub(super) fn tokens(settings: &Settings, broken: &mut Broken) {
    let auth = &settings.auth;
    if auth.mode == AuthMode::Tokens && auth.tokens.is_empty() && auth.tokens_file.is_none() {
        broken.add(
            "auth.mode",
            "\"tokens\" needs at least one entry in auth.tokens, or auth.tokens_file, or nobody can call",
        );
    }
    let given = [
        ("auth.tokens_file", auth.tokens_file.is_some()),
        ("auth.tokens", !auth.tokens.is_empty()),
    ];
    for (setting, _) in given
        .iter()
        .filter(|(_, given)| *given && auth.mode == AuthMode::None)
    {
        broken.add(
            *setting,
            "tokens are given but not asked for: set auth.mode = \"tokens\"",
        );
    }
    for (at, token) in auth.tokens.iter().enumerate() {
        let setting = format!("auth.tokens[{at}]");
        if token.name.is_empty() {
            broken.add(setting.as_str(), "a token needs a name");
        } else if Principal::new(token.name.as_str()).is_reserved() {
            let name = &token.name;
            broken.add(
                setting.as_str(),
                format!("the name {name:?} is reserved for Shoal itself: use another"),
            );
        }
        let same = |earlier: &&Token| earlier.sha256 == token.sha256;
        if let Some(earlier) = auth.tokens[..at].iter().find(same) {
            let (one, other) = (&earlier.name, &token.name);
            broken.add(
                setting.as_str(),
                format!("{one:?} and {other:?} have the same token: each needs its own"),
            );
        }
    }
}

pub(super) fn oauth(settings: &Settings, broken: &mut Broken) {
    if let Err(bad) = settings.auth.check() {
        broken.add(format!("auth.{}", bad.setting), bad.reason);
    }
}

pub(super) fn console(settings: &Settings, broken: &mut Broken) {
    let token = settings.server.admin_token.as_ref();
    if let Some(Err(reason)) = token.map(SecretSource::read_token) {
        broken.add("server.admin_token", reason);
    }
    let operators = &settings.server.operators;
    for (at, operator) in operators.iter().enumerate() {
        let setting = format!("server.operators[{at}]");
        if operator.name.trim().is_empty() {
            broken.add(
                setting.as_str(),
                "needs a name, which logs and the audit trail give",
            );
        }
        let same = |other: &Operator| other.sha256 == operator.sha256;
        if operators[..at].iter().any(same) {
            broken.add(
                setting.as_str(),
                "has the token of one before: nobody could tell who does something",
            );
        }
    }
}
