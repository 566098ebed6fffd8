//! Hidden and missing things must get the same answer.

use serde_json::{Value, json};

use crate::client::{Session, request};
use crate::harness::{Family, Request};
use crate::other_principals::{Cluster, legacy};

const NOTHING: &str = "nothing";

pub(crate) async fn family(cluster: &Cluster) -> Family {
    let mut family = Family::new("hidden by policy");
    let url = &cluster.second.mcp;
    let session = Session::open_as(&cluster.first.mcp, Some(&cluster.bob))
        .await
        .id;
    let ask = async |method: &str, params: Value| {
        let message = legacy(&session, &request(1, method, params));
        message.bearer(&cluster.bob).send(url).await
    };
    for (list, hidden) in [
        ("tools/list", "\"add\""),
        ("prompts/list", "greet"),
        ("resources/list", "demo://"),
        ("resources/templates/list", "demo://"),
    ] {
        let old = ask(list, json!({})).await;
        family.is(
            format!("{list} of old shows it"),
            false,
            old.contains(hidden) || !old.starts_with("200"),
        );
        let new = Request::modern(list, json!({}))
            .bearer(&cluster.bob)
            .send(url)
            .await;
        family.is(
            format!("{list} of new shows it"),
            false,
            new.contains(hidden) || !new.starts_with("200"),
        );
        let seen = Request::modern(list, json!({}))
            .bearer(&cluster.alice)
            .send(url)
            .await;
        family.is(
            format!("{list} shows it to whom it may"),
            true,
            seen.contains(hidden),
        );
    }
    for name in [
        "add",
        "ADD",
        " add",
        "add ",
        "add\u{200b}",
        "\u{ff41}dd",
        "add\0",
        "demo_add",
        "demo/add",
        "demo.add",
    ] {
        let params = |name: &str| json!({ "name": name, "arguments": { "a": 1, "b": 2 } });
        let got = ask("tools/call", params(name)).await;
        let due = ask("tools/call", params(NOTHING)).await;
        family.row(format!("the tool {name:?}"), "same", same(&got, name, &due));
    }
    for name in ["greet", "Greet", "code_review"] {
        let params = |name: &str| json!({ "name": name, "arguments": { "name": "x" } });
        let got = ask("prompts/get", params(name)).await;
        let due = ask("prompts/get", params(NOTHING)).await;
        family.row(
            format!("the prompt {name:?}"),
            "same",
            same(&got, name, &due),
        );
    }
    for uri in [
        "demo://readme",
        "DEMO://readme",
        "demo://%72eadme",
        "demo://readme/",
        "demo://readme?x",
        "demo://readme#x",
        "demo://x/../readme",
        "demo://greeting/bob",
        "demo://greeting/{name}",
    ] {
        for method in ["resources/read", "resources/subscribe"] {
            let got = ask(method, json!({ "uri": uri })).await;
            let due = ask(method, json!({ "uri": "demo://nothing" })).await;
            let due = due.replace("demo://nothing", NOTHING);
            family.row(
                format!("{method} of {uri:?}"),
                "same",
                same(&got, uri, &due),
            );
        }
    }
    let complete =
        |reference: Value| json!({ "ref": reference, "argument": { "name": "name", "value": "" } });
    for (known, unknown, name) in [
        (
            json!({ "type": "ref/prompt", "name": "greet" }),
            json!({ "type": "ref/prompt", "name": NOTHING }),
            "greet",
        ),
        (
            json!({ "type": "ref/resource", "uri": "demo://greeting/{name}" }),
            json!({ "type": "ref/resource", "uri": NOTHING }),
            "demo://greeting/{name}",
        ),
    ] {
        let got = ask("completion/complete", complete(known)).await;
        let due = ask("completion/complete", complete(unknown)).await;
        family.row(
            format!("a completion of {name:?}"),
            "same",
            same(&got, name, &due),
        );
    }
    for (method, known, unknown) in [
        (
            "tools/call",
            json!({ "name": "add", "arguments": {} }),
            json!({ "name": NOTHING, "arguments": {} }),
        ),
        (
            "prompts/get",
            json!({ "name": "greet" }),
            json!({ "name": NOTHING }),
        ),
        (
            "resources/read",
            json!({ "uri": "demo://readme" }),
            json!({ "uri": NOTHING }),
        ),
    ] {
        let name = known["name"]
            .as_str()
            .or(known["uri"].as_str())
            .unwrap()
            .to_owned();
        let got = Request::modern(method, known)
            .bearer(&cluster.bob)
            .send(url)
            .await;
        let due = Request::modern(method, unknown)
            .bearer(&cluster.bob)
            .send(url)
            .await;
        family.row(
            format!("{method} of new: {name}"),
            "same",
            same(&got, &name, &due),
        );
    }
    family
}

fn same(got: &str, name: &str, due: &str) -> String {
    let quoted = json!(name).to_string();
    let name = quoted.trim_matches('"');
    let debugged = format!("{name:?}");
    let plain = |text: &str| {
        let text = text
            .replace(debugged.trim_matches('"'), NOTHING)
            .replace(name, NOTHING);
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("id:") && line.len() > 4);
        lines.collect::<Vec<_>>().join(" ")
    };
    if plain(got) == plain(due) && got.contains("error") {
        return "same".to_owned();
    }
    format!("other {} // {}", plain(got), plain(due))
}
