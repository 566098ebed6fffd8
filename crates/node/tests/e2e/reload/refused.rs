use nix::sys::signal::Signal;

use super::load::under_load;
use super::setting::{ConfigFile, Seen, fixture, until};

const ALLOW: &str = "[[rules]]\nname = 'all'\neffect = 'allow'\n";
const UNUSABLE: &str = "[[rules]]\nname = 'no effect'\n";
const QUOTA: &str = "[[quotas]]\nname = 'few'\nper = 'all'\nrate = '1/h'\n";

#[tokio::test]
async fn no_client_notices_a_reload_that_is_refused_at_its_rules() {
    let config = ConfigFile::new("");
    let rules = config.beside("rules.toml");
    std::fs::write(&rules, ALLOW).unwrap();
    // With this interval, Shoal rereads the rules only together with the configuration.
    let policy = format!(
        "[policy]\nfile = '{}'\nreread = '1h'\n",
        rules.to_str().unwrap()
    );
    let [same, gone, new] = ["same", "gone", "new"].map(|name| fixture(name, ""));
    config.write(&[&*policy, &*same, &*gone].concat());
    let server = super::serve(&config).await;
    let seen = Seen::of(&server).await;
    let refused = async || server.status().await["configuration"]["refused"].clone();
    under_load(&server.mcp, &["same_shout", "gone_shout"], async || {
        std::fs::write(&rules, UNUSABLE).unwrap();
        config.write(&[QUOTA, &*policy, &*same, &*new].concat());
        server.signal(Signal::SIGHUP);
        until(async || refused().await.to_string().contains("policy.file")).await;
        seen.offers("new_shout", false).await;
    })
    .await;

    std::fs::write(&rules, ALLOW).unwrap();
    config.write(&[&*policy, &*same, &*new].concat());
    server.signal(Signal::SIGHUP);
    seen.offers("new_shout", true).await;
    assert!(refused().await.is_null());
    seen.offers("gone_shout", false).await;
}
