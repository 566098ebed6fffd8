//! A check reuses the link of the previous one, if that passed.

mod asking;
mod ending;
mod flow;
mod joining;
mod ledger;
mod reading;
mod running;

use futures::future::BoxFuture;

use super::check_failure::CheckResult;
use super::listener::WorkerListener;

pub(super) struct ConformanceCheck {
    /// The check's name, one word.
    pub(super) name: &'static str,
    /// The contract's requirement.
    pub(super) about: &'static str,
    pub(super) tools: &'static [&'static str],
    pub(super) run: for<'a> fn(&'a mut WorkerListener) -> BoxFuture<'a, CheckResult>,
}

/// One line per check: its function, the required tools and the requirement.
macro_rules! checks {
    ($($group:ident::$name:ident [$($tool:literal)*] $about:literal;)*) => {
        &[$(ConformanceCheck {
            name: stringify!($name),
            about: $about,
            tools: &[$($tool),*],
            run: |listener| Box::pin($group::$name(listener)),
        }),*]
    };
}

pub(super) const CHECKS: &[ConformanceCheck] = checks! {
    joining::hello [] "the hello names the worker, its versions and its incarnation";
    joining::announce [] "the worker announces its pool and a catalog of JSON objects";
    joining::load [] "the worker tells how many calls it can run";
    joining::pong [] "a ping is answered with its nonce";
    joining::unknown [] "unknown frames and flights are ignored";
    joining::nodes [] "every node that the worker is told of is dialled";
    joining::redial [] "a link that ends is dialled again, as the same incarnation";
    joining::oldest_version ["echo"] "the oldest version that the worker speaks works";
    running::result ["echo"] "a call ends with one result, numbered from 1";
    running::batch ["echo"] "starts that come in a batch are all run";
    running::unknown_tool [] "an unknown tool is the error -32602";
    running::unknown_method [] "an unknown method is the error -32601";
    running::tool_error ["fail"] "a tool that fails says so in its result (isError)";
    running::progress ["long_job"] "progress is reported under the client's token";
    running::no_progress ["long_job"] "nobody hears of progress who has given no token";
    running::log_level ["write_log"] "log messages are sent from the wanted level on";
    running::reader_name ["long_job"] "the first word of a flight names its reader";
    flow::fragments ["echo"] "frames over 128 KiB travel in fragments, both ways";
    flow::credit ["long_job" "echo"] "a flight without credit waits, and no other one does";
    ledger::ledger_number [] "the worker tells its ledger's number";
    ledger::same_call ["increment_counter"] "a call that is started twice is run once";
    ledger::acknowledged ["increment_counter"] "an acknowledged result is let go, and the call never run again";
    ledger::other_incarnation ["increment_counter"] "a call bound to an earlier incarnation is refused";
    ledger::number_out_of_range ["increment_counter"] "a call bound under a number that is not remembered is refused";
    ledger::attach_only ["increment_counter"] "a cancelled call is refused, now and whenever it is started";
    reading::attach_unknown [] "attaching to an unknown call is refused as outcome unknown";
    reading::attach_after ["long_job"] "a reader gets the events after the one that it has";
    reading::kept_result ["echo"] "the result of a call outlives its link";
    reading::broken_link ["long_job"] "a call goes on while its link is broken";
    reading::replaced ["long_job"] "a new reader replaces the one before, who is told";
    reading::replaced_reader_returns ["long_job"] "a reader that was replaced does not come back";
    reading::detach ["long_job"] "a call goes on when its reader detaches, and can still be steered";
    asking::question ["book_table"] "an answer to a question is acknowledged, also the second time";
    asking::question_again ["book_table"] "an open question is put again to whoever attaches";
    asking::undeclared ["book_table"] "a client is not asked for what it has not declared";
    asking::session_state ["remember" "recall"] "session state is asked of the session's owner";
    asking::session_state_again ["remember"] "an unanswered request for session state comes again, the same writing";
    ending::cancel ["long_job"] "a cancelled call ends as cancelled";
    ending::deadline ["long_job"] "a call that takes too long ends as deadline exceeded";
    ending::end_session ["long_job"] "the end of a session cancels its calls and refuses later ones";
    ending::deserted ["long_job"] "a call without a session ends when nobody comes back to it";
    ending::drain ["long_job" "echo"] "a worker that is told to end finishes its calls and says goodbye";
};
