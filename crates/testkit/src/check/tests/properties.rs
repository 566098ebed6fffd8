use proptest::prelude::{Just, Strategy};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::story::{NONCE, Story};
use crate::check::{Rules, Verdict};
use crate::history::{Ended, History, Message, Step, Tool};

fn perfect() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(proptest::bool::ANY, 4).prop_flat_map(|breaks| {
        let mut story = Story(History::default()).primed();
        for (step, broken) in (1..).zip(breaks) {
            if broken {
                story = story.ended(Ended::Broken);
            }
            story = match step {
                4 => story.result(4),
                step => story.step(step, step),
            };
        }
        Just(
            story
                .0
                .entries
                .into_iter()
                .map(|entry| entry.step)
                .collect(),
        )
    })
}

fn judged(steps: Vec<Step>) -> Verdict {
    let begun = Story::begin().calls(Tool::StepsOnce);
    steps
        .into_iter()
        .fold(begun, Story::then)
        .judged(&[NONCE], &Rules::default())
}

proptest! {
    #[test]
    fn breaks_do_no_harm(steps in perfect()) {
        prop_assert!(judged(steps).is_clean());
    }

    #[test]
    fn any_event_that_is_taken_away_is_missed(mut steps in perfect(), at: proptest::sample::Index) {
        let events: Vec<usize> = events(&steps);
        steps.remove(*at.get(&events));
        prop_assert!(!judged(steps).is_clean());
    }

    #[test]
    fn any_event_that_comes_again_is_noticed(mut steps in perfect(), at: proptest::sample::Index) {
        let events: Vec<usize> = events(&steps);
        let at = *at.get(&events);
        steps.insert(at, steps[at].clone());
        prop_assert!(!judged(steps).is_clean());
    }

    #[test]
    fn any_two_events_that_change_places_are_noticed(mut steps in perfect(), at in 0_usize..3) {
        let events: Vec<usize> = events(&steps);
        prop_assert_eq!(events.len(), 4);
        steps.swap(events[at], events[at + 1]);
        prop_assert!(!judged(steps).is_clean());
    }
}

fn events(steps: &[Step]) -> Vec<usize> {
    let is_event = |step: &Step| match step {
        Step::Received { message, .. } => *message != Message::Prime,
        _ => false,
    };
    (0..steps.len())
        .filter(|at| is_event(&steps[*at]))
        .collect()
}
