mod properties;
mod story;

use std::time::Duration;

use self::story::{NONCE, Story, edge_killed, error, question, result};
use super::{Outage, Rules, Violation, code};
use crate::history::{Answer, Channel, Ended, Message, Step, Tool};

#[test]
fn promises_kept_are_no_findings() {
    Story::begin()
        .calls(Tool::Echo)
        .receives(None, result(NONCE))
        .shows_nothing(&[]);
    Story::begin()
        .calls(Tool::StepsOnce)
        .primed()
        .step(1, 1)
        .ended(Ended::Broken)
        .step(2, 2)
        .ended(Ended::Willingly)
        .step(3, 3)
        .result(4)
        .shows_nothing(&[NONCE]);
    Story::begin()
        .calls(Tool::Ask)
        .primed()
        .event(1, question())
        .event(2, result("n reply-to-n"))
        .shows_nothing(&[NONCE]);
    Story::begin()
        .calls(Tool::Record)
        .refused(503)
        .requests(2, Tool::Record)
        .then(Step::Received {
            channel: Channel::Request(2),
            id: Some("a-1-1".to_owned()),
            message: Message::Response {
                request: 2,
                answer: Answer::Result {
                    text: NONCE.to_owned(),
                    failed: false,
                },
            },
        })
        .shows_nothing(&[NONCE]);
}

#[test]
fn a_call_without_an_answer_is_lost() {
    Story::begin()
        .calls(Tool::Record)
        .primed()
        .shows(&[NONCE], Violation::Lost);
    Story::begin()
        .calls(Tool::Record)
        .refused(503)
        .shows(&[], Violation::Lost);
    Story::begin()
        .then(Step::Opening)
        .shows(&[], Violation::Lost);
}

#[test]
fn only_a_killed_edge_may_take_an_outcome_with_it() {
    let broken = || Story::begin().calls(Tool::Record).ended(Ended::Broken);
    broken().shows(&[], Violation::Lost);
    broken().shows_nothing_under(&[], &edge_killed());
    broken().shows_nothing_under(&[NONCE], &edge_killed());
    let mut rules = edge_killed();
    rules.outages[0].until = Duration::from_secs(1);
    broken().shows_under(&[], &rules, Violation::Lost);
    rules = edge_killed();
    rules.broke_at.insert("t".to_owned(), "other".to_owned());
    broken().shows_under(&[], &rules, Violation::Lost);
    // With an event id, the client can resume, so a lost answer has no excuse.
    Story::begin()
        .calls(Tool::Record)
        .primed()
        .ended(Ended::Broken)
        .shows_under(&[NONCE], &edge_killed(), Violation::Lost);
    Story::begin()
        .calls(Tool::Echo)
        .ended(Ended::Broken)
        .shows_under(&[], &edge_killed(), Violation::Lost);
}

#[test]
fn a_missing_event_is_lost() {
    let gap = Story::begin()
        .calls(Tool::Record)
        .primed()
        .event(2, result(NONCE));
    gap.shows(&[NONCE], Violation::Lost);
    let beginning = Story::begin().calls(Tool::Record).result(2);
    beginning.shows(&[NONCE], Violation::Lost);
    let step = Story::begin()
        .calls(Tool::StepsOnce)
        .primed()
        .step(1, 1)
        .step(2, 2)
        .result(3);
    step.shows(&[NONCE], Violation::Lost);
    let question = Story::begin()
        .calls(Tool::Ask)
        .event(1, result("n reply-to-n"));
    question.shows(&[NONCE], Violation::Lost);
    let next_owner = |id| {
        let primed = Story::begin().calls(Tool::Record).primed();
        primed.receives(Some(id), result(NONCE))
    };
    next_owner("b-1-1").shows_nothing(&[NONCE]);
    next_owner("b-1-2").shows(&[NONCE], Violation::Lost);
}

