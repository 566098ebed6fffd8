use serde_json::json;
use shoal_ports::{CallFailure, CallOutcome};

use super::harness::{Client, TestBackend, failure, scratch, text};
use super::service::{Petstore, result};
use crate::{OpenApiBackend, ToolChoice};
use shoal_outbound::{Outbound, OutboundConfig};

#[tokio::test]
async fn calls_wait_for_a_service_that_is_restarted() {
    let mut service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    result(running.call(&client, "listPets", json!({})).await);
    service.stop().await;
    let call = async || loop {
        match running.call(&client, "listPets", json!({})).await {
            CallOutcome::Failed(CallFailure::Overloaded { .. }) => {}
            outcome => break outcome,
        }
    };
    let comes = async {
        running.state_where(|state| state.detail.is_some()).await;
        service.come_again().await;
    };
    let (outcome, ()) = tokio::join!(call(), comes);
    result(outcome);
    running
        .state_where(|state| state.detail.is_none() && state.catalog.is_some())
        .await;
}

#[tokio::test]
async fn one_of_several_is_left_at_once() {
    let (mut service, other) = (Petstore::start().await, Petstore::start().await);
    let mut config = service.config();
    config.base_urls = [&service.url, &other.url]
        .map(|url| format!("{url}/v1"))
        .to_vec();
    let bases = config.clone();
    let bases: Vec<Option<&str>> = bases.bases().unwrap();
    config.document = format!("{}/openapi.json", other.url);
    let running = TestBackend::of(
        OpenApiBackend::start(
            config,
            ToolChoice::default(),
            bases[0],
            &Outbound::default(),
        )
        .unwrap(),
    )
    .await;
    let client = Client::named("a");
    result(running.call(&client, "listPets", json!({})).await);
    assert_eq!(other.seen().await["runs"], json!({}));
    service.stop().await;
    let refused = failure(running.call(&client, "listPets", json!({})).await);
    assert!(
        matches!(refused, CallFailure::NotExecuted { .. }),
        "{refused:?}"
    );
    running.state_where(|state| state.catalog.is_none()).await;
}

#[tokio::test]
async fn a_file_that_is_changed_is_read_again() {
    let service = Petstore::start().await;
    let file = scratch("document.yaml");
    let write = |name: &str| {
        let text = format!(
            "openapi: 3.1.0\ninfo: {{title: x, version: 1}}\nservers: [{{url: '{}/v1'}}]\npaths:\n  /pets:\n    get:\n      operationId: {name}\n      responses: {{}}\n",
            service.url
        );
        std::fs::write(&*file, text).unwrap();
    };
    write("first");
    let mut config = service.config();
    config.document = file.to_str().unwrap().to_owned();
    let running = service.backend_of(config).await;
    let client = Client::named("a");
    text(&running.call(&client, "first", json!({})).await);
    write("second_name");
    let changed = running.catalog_where(|catalog| catalog.tools[0].as_str().contains("second"));
    assert_eq!(changed.await.generations, [1, 0, 0]);
    // An unreadable document leaves the previous one in use.
    std::fs::write(&*file, "openapi: 4.0.0\n").unwrap();
    let state = running.state_where(|state| state.detail.is_some()).await;
    assert!(state.detail.unwrap().contains("\"4.0.0\"") && state.catalog.is_some());
    text(&running.call(&client, "second_name", json!({})).await);
}

#[tokio::test]
async fn a_document_in_several_files_is_read_with_them_and_again_with_each() {
    let service = Petstore::start().await;
    let directory = std::env::temp_dir().join(uuid::Uuid::new_v4().to_string());
    std::fs::create_dir_all(directory.join("paths")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    let document = format!(
        "openapi: 3.1.0\nservers: [{{url: '{}/v1'}}]\npaths:\n  /pets: {{$ref: paths/pets.yaml}}\n  /other: {{get: {{$ref: link.yaml}}}}\n",
        service.url
    );
    write("document.yaml", &document);
    write(
        "paths/pets.yaml",
        "get: {operationId: first, responses: {}}\n",
    );
    // A link out of the directory is not part of the document.
    let outside = scratch("outside.yaml");
    std::fs::write(&*outside, "operationId: secret\n").unwrap();
    std::os::unix::fs::symlink(&*outside, directory.join("link.yaml")).unwrap();
    let mut config = service.config();
    config.document = directory.join("document.yaml").to_str().unwrap().to_owned();
    let running = service.backend_of(config).await;
    let client = Client::named("a");
    text(&running.call(&client, "first", json!({})).await);
    let catalog = running
        .catalog_where(|catalog| catalog.tools.len() == 1)
        .await;
    let left_out = catalog.left_out.join(" ");
    assert!(
        left_out.contains("GET /other: ") && left_out.contains("not below the directory"),
        "{left_out}"
    );
    write(
        "paths/pets.yaml",
        "get: {operationId: second_name, responses: {}}\n",
    );
    running
        .catalog_where(|catalog| catalog.tools[0].as_str().contains("second"))
        .await;
    text(&running.call(&client, "second_name", json!({})).await);
    std::fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn a_document_leads_to_no_private_address_unless_its_network_is_allowed() {
    let service = Petstore::start().await;
    let file = scratch("elsewhere.yaml");
    let document = format!(
        "openapi: 3.1.0\nservers: [{{url: '{0}/v1'}}]\npaths:\n  /own: {{get: {{operationId: own}}}}\n  /pets: {{$ref: '{0}/openapi.json#/paths/~1pets'}}\n",
        service.url
    );
    std::fs::write(&*file, document).unwrap();
    let mut config = service.config();
    config.document = file.to_str().unwrap().to_owned();
    let running = service.backend_of(config.clone()).await;
    let catalog = running
        .catalog_where(|catalog| !catalog.tools.is_empty())
        .await;
    assert_eq!(catalog.tools.len(), 1);
    let left_out = catalog.left_out.join(" ");
    assert!(
        left_out.contains("/pets: ") && left_out.contains("does not connect to"),
        "{left_out}"
    );
    assert!(
        service.seen().await["runs"]
            .get("GET /openapi.json")
            .is_none()
    );

    let allowed = OutboundConfig {
        allow: vec!["127.0.0.0/8".to_owned()],
        ..OutboundConfig::default()
    };
    let outbound = Outbound::new(&allowed).unwrap();
    let backend = OpenApiBackend::start(config, ToolChoice::default(), None, &outbound).unwrap();
    let running = TestBackend::of(backend).await;
    running
        .catalog_where(|catalog| catalog.tools.len() > 1)
        .await;
}
