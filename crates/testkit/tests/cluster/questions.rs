use futures::StreamExt as _;
use futures::stream::{self, FuturesUnordered};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use shoal_testkit::cluster::{Builder, Cluster, Tools};

use crate::client::within;
use crate::start;

const META: &str = "io.modelcontextprotocol";

const QUESTIONS: usize = 1_000;

const AT_ONCE: usize = 16;

const ROOM: &str = "[pools.demo]\nconcurrency = 2000\nasking = 2000\nasking_per_principal = 2000\n\
                    backend = \"demo\"\n";

fn asking() -> Builder {
    Cluster::builder()
        .tools(Tools::Configured(ROOM.to_owned()))
        .setting("calls.waiting_per_principal", "10000")
}

#[derive(Clone)]
struct Question {
    restaurant: String,
    key: String,
    state: String,
}

async fn call(http: &reqwest::Client, url: &str, mut params: Value) -> Value {
    params["name"] = json!("book_table");
    params["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28",
        format!("{META}/clientCapabilities"): { "elicitation": { "form": {} } },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = http
        .post(url)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "book_table")
        .json(&body);
    let text = request.send().await.unwrap().text().await.unwrap();
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let last = data.next_back().unwrap_or(&text);
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn ask(http: &reqwest::Client, url: &str, restaurant: &str) -> Question {
    let asked = call(
        http,
        url,
        json!({ "arguments": { "restaurant": restaurant } }),
    )
    .await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let questions = result["inputRequests"].as_object().unwrap();
    Question {
        restaurant: restaurant.to_owned(),
        key: questions.keys().next().unwrap().clone(),
        state: result["requestState"].as_str().unwrap().to_owned(),
    }
}

async fn answer(http: &reqwest::Client, url: &str, question: &Question) -> Value {
    answer_with(http, url, question, 2).await
}

async fn answer_with(http: &reqwest::Client, url: &str, question: &Question, guests: u32) -> Value {
    let content = json!({ "guests": guests, "date": "2026-12-24" });
    let params = json!({
        "arguments": { "restaurant": question.restaurant },
        "requestState": question.state,
        "inputResponses": { &question.key: { "action": "accept", "content": content } },
    });
    call(http, url, params).await
}

#[derive(Debug, Default)]
struct Tally {
    booked: usize,
    unknown: usize,
}

impl Tally {
    fn count(&mut self, question: &Question, answered: &Value) {
        if answered["error"]["code"] == 50002 {
            self.unknown += 1;
            return;
        }
        let booked = format!("booked {} for 2 on 2026-12-24", question.restaurant);
        let told = &answered["result"]["content"][0]["text"];
        assert_eq!(*told, json!(booked), "{answered}");
        self.booked += 1;
    }
}

async fn answer_all(
    http: &reqwest::Client,
    edges: &[String],
    dice: &mut StdRng,
    questions: &[Question],
    tally: &mut Tally,
) {
    let drawn: Vec<(&Question, &String)> = (questions.iter())
        .map(|question| (question, &edges[dice.random_range(0..edges.len())]))
        .collect();
    let answers = stream::iter(drawn).map(|(question, edge)| async move {
        (question, within(answer(http, edge, question)).await)
    });
    let answers: Vec<_> = answers.buffer_unordered(AT_ONCE).collect().await;
    for (question, answered) in &answers {
        tally.count(question, answered);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_questions_are_answered_at_any_edge_while_nodes_are_lost() {
    let cluster = start(asking().edges(3).sessions(3).workers(3)).await;
    let edges: Vec<String> = (cluster.edges().iter())
        .map(|edge| edge.mcp_url().unwrap().to_owned())
        .collect();
    let http = reqwest::Client::new();
    let mut dice = StdRng::seed_from_u64(18);
    let asked: FuturesUnordered<_> = (0..QUESTIONS)
        .map(|number| {
            let (http, url) = (&http, &edges[number % edges.len()]);
            async move { within(ask(http, url, &format!("Chez {number}"))).await }
        })
        .collect();
    let mut questions: Vec<Question> = asked.collect().await;
    questions.shuffle(&mut dice);
    let (before, rest) = questions.split_at(QUESTIONS / 3);
    let (amid, after) = rest.split_at(QUESTIONS / 3);

    let mut tally = Tally::default();
    answer_all(&http, &edges, &mut dice, before, &mut tally).await;
    assert_eq!(tally.unknown, 0, "nothing was lost yet");
    cluster.sessions()[0].kill().await.unwrap();
    let answering = answer_all(&http, &edges, &mut dice, amid, &mut tally);
    let losing = async { cluster.sessions()[1].kill().await.unwrap() };
    tokio::join!(answering, losing);
    assert_eq!(
        tally.unknown, 0,
        "no session node has a part in these calls"
    );
    // The outcome of bookings on the killed worker is unknown.
    cluster.workers()[0].kill().await.unwrap();
    answer_all(&http, &edges, &mut dice, after, &mut tally).await;
    println!(
        "{QUESTIONS} questions, {} tables booked, {} unknown",
        tally.booked, tally.unknown
    );
    assert_eq!(tally.booked + tally.unknown, QUESTIONS);
    assert!(tally.unknown > 0, "{tally:?}");
    assert!(tally.booked > QUESTIONS / 2, "{tally:?}");
}

#[tokio::test]
async fn a_request_state_counts_for_one_request_once_and_for_a_time() {
    let cluster = start(asking().edges(2)).await;
    let hasty = asking().setting("calls.input_timeout", "1s");
    let hasty = start(hasty.setting("calls.clock_skew", "0s")).await;
    let stranger = asking().setting(
        "state_keys.keys",
        r#"[{ value = "another secret of 16 bytes or more" }]"#,
    );
    let stranger = start(stranger).await;
    let http = reqwest::Client::new();
    let url = cluster.edges()[0].mcp_url().unwrap();
    let other = cluster.edges()[1].mcp_url().unwrap();
    let asked = async |url: &str| within(ask(&http, url, "Chez Ada")).await;

    let question = asked(url).await;
    let half = question.state.len() / 2;
    let letter = if &question.state[half..=half] == "A" {
        "B"
    } else {
        "A"
    };
    let (begin, end) = (&question.state[..half], &question.state[half + 1..]);
    let state = |state: String| Question {
        state,
        ..question.clone()
    };
    let expired = asked(hasty.edges()[0].mcp_url().unwrap()).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let restaurant = Question {
        restaurant: "Chez Bob".to_owned(),
        ..question.clone()
    };
    let cases = [
        ("tampered with", url, state(format!("{begin}{letter}{end}"))),
        ("cut off", url, state(begin.to_owned())),
        ("for another request", url, restaurant),
        (
            "of another cluster",
            url,
            asked(stranger.edges()[0].mcp_url().unwrap()).await,
        ),
        ("expired", hasty.edges()[0].mcp_url().unwrap(), expired),
    ];
    let mut table = Vec::new();
    for (case, url, question) in &cases {
        table.push((*case, within(answer(&http, url, question)).await));
    }
    let booked = within(answer(&http, other, &question)).await;
    let told = &booked["result"]["content"][0]["text"];
    assert_eq!(*told, "booked Chez Ada for 2 on 2026-12-24", "{booked}");
    for (case, answered) in &table {
        let error = &answered["error"];
        println!("{case:30} {:>7} {}", error["code"], error["message"]);
        assert!(error["code"].is_i64(), "{case}: {answered}");
    }
    // A repeated answer gets the result of the first answer, even if the answers differ.
    for (case, url, guests) in [
        ("answered again, same edge", other, 2),
        ("answered again, other edge", url, 2),
        ("answered anew", url, 3),
    ] {
        let again = within(answer_with(&http, url, &question, guests)).await;
        println!("{case:30} {}", again["result"]["content"][0]["text"]);
        assert_eq!(
            again["result"]["content"], booked["result"]["content"],
            "{case}: {again}"
        );
    }
}
