//! Attacks on real processes from the outside: each is a row with the expected answer.
//!
//! `cargo test --workspace --test attack -- --nocapture` prints the table.
#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "e2e/client.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod client;
#[path = "attack/harness.rs"]
mod harness;
#[path = "attack/hidden.rs"]
mod hidden;
#[path = "attack/http2.rs"]
mod http2;
#[path = "attack/keys.rs"]
mod keys;
#[path = "attack/leakage.rs"]
mod leakage;
#[path = "attack/mismatch.rs"]
mod mismatch;
#[path = "attack/other_principals.rs"]
mod other_principals;
#[path = "e2e/process.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod process;
#[path = "attack/rebinding.rs"]
mod rebinding;
#[path = "attack/revoked.rs"]
mod revoked;
#[path = "attack/slow.rs"]
mod slow;
#[path = "attack/smuggling.rs"]
mod smuggling;
#[path = "attack/ssrf.rs"]
mod ssrf;
#[path = "attack/tokens.rs"]
mod tokens;

#[tokio::test]
async fn every_attack_gets_the_answer_that_is_due() {
    let cluster = other_principals::Cluster::start().await;
    // These families run at once, because they mostly wait, for example for authorization servers that do not answer.
    let (keys, ssrf, revoked) = tokio::join!(keys::family(), ssrf::family(), revoked::family());
    let families = [
        tokens::family().await,
        keys,
        revoked,
        other_principals::family(&cluster).await,
        hidden::family(&cluster).await,
        smuggling::family().await,
        rebinding::family().await,
        mismatch::family().await,
        slow::family().await,
        ssrf,
        leakage::family().await,
    ];
    harness::judge(&families);
}
