//! Nodes must reject and log peers without an accepted certificate, while the good worker
//! continues. The tests print each attempt and its outcome.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step is the report"
)]
#![expect(clippy::print_stdout, reason = "what was tried is the result")]

mod methods;
mod node;
mod peer;
mod steady;
mod worker;

use shoal_testkit::cluster::{Certificates, Cluster, Issued};
use shoal_testkit::directory::Directory;

use self::methods::{messages, methods};
use self::node::Node;
use self::peer::{Shown, ask};
use self::steady::Steady;

const POOL: &str = "demo";
const GOOD: i32 = 2040;
const OVER: i32 = 2020;

struct Case {
    name: &'static str,
    shown: Shown,
    why: &'static str,
}

struct Papers {
    foreign: Issued,
    other_pool: Issued,
    expired: Issued,
    pool: Issued,
    node: Issued,
    _elsewhere: Directory,
}

impl Papers {
    fn issue(ours: &Certificates) -> Self {
        let elsewhere = Directory::create("elsewhere").unwrap();
        let theirs = Certificates::create(&elsewhere).unwrap();
        // The stranger trusts its own authority, without which it would not start, and the
        // cluster's, which is public.
        let authority = elsewhere.file("both.crt");
        let both = [ours, &theirs].map(|one| std::fs::read_to_string(one.of_members().authority));
        std::fs::write(&authority, both.map(Result::unwrap).concat()).unwrap();
        let foreign = Issued {
            authority,
            ..theirs.of_members()
        };
        let issue = |file: &str, names: &[&str], until| ours.issue(file, names, until).unwrap();
        Self {
            foreign,
            other_pool: issue("other-pool", &["shoal", "other.pool.shoal"], GOOD),
            expired: issue("expired", &["shoal"], OVER),
            pool: issue("pool", &["shoal", "demo.pool.shoal"], GOOD),
            node: issue("node", &["shoal"], GOOD),
            _elsewhere: elsewhere,
        }
    }

    fn untrusted(&self) -> [Case; 5] {
        let authority = self.node.authority.clone();
        let case = |name, shown, why| Case { name, shown, why };
        [
            case("plaintext", Shown::Plaintext, "does not speak TLS"),
            case(
                "no certificate",
                Shown::Nothing { authority },
                "shows no certificate",
            ),
            case(
                "another authority",
                Shown::Certificate(self.foreign.clone()),
                "not issued by the authority",
            ),
            case(
                "expired",
                Shown::Certificate(self.expired.clone()),
                "certificate has expired",
            ),
            case(
                "another pool",
                Shown::Certificate(self.other_pool.clone()),
                "the pools other",
            ),
        ]
    }
}

fn row(who: &str, what: &str) {
    println!("| {who} | {what} |");
}

async fn secured() -> Cluster {
    Cluster::builder().tls().start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_method_answers_whoever_lacks_the_certificate_for_it() {
    let cluster = secured().await;
    let papers = Papers::issue(cluster.certificates().unwrap());
    let steady = Steady::start(cluster.url()).await;
    let methods = methods();
    println!(
        "| listener | who comes | method | what it gets | the node's log |\n|---|---|---|---|---|"
    );
    for member in [cluster.sessions()[0], cluster.edges()[0]] {
        let node = Node::of(member).await;
        let known = node.known().await;
        for case in papers.untrusted() {
            for method in &methods {
                for messages in messages(method, &node.id, &known.worker) {
                    let log = node.log_length();
                    let answer = ask(node.address, &case.shown, method, messages).await;
                    let row = format!("{} | {} | {method}", member.name(), case.name);
                    assert!(!answer.told_anything(), "{row}: {answer:?}");
                    let logged = if answer.is_not_served() { "" } else { case.why };
                    node.logs(log, logged).await;
                    println!("| {row} | {} | {logged} |", answer.ended);
                    assert_eq!(node.known().await, known, "{row}");
                }
            }
            steady.goes_on().await;
        }
    }
    steady.end().await;
    let node = Node::of(cluster.sessions()[0]).await;
    let known = node.known().await;
    for (name, shown, nodes) in [
        ("the pool", Shown::Certificate(papers.pool.clone()), false),
        ("a node", Shown::Certificate(papers.node.clone()), true),
    ] {
        for method in &methods {
            // Sends only the first message, because the others would replace the good worker.
            let messages = messages(method, &node.id, &known.worker).swap_remove(0);
            let answer = ask(node.address, &shown, method, messages).await;
            println!("| session-1 | {name} | {method} | {} | |", answer.ended);
            let lets_in = nodes || method.is_for_workers();
            assert_eq!(answer.told_anything(), lets_in, "{method}: {answer:?}");
        }
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_reaches_a_worker_without_the_certificate_of_its_pool() {
    let cluster = secured().await;
    let papers = Papers::issue(cluster.certificates().unwrap());
    let steady = Steady::start(cluster.url()).await;
    let nodes = [cluster.sessions()[0], cluster.edges()[0]];
    println!("| worker with | what it says, or the nodes' logs |\n|---|---|");
    worker::does_not_start(
        &cluster,
        "no certificate",
        &worker::without_certificate(&papers),
    )
    .await;
    worker::does_not_start(&cluster, "an expired one", &papers.expired.settings()).await;
    for case in papers.untrusted() {
        let settings = match &case.shown {
            Shown::Plaintext => Vec::new(),
            Shown::Certificate(issued) => issued.settings().to_vec(),
            Shown::Nothing { .. } => continue,
        };
        let mut logs = Vec::new();
        for member in nodes {
            let node = Node::of(member).await;
            logs.push((node.log_length(), node.known().await, node));
        }
        // Uses a slow clock, by which the expired certificate is still valid.
        let is_late = case.name == "expired";
        let stranger = worker::Stranger::start(&cluster, &settings, is_late).await;
        for (log, known, node) in &logs {
            node.logs(*log, case.why).await;
            assert_eq!(node.known().await, *known, "{}", case.name);
        }
        row(case.name, case.why);
        steady.goes_on().await;
        assert_eq!(stranger.calls().await, 0.0, "{}", case.name);
        for (_, known, node) in &logs {
            assert_eq!(node.known().await, *known, "{}", case.name);
        }
        stranger.end().await;
    }
    assert!(node::calls_of(cluster.workers()[0].admin()).await > 0.0);
    steady.end().await;
    cluster.end().await;
}
