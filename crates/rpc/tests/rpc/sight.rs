use std::time::Duration;

use shoal_ports::NodeId;
use shoal_rpc::{LinkConfig, Sight, look_for};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::proxy::Proxy;
use crate::setting::{Node, config, within};

async fn look(node: &str, address: &str, config: &LinkConfig) -> Sight {
    look_for(&NodeId::new("e"), &NodeId::new(node), address, config).await
}

pub(crate) async fn deserted() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_node_is_there_that_answers_under_its_name() {
    within(async {
        let node = Node::start(config()).await;
        let address = node.address.to_string();
        assert_eq!(look("node-1", &address, &config()).await, Sight::There);
        assert_eq!(look("node-2", &address, &config()).await, Sight::Gone);
    })
    .await;
}

#[tokio::test]
async fn a_node_is_gone_whose_machine_refuses_connections() {
    within(async {
        assert_eq!(
            look("node-1", &deserted().await, &config()).await,
            Sight::Gone
        );
    })
    .await;
}

#[tokio::test]
async fn connections_that_are_reset_or_held_up_say_nothing() {
    within(async {
        let node = Node::start(config()).await;
        let proxy = Proxy::start(node.address).await;
        proxy.block();
        assert_eq!(
            look("node-2", &proxy.address(), &config()).await,
            Sight::Unknown
        );
        proxy.unblock();
        proxy.freeze();
        let hasty = LinkConfig {
            handshake_timeout: Duration::from_millis(50),
            ..config()
        };
        assert_eq!(
            look("node-2", &proxy.address(), &hasty).await,
            Sight::Unknown
        );
        // The kernel accepts connections, as for a stopped process.
        let stopped = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = stopped.local_addr().unwrap().to_string();
        assert_eq!(look("node-2", &address, &hasty).await, Sight::Unknown);
        assert_eq!(
            look("node-2", "nowhere.invalid:1", &hasty).await,
            Sight::Unknown
        );
    })
    .await;
}

#[tokio::test]
async fn somebody_elses_service_says_nothing() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            }
        });
        assert_eq!(look("node-1", &address, &config()).await, Sight::Unknown);
    })
    .await;
}
