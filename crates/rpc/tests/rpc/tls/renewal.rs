use std::time::Duration;

use rcgen::date_time_ymd;
use shoal_rpc::{JoiningWorker, WorkerJoin};

use super::authority::{Authority, Files, over};
use super::reached;
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, until, within};

const SOON: Duration = Duration::from_millis(10);
/// The first second of 2040.
const OF_2040: u64 = 2_208_988_800;
const OF_2041: u64 = 2_240_611_200;

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_peers_and_cuts_no_link() {
    within(async {
        let (former, next) = (Authority::new(), Authority::new());
        let (there, here) = (Files::of(&former), Files::of(&former));
        let tls = there.open();
        tls.renew(SOON);
        assert_eq!(tls.validity().not_after, OF_2040);
        let node = Node::start(over(&tls)).await;
        let joining = JoiningWorker::new(ScriptedWorker::running("w"));
        let address = node.address.to_string();
        let join = WorkerJoin::start(&joining, &address, over(&here.open()));
        node.set.worker("w").await;
        let mut link = join.state();
        link.wait_for(|state| state.connected).await.unwrap();
        link.mark_unchanged();

        let of_next = Files::of(&next);
        reached(&node, over(&of_next.open())).await.unwrap_err();
        let renewed = next.issue_with(|params| params.not_after = date_time_ymd(2041, 1, 1));
        there.write(&renewed, &format!("{}{}", former.pem(), next.pem()));
        until(|| tls.validity().not_after == OF_2041).await;
        assert_eq!(reached(&node, over(&of_next.open())).await, Ok(()));
        assert!(!link.has_changed().unwrap(), "{:?}", *link.borrow());
        assert!(link.borrow().connected);
    })
    .await;
}

#[tokio::test]
async fn a_dialer_shows_its_renewed_certificate_when_it_dials_again() {
    within(async {
        let (former, next) = (Authority::new(), Authority::new());
        let here = Files::of(&former);
        let tls = here.open();
        tls.renew(SOON);
        let of_next = Files::of(&next);
        let node = Node::start(over(&of_next.open())).await;
        reached(&node, over(&tls)).await.unwrap_err();
        let renewed = next.issue_with(|params| params.not_after = date_time_ymd(2041, 1, 1));
        here.write(&renewed, &next.pem());
        until(|| tls.validity().not_after == OF_2041).await;
        assert_eq!(reached(&node, over(&tls)).await, Ok(()));
    })
    .await;
}

async fn looked_at() {
    tokio::time::pause();
    tokio::time::sleep(SOON * 10).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_renewal_that_is_broken_or_half_done_leaves_the_former_certificate() {
    within(async {
        let authority = Authority::new();
        let files = Files::of(&authority);
        let tls = files.open();
        let node = Node::start(over(&tls)).await;
        tls.renew(SOON);
        let renewed = authority.issue_with(|params| params.not_after = date_time_ymd(2041, 1, 1));
        let half = &renewed.certificate[..renewed.certificate.len() / 2];
        for text in ["", half, &renewed.certificate] {
            files.write_one("tls.crt", text);
            looked_at().await;
            assert_eq!(tls.validity().not_after, OF_2040);
            assert_eq!(reached(&node, over(&tls)).await, Ok(()));
        }
        files.remove("tls.key");
        looked_at().await;
        assert_eq!(tls.validity().not_after, OF_2040);
        files.put_pipe("tls.key");
        looked_at().await;
        assert_eq!(tls.validity().not_after, OF_2040);
        files.remove("tls.key");
        files.write_one("tls.key", &renewed.key);
        until(|| tls.validity().not_after == OF_2041).await;
        assert_eq!(reached(&node, over(&tls)).await, Ok(()));
    })
    .await;
}
