//! Shoal refuses peers without TLS, unless a rollout allows them.

use super::authority::{Authority, Files, over};
use super::reached;
use crate::setting::{Node, config, within};

#[tokio::test]
async fn without_leave_nobody_speaks_plaintext() {
    within(async {
        let files = Files::of(&Authority::new());
        let secured = Node::start(over(&files.open())).await;
        reached(&secured, config()).await.unwrap_err();
        assert_eq!(secured.links.connected(), 0);
        let plain = Node::start(config()).await;
        let why = reached(&plain, over(&files.open())).await.unwrap_err();
        assert!(why.contains("does not speak TLS"), "{why}");
        assert_eq!(plain.links.connected(), 0);
    })
    .await;
}

/// Processes in adjacent steps of the rollout reach each other.
#[tokio::test]
async fn a_rollout_in_two_steps_loses_nobody() {
    within(async {
        let authority = Authority::new();
        let (one, two) = (Files::of(&authority), Files::of(&authority));
        let off = config();
        let both = over(&one.open_for_both());
        let on = over(&two.open());
        for steps in [[&off, &both], [&both, &both], [&both, &on]] {
            for (there, here) in [(steps[0], steps[1]), (steps[1], steps[0])] {
                let node = Node::start(there.clone()).await;
                assert_eq!(reached(&node, here.clone()).await, Ok(()));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn leave_to_speak_plaintext_excuses_no_certificate() {
    within(async {
        let there = Files::of(&Authority::new());
        let here = Files::of(&Authority::new());
        let node = Node::start(over(&there.open_for_both())).await;
        let why = reached(&node, over(&here.open_for_both())).await;
        let why = why.unwrap_err();
        assert!(why.contains("not issued by the authority"), "{why}");
    })
    .await;
}