#[test]
fn what_comes_twice_is_duplicated() {
    Story::begin()
        .calls(Tool::Record)
        .result(1)
        .result(2)
        .shows(&[NONCE], Violation::Duplicated);
    Story::begin()
        .calls(Tool::Ask)
        .event(1, question())
        .event(2, question())
        .event(3, result("n reply-to-n"))
        .shows(&[NONCE], Violation::Duplicated);
    Story::begin()
        .calls(Tool::StepsOnce)
        .step(1, 1)
        .step(2, 2)
        .step(3, 2)
        .step(4, 3)
        .result(5)
        .shows(&[NONCE], Violation::Duplicated);
    let again = Message::Notification {
        method: "notifications/message".to_owned(),
    };
    Story::begin()
        .calls(Tool::Record)
        .event(1, again.clone())
        .event(1, again)
        .result(2)
        .shows(&[NONCE], Violation::Duplicated);
}

#[test]
fn order_matters() {
    let verdict = Story::begin()
        .calls(Tool::StepsOnce)
        .step(1, 2)
        .step(2, 1)
        .step(3, 3)
        .result(4)
        .judged(&[NONCE], &Rules::default());
    assert_eq!(verdict.count(Violation::OutOfOrder), 1, "{verdict:#?}");
}

#[test]
fn a_rerun_begins_at_the_first_step() {
    let rules = Rules {
        reruns: true,
        ..Rules::default()
    };
    let again = |tool| {
        let story = Story::begin().calls(tool).step(1, 1).step(2, 2);
        story.step(3, 1).step(4, 2).step(5, 3).result(6)
    };
    again(Tool::Steps).shows_nothing_under(&[], &rules);
    again(Tool::Steps).shows(&[], Violation::OutOfOrder);
    again(Tool::StepsOnce).shows_under(&[NONCE], &rules, Violation::OutOfOrder);
    Story::begin()
        .calls(Tool::Steps)
        .step(1, 1)
        .step(2, 3)
        .result(3)
        .shows_under(&[], &rules, Violation::Lost);
}

#[test]
fn executions_are_counted() {
    let recorded = || Story::begin().calls(Tool::Record).result(1);
    recorded().shows(&[NONCE, NONCE], Violation::ExecutedTwice);
    recorded().shows(&[], Violation::WrongOutcome);
    recorded().shows(&[NONCE, "unknown"], Violation::WrongOutcome);
    let rules = Rules {
        not_executed: true,
        ..Rules::default()
    };
    let refused = || {
        let story = Story::begin().calls(Tool::Record);
        story.event(1, error(code::NOT_EXECUTED))
    };
    refused().shows_nothing_under(&[], &rules);
    refused().shows_under(&[NONCE], &rules, Violation::WrongOutcome);
}

#[test]
fn errors_need_an_excuse() {
    let unknown = |tool| {
        let story = Story::begin().calls(tool);
        story.event(1, error(code::OUTCOME_UNKNOWN))
    };
    let rules = Rules {
        outcome_unknown: true,
        ..Rules::default()
    };
    unknown(Tool::Record).shows(&[], Violation::UnexpectedError);
    unknown(Tool::Record).shows_nothing_under(&[], &rules);
    unknown(Tool::Record).shows_nothing_under(&[NONCE], &rules);
    unknown(Tool::Echo).shows_under(&[], &rules, Violation::UnexpectedError);
    let internal = Story::begin().calls(Tool::Echo).event(1, error(-32_603));
    internal.shows_under(&[], &rules, Violation::UnexpectedError);
}

#[test]
fn answers_belong_to_their_requests() {
    Story::begin()
        .calls(Tool::Echo)
        .receives(None, result("other"))
        .shows(&[], Violation::WrongAnswer);
    let foreign = Message::Progress { token: 9, value: 1 };
    Story::begin()
        .calls(Tool::Record)
        .event(1, foreign)
        .result(2)
        .shows(&[NONCE], Violation::WrongAnswer);
}

fn outages(second: u64) -> Vec<Outage> {
    let at = Duration::from_secs(second);
    vec![Outage {
        member: "redis".to_owned(),
        from: at,
        until: at,
    }]
}

fn lost(second: u64) -> Rules {
    Rules {
        lost_writes: outages(second),
        ..Rules::default()
    }
}

fn wiped(second: u64) -> Rules {
    Rules {
        wipes: outages(second),
        ..Rules::default()
    }
}

