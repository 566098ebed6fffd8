use serde_json::{Map, Value};
use shoal_ports::{Principal, TokenFault};

use super::lookup::{find, name};
use crate::config::CLIENT_CLAIMS;
use crate::refused;

const LONGEST: usize = 512;
/// Claims that a user's login adds. A token with one of them is not its client's own.
const LOGIN_CLAIMS: [&str; 3] = ["sid", "session_state", "auth_time"];

/// Takes the first claim in `by` that the token has. `qualifier` goes before the name.
pub(super) fn of(
    claims: &Map<String, Value>,
    by: &[String],
    qualifier: &str,
) -> Result<Principal, TokenFault> {
    let is_empty = |value: &Value| value.as_str() == Some("");
    let mut found = by.iter().enumerate().filter_map(|(at, claim)| {
        let value = find(claims, claim).filter(|value| !is_empty(value))?;
        Some((at, claim.as_str(), value))
    });
    let Some((at, claim, value)) = found.next() else {
        let expected = "a text or a whole number that names the principal";
        let came = by.first().and_then(|claim| claims.get(claim));
        return Err(refused::claim(
            TokenFault::Claims,
            &by.join(", "),
            came,
            expected,
        ));
    };
    if at > 0 && CLIENT_CLAIMS.contains(&claim) {
        expect_nobody_logged_in(claims, by)?;
    }
    let wrong = || {
        let expected = "a text or a whole number that can name a principal";
        refused::claim(TokenFault::Claims, claim, Some(value), expected)
    };
    let text = name(value).ok_or_else(wrong)?;
    // Names from different claims must differ.
    let name = match at {
        0 if by.iter().any(|other| is_named_by(&text, other)) => return Err(wrong()),
        0 => format!("{qualifier}{text}"),
        _ => format!("{qualifier}{claim}:{text}"),
    };
    let fits = (1..=LONGEST).contains(&text.len()) && !text.chars().any(char::is_control);
    let principal = Principal::new(name);
    match fits && !principal.is_reserved() {
        true => Ok(principal),
        false => Err(wrong()),
    }
}

fn is_named_by(text: &str, claim: &str) -> bool {
    text.strip_prefix(claim)
        .is_some_and(|rest| rest.starts_with(':'))
}

/// Refuses a user's token if the principal is the client, because all users of the client would share one principal.
fn expect_nobody_logged_in(claims: &Map<String, Value>, by: &[String]) -> Result<(), TokenFault> {
    let login = LOGIN_CLAIMS
        .into_iter()
        .find(|claim| find(claims, claim).is_some());
    let Some(login) = login else {
        return Ok(());
    };
    let of_user: Vec<&str> = by.iter().map(String::as_str).collect();
    let of_user = of_user
        .into_iter()
        .filter(|claim| !CLIENT_CLAIMS.contains(claim));
    let expected = format!("the user who has logged in, since the token has `{login}`");
    let of_user = of_user.collect::<Vec<_>>().join(", ");
    Err(refused::claim(
        TokenFault::Claims,
        &of_user,
        None,
        &expected,
    ))
}
