use std::io::ErrorKind;
use std::sync::Arc;

use rcgen::CertificateParams;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use shoal_ports::{Inspector as _, NodeId};
use shoal_rpc::{JoiningWorker, RemoteInspector, Sight, WorkerJoin, look_for};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::authority::{Authority, Files, Issued, NAME, over};
use super::reached;
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, config, within};
use crate::sight::deserted;

#[tokio::test]
async fn workers_and_edges_of_one_authority_are_linked() {
    within(async {
        let authority = Authority::new();
        let (there, here) = (Files::of(&authority), Files::of(&authority));
        let node = Node::start(over(&there.open())).await;
        let worker = ScriptedWorker::running("w");
        let joining = JoiningWorker::new(worker);
        let address = node.address.to_string();
        let _join = WorkerJoin::start(&joining, &address, over(&here.open()));
        node.set.worker("w").await;
        assert_eq!(reached(&node, over(&here.open())).await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn who_is_gone_is_told_from_who_is_not_spoken_to() {
    within(async {
        let (ours, other) = (Authority::new(), Authority::new());
        let (here, there) = (Files::of(&ours), Files::of(&ours));
        let config = over(&here.open());
        let look = async |node: &str, address: &str| {
            look_for(&NodeId::new("e"), &NodeId::new(node), address, &config).await
        };
        assert_eq!(look("node-1", &deserted().await).await, Sight::Gone);
        let node = Node::start(over(&there.open())).await;
        let address = node.address.to_string();
        assert_eq!(look("node-1", &address).await, Sight::There);
        assert_eq!(look("node-2", &address).await, Sight::Gone);
        let stranger = Node::start(over(&Files::of(&other).open())).await;
        let address = stranger.address.to_string();
        assert_eq!(look("node-2", &address).await, Sight::Unknown);
    })
    .await;
}

#[tokio::test]
async fn inspectors_speak_tls_too() {
    within(async {
        let authority = Authority::new();
        let (there, here) = (Files::of(&authority), Files::of(&authority));
        let node = Node::start(over(&there.open())).await;
        let address = node.address.to_string();
        let ask = async |config| {
            let inspector = RemoteInspector::new(NodeId::new("node-1"), &address, config);
            inspector.node().await.unwrap_err().to_string()
        };
        let secured = ask(over(&here.open())).await;
        let unsupported = shoal_ports::InspectError::Unsupported.to_string();
        assert_eq!(secured, unsupported);
        assert_ne!(ask(config()).await, unsupported);
    })
    .await;
}

#[tokio::test]
async fn a_node_of_another_authority_is_not_spoken_to() {
    within(async {
        let (ours, other) = (Authority::new(), Authority::new());
        let (there, here) = (Files::of(&other), Files::of(&ours));
        let node = Node::start(over(&there.open())).await;
        let why = reached(&node, over(&here.open())).await.unwrap_err();
        assert!(why.contains("not issued by the authority"), "{why}");
        assert_eq!(node.links.connected(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_peer_of_another_authority_is_not_let_in() {
    within(async {
        let (ours, other) = (Authority::new(), Authority::new());
        let there = Files::of(&ours);
        let node = Node::start(over(&there.open())).await;
        let both = format!("{}{}", ours.pem(), other.pem());
        let here = Files::with(&other.issue(), &both);
        let why = reached(&node, over(&here.open())).await.unwrap_err();
        assert!(why.contains("alert"), "{why}");
        assert_eq!(node.links.connected(), 0);
        assert_eq!(reached(&node, over(&there.open())).await, Ok(()));
    })
    .await;
}

#[tokio::test]
async fn a_node_of_another_name_is_not_spoken_to() {
    within(async {
        let authority = Authority::new();
        let elsewhere = named(&authority, "elsewhere");
        let files = Files::with(&elsewhere, &authority.pem());
        let settings = shoal_rpc::TlsFiles {
            name: "elsewhere".to_owned(),
            ..files.settings()
        };
        let node = Node::start(over(&shoal_rpc::Tls::open(settings).unwrap())).await;
        let here = Files::of(&authority);
        let why = reached(&node, over(&here.open())).await.unwrap_err();
        assert!(why.contains("elsewhere") && why.contains(NAME), "{why}");
    })
    .await;
}

#[tokio::test]
async fn the_listener_wants_a_certificate_of_the_authority_with_the_name() {
    within(async {
        let (ours, other) = (Authority::new(), Authority::new());
        let there = Files::of(&ours);
        let node = Node::start(over(&there.open())).await;
        let past = |params: &mut CertificateParams| {
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        };
        for (shown, alert) in [
            (None, "CertificateRequired"),
            (Some(other.issue()), "UnknownCA"),
            (Some(named(&ours, "elsewhere")), "BadCertificate"),
            (Some(ours.issue_with(past)), "CertificateExpired"),
        ] {
            let told = told(&node, &ours, shown).await;
            let error = told.unwrap_err().to_string();
            assert!(error.contains(alert), "{alert}: {error}");
        }
        assert_eq!(told(&node, &ours, Some(ours.issue())).await.unwrap(), 9);
    })
    .await;
}

fn named(authority: &Authority, name: &str) -> Issued {
    authority.issue_with(|params| {
        let of_name = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.subject_alt_names = of_name.subject_alt_names;
    })
}

async fn told(node: &Node, trusted: &Authority, shown: Option<Issued>) -> std::io::Result<usize> {
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&trusted.pem())).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some(shown) => {
            let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
            let chain = vec![certificate(&shown.certificate)];
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(node.address).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await?;
    let mut head = [0; 9];
    match stream.read_exact(&mut head).await {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => panic!("nobody says why"),
        read => read,
    }
}