#[test]
fn sessions_are_forgotten_only_with_their_data() {
    let forgotten = || Story::begin().calls(Tool::Record).primed().forgotten();
    forgotten().shows(&[NONCE], Violation::Forgotten);
    forgotten().shows_nothing_under(&[NONCE], &wiped(3));
    forgotten().shows_under(&[NONCE], &wiped(0), Violation::Forgotten);
    let gone = || {
        Story::begin()
            .calls(Tool::Record)
            .receives(None, error(code::GONE))
    };
    gone().shows(&[NONCE], Violation::UnexpectedError);
    gone().told_later().shows_nothing_under(&[NONCE], &wiped(3));
    let unknown = |tool| {
        let refused = Step::Refused {
            channel: Channel::Request(1),
            status: 502,
            code: Some(code::OUTCOME_UNKNOWN),
            message: String::new(),
        };
        Story::begin().calls(tool).then(refused)
    };
    unknown(Tool::Record).shows(&[NONCE], Violation::UnexpectedError);
    unknown(Tool::Record)
        .told_later()
        .shows_nothing_under(&[NONCE], &wiped(3));
    Story::begin().calls(Tool::Record).result(1).shows_under(
        &[NONCE],
        &wiped(3),
        Violation::NotTold,
    );
}

#[test]
fn lost_writes_excuse_the_sessions_that_were_opened_meanwhile() {
    let forgotten = || Story::begin().calls(Tool::Record).primed().forgotten();
    forgotten().shows_nothing_under(&[NONCE], &lost(1));
    let unknown = |tool| {
        let story = Story::begin().calls(tool);
        story.receives(None, error(code::OUTCOME_UNKNOWN))
    };
    unknown(Tool::Record).shows_nothing_under(&[NONCE], &lost(3));
    unknown(Tool::Echo).shows_under(&[], &lost(3), Violation::UnexpectedError);
    forgotten().shows_under(&[NONCE], &lost(3), Violation::Forgotten);
    let story = Story::begin().calls(Tool::Record).result(1);
    story.shows_nothing_under(&[NONCE], &lost(3));
}

#[test]
fn a_refusal_says_that_nothing_was_done() {
    let refused = |status, code| {
        let refused = Step::Refused {
            channel: Channel::Opening,
            status,
            code,
            message: String::new(),
        };
        Story::begin().then(refused)
    };
    refused(503, Some(code::NOT_EXECUTED)).shows_nothing(&[]);
    refused(429, Some(code::OVERLOADED)).shows_nothing(&[]);
    refused(502, None).shows_nothing(&[]);
    refused(503, Some(code::OUTCOME_UNKNOWN)).shows(&[], Violation::UnexpectedError);
    refused(500, Some(-32_603)).shows(&[], Violation::UnexpectedError);
}

#[test]
fn a_finished_stream_comes_again_unchanged() {
    let again = Story::begin()
        .calls(Tool::Steps)
        .primed()
        .step(1, 1)
        .step(2, 2)
        .step(3, 3)
        .result(4)
        .then(Step::Listening {
            channel: Channel::Replay(1),
            session: "s".to_owned(),
            after: Some("a-1-3".to_owned()),
        });
    let replayed = |id: &str| Step::Received {
        channel: Channel::Replay(1),
        id: Some(id.to_owned()),
        message: result(NONCE),
    };
    again.clone().then(replayed("a-1-4")).shows_nothing(&[]);
    for wrong in [again.clone().then(replayed("a-1-5")), again] {
        wrong.shows(&[], Violation::WrongReplay);
    }
}

#[test]
fn ids_of_other_servers_are_unique() {
    let story = |ids: [&str; 2]| {
        let [first, last] = ids;
        Story::begin()
            .calls(Tool::Echo)
            .receives(Some(first), Message::Prime)
            .receives(Some(last), result(NONCE))
    };
    story(["x", "y"]).shows_nothing(&[]);
    story(["x", "x"]).shows(&[], Violation::Duplicated);
}

#[test]
fn sessions_number_their_streams_by_themselves() {
    let other = |channel| Step::Listening {
        channel,
        session: "other".to_owned(),
        after: None,
    };
    let event = |channel, id: &str| Step::Received {
        channel,
        id: Some(id.to_owned()),
        message: Message::Prime,
    };
    Story::begin()
        .calls(Tool::Record)
        .then(other(Channel::Standalone))
        .then(event(Channel::Standalone, "b-1-9"))
        .primed()
        .result(1)
        .shows_nothing(&[NONCE]);
}

