//! Checks who may call, and who may operate.

use shoal_ports::Principal;

use super::{AuthMode, BrokenRule, Settings};

pub(super) fn anonymous(settings: &Settings) -> Result<(), BrokenRule> {
    let auth = &settings.auth;
    let open = auth.mode == AuthMode::None && !settings.server.listen.ip().is_loopback();
    if !open || auth.allow_anonymous {
        return Ok(());
    }
    Err(BrokenRule::new(
        "server.listen",
        format!(
            "{} can be reached by other machines, and auth.mode = \"none\" would let everybody there call \
             every tool: set auth.mode = \"tokens\", listen on 127.0.0.1, or accept it with \
             auth.allow_anonymous = true",
            settings.server.listen
        ),
    ))
}

pub(super) fn tokens(settings: &Settings) -> Result<(), BrokenRule> {
    let auth = &settings.auth;
    if auth.mode == AuthMode::Tokens && auth.tokens.is_empty() && auth.tokens_file.is_none() {
        return Err(BrokenRule::new(
            "auth.mode",
            "\"tokens\" needs at least one entry in auth.tokens, or auth.tokens_file, or nobody can call",
        ));
    }
    if auth.mode == AuthMode::None && auth.tokens_file.is_some() {
        return Err(BrokenRule::new(
            "auth.tokens_file",
            "tokens are given but not asked for: set auth.mode = \"tokens\"",
        ));
    }
    if auth.mode == AuthMode::None && !auth.tokens.is_empty() {
        return Err(BrokenRule::new(
            "auth.tokens",
            "tokens are given but not asked for: set auth.mode = \"tokens\"",
        ));
    }
    for (at, token) in auth.tokens.iter().enumerate() {
        if token.name.is_empty() {
            return Err(BrokenRule::new("auth.tokens", "a token needs a name"));
        }
        if Principal::new(token.name.as_str()).is_reserved() {
            let name = &token.name;
            let reserved = format!("the name {name:?} is reserved for Shoal itself: use another");
            return Err(BrokenRule::new("auth.tokens", reserved));
        }
        let twice = auth.tokens[..at]
            .iter()
            .find(|earlier| earlier.sha256 == token.sha256);
        if let Some(earlier) = twice {
            return Err(BrokenRule::new(
                "auth.tokens",
                format!(
                    "{:?} and {:?} have the same token: each needs its own",
                    earlier.name, token.name
                ),
            ));
        }
    }
    Ok(())
}

pub(super) fn oauth(settings: &Settings) -> Result<(), BrokenRule> {
    let checked = settings.auth.check();
    checked.map_err(|bad| BrokenRule::new(format!("auth.{}", bad.setting), bad.reason))
}

pub(super) fn console(settings: &Settings) -> Result<(), BrokenRule> {
    let token = settings.server.admin_token.as_ref();
    token
        .map_or(Ok(()), |token| token.read_token().map(drop))
        .map_err(|reason| BrokenRule::new("server.admin_token", reason))?;
    let operators = &settings.server.operators;
    for (at, operator) in operators.iter().enumerate() {
        let wrong = |problem| Err(BrokenRule::new(format!("server.operators[{at}]"), problem));
        if operator.name.trim().is_empty() {
            return wrong("needs a name, which logs and the audit trail give");
        }
        if operators[..at]
            .iter()
            .any(|other| other.sha256 == operator.sha256)
        {
            return wrong("has the token of one before: nobody could tell who does something");
        }
    }
    Ok(())
}
