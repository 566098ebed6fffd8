use std::time::Duration;

use shoal_ports::quantile;
use shoal_telemetry::metrics::{NameKind, metrics};

use super::super::MessageOutcome;
use super::{MOST, STEPS, Tools, WINDOWS};

const TOOK: Duration = Duration::from_millis(3);

#[test]
fn calls_are_told_by_tool_until_their_window_is_forgotten() {
    metrics()
        .known
        .add(NameKind::Tool, ["tools-add", "tools-idle"]);
    let tools = Tools::default();
    tools.count("tools-add", MessageOutcome::Ok, TOOK);
    tools.count("tools-add", MessageOutcome::Rejected, TOOK);
    tools.count("tools-add", MessageOutcome::Cancelled, TOOK);
    let recent = tools.recent("tools-add");
    assert_eq!((recent.outcomes.ok, recent.outcomes.total()), (1, 3));
    assert!((2_200..=3_300).contains(&quantile(&recent.latency, 0.95).unwrap()));
    assert_eq!(
        recent.latency.iter().sum::<u64>(),
        2,
        "none that was cancelled"
    );
    assert!(recent.seconds > 0);
    let idle = tools.recent("tools-idle");
    assert_eq!((idle.outcomes.total(), idle.latency.len()), (0, 0));
    assert!(idle.seconds > 0, "it is counted");

    for _ in 0..STEPS * (WINDOWS - 1) {
        tools.end_step();
        tools.count("tools-idle", MessageOutcome::Failed, TOOK);
    }
    assert_eq!(tools.recent("tools-add").outcomes.total(), 3);
    for _ in 0..STEPS {
        tools.end_step();
    }
    assert_eq!(tools.recent("tools-add").outcomes.total(), 0, "forgotten");
    let idle = tools.recent("tools-idle").outcomes.failed;
    assert!((1..(STEPS * WINDOWS) as u64).contains(&idle), "{idle}");
}

#[test]
fn names_that_clients_make_up_take_no_place() {
    let tools = Tools::default();
    for number in 0..MOST * 2 {
        tools.count(&format!("made-up-{number}"), MessageOutcome::Rejected, TOOK);
    }
    assert_eq!(tools.recent("made-up-1").outcomes.total(), 0);
    let names: Vec<String> = (0..MOST + 50)
        .map(|at| format!("tools-many-{at}"))
        .collect();
    metrics().known.add(NameKind::Tool, &names);
    for name in &names {
        tools.count(name, MessageOutcome::Ok, TOOK);
        tools.count(name, MessageOutcome::Ok, TOOK);
    }
    let counted = names.iter().map(|name| tools.recent(name));
    let [counted, untold] =
        counted.fold([0, 0], |[counted, untold], recent| match recent.seconds {
            0 => [counted, untold + 1],
            _ => [counted + usize::from(recent.outcomes.ok == 2), untold],
        });
    assert_eq!(
        (counted, untold),
        (MOST, 50),
        "the rest says that it is not counted"
    );
}