#[test]
fn a_task_that_has_ended_stays_as_it_is() {
    let seen = |statuses: &[&str], answers: usize| {
        let mut story = Story::begin().calls(Tool::Record);
        for status in statuses {
            let status = (*status).to_owned();
            story = story.receives(None, Message::Task { request: 1, status });
        }
        (0..answers).fold(story, |story, _| story.receives(None, result(NONCE)))
    };
    seen(&["working", "input_required", "working", "completed"], 1).shows_nothing(&[NONCE]);
    seen(&["completed", "completed"], 1).shows_nothing(&[NONCE]);
    for after in ["working", "failed"] {
        seen(&["working", "completed", after], 1).shows(&[NONCE], Violation::OutOfOrder);
    }
    seen(&["completed", "completed"], 2).shows(&[NONCE], Violation::Duplicated);
}

#[test]
fn only_lost_writes_excuse_a_task_that_forgets_its_end() {
    // The call is sent in second 2, `working` in 3, reported as ended in 4, and polled again in 5.
    let after = |tool, status: &str, says: Option<Message>| {
        let told = |status: &str| Message::Task {
            request: 1,
            status: status.to_owned(),
        };
        let story = Story::begin()
            .calls(tool)
            .receives(None, told("working"))
            .receives(None, told("completed"));
        let story = story.receives(None, result(NONCE));
        let story = story.receives(None, told(status));
        says.into_iter()
            .fold(story, |story, says| story.receives(None, says))
    };
    let wiped = Rules {
        outcome_unknown: true,
        ..wiped(3)
    };
    let works_again = || after(Tool::Record, "working", None);
    let fails = |code| after(Tool::Record, "failed", Some(error(code)));
    works_again().shows_nothing_under(&[NONCE], &lost(3));
    for rules in [lost(1), lost(5), wiped.clone()] {
        let verdict = works_again().judged(&[NONCE], &rules);
        assert_eq!(verdict.count(Violation::OutOfOrder), 1, "{verdict:#?}");
    }
    fails(code::OUTCOME_UNKNOWN).shows_nothing_under(&[NONCE], &lost(3));
    let found = |story: Story, rules| {
        let findings = story.judged(&[NONCE], &rules).findings;
        let found: Vec<_> = findings.iter().map(|found| found.violation).collect();
        found
    };
    // If all data is lost, the history must also report the session as gone.
    let gone = after(Tool::Record, "completed", Some(error(code::GONE)));
    assert_eq!(found(gone, wiped), [Violation::NotTold]);
    let twice = [Violation::Duplicated, Violation::OutOfOrder];
    assert_eq!(found(fails(code::OUTCOME_UNKNOWN), lost(1)), twice);
    assert_eq!(found(fails(-32_603), lost(3)), [Violation::Duplicated]);
    after(Tool::Record, "completed", Some(result("other"))).shows_under(
        &[NONCE],
        &lost(3),
        Violation::Duplicated,
    );
    works_again().shows_under(&[NONCE, NONCE], &lost(3), Violation::ExecutedTwice);
}

#[test]
fn only_lost_writes_excuse_a_task_that_has_lost_its_call() {
    let failed = |tool, code| {
        let status = "failed".to_owned();
        let task = Message::Task { request: 1, status };
        let story = Story::begin().calls(tool).receives(None, task);
        story.receives(None, error(code))
    };
    let unknown = |tool| failed(tool, code::OUTCOME_UNKNOWN);
    for tool in [Tool::Record, Tool::Steps] {
        unknown(tool).shows_nothing_under(&[], &lost(3));
        unknown(tool).shows(&[], Violation::UnexpectedError);
        unknown(tool).shows_under(&[], &lost(1), Violation::UnexpectedError);
        unknown(tool).shows_under(&[], &wiped(3), Violation::NotTold);
    }
    let rules = Rules {
        outcome_unknown: true,
        ..Rules::default()
    };
    unknown(Tool::Steps).shows_under(&[], &rules, Violation::UnexpectedError);
    failed(Tool::Steps, -32_603).shows_under(&[], &lost(3), Violation::UnexpectedError);
}
