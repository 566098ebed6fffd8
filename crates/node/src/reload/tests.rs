use std::sync::Arc;
use std::time::Duration;

use shoal_edge::Quotas;
use shoal_ports::NodeId;
use tokio::time::{sleep, timeout};

use super::{ConfigReader, ConfigurationState, Reloads};
use crate::config::Environment;
use crate::pools::Pools;
use crate::{policies, roles};

const ALLOW: &str = "[[rules]]\nname = 'all'\neffect = 'allow'\n";
const DENY: &str = "[[rules]]\nname = 'none'\neffect = 'deny'\n";
const QUOTA: &str = "[[quotas]]\nname = 'few'\nper = 'all'\nrate = '1/h'\n";
/// A reload refuses this pool, because the program has no embedded server.
const IMPOSSIBLE: &str = "[pools.impossible]\nbackend = 'handler'\n";

#[tokio::test]
async fn a_reload_that_is_refused_at_one_pool_changes_neither_rules_nor_quotas_nor_other_pools() {
    let directory = tempfile::tempdir().unwrap();
    let [file, rules_file] = ["shoal.toml", "rules.toml"].map(|name| directory.path().join(name));
    let policy = format!("policy.file = '{}'\n", rules_file.display());
    let [same, gone] = ["same", "gone"]
        .map(|name| format!("[pools.{name}]\nbackend = 'demo'\nprefix = '{name}_'\n"));
    std::fs::write(&rules_file, ALLOW).unwrap();
    std::fs::write(&file, [&*policy, &*same, &*gone].concat()).unwrap();
    let environment = Environment::default();
    let mut reader = ConfigReader::new(&[], Some(&file), &environment, Vec::new(), |_| Ok(()));
    let loaded = reader.load().unwrap();
    let rules = policies::open(&loaded.settings).unwrap().rules.unwrap();
    let dispatch = roles::dispatch(&loaded.settings, Some(rules.clone())).unwrap();
    let node = NodeId::new("node");
    let pools = Pools::start(&loaded.settings, &node, dispatch.clone(), None);
    let pools = pools.await.unwrap();
    let state = Arc::new(ConfigurationState::new());
    let mut reloads = Reloads::new(reader, loaded, pools, state)
        .with_quotas(&Quotas::embedded())
        .with_rules(Some(rules.clone()), &dispatch);
    let offers = |pool: &str| {
        let tools = dispatch.tools("");
        tools.iter().any(|tool| tool.name.starts_with(pool))
    };
    let until_it_offers = async |pool: &str, is_offered: bool| {
        let so = async {
            while offers(pool) != is_offered {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(60), so).await.unwrap();
    };
    until_it_offers("gone_", true).await;

    let before = rules.current().fingerprint();
    std::fs::write(&rules_file, [ALLOW, DENY].concat()).unwrap();
    std::fs::write(&file, [&*policy, QUOTA, &*same, IMPOSSIBLE].concat()).unwrap();
    let why = reloads.take().await.err().unwrap();
    assert!(why.contains("the pool impossible"), "{why}");
    assert_eq!(rules.current().fingerprint(), before);
    assert!(reloads.quotas.as_ref().unwrap().1.is_empty());
    assert!(offers("gone_"));

    std::fs::write(&file, [&*policy, QUOTA, &*same].concat()).unwrap();
    let taken = reloads.take().await.unwrap();
    assert_eq!(taken.pools, ["gone"]);
    assert_ne!(rules.current().fingerprint(), before);
    assert_eq!(reloads.quotas.as_ref().unwrap().1.len(), 1);
    until_it_offers("gone_", false).await;
    assert!(offers("same_"));
}
