//! Limits the cost of one validation.
//!
//! The validator cannot be stopped. So each access to a value [charges](charge) the budget, and an exhausted budget
//! unwinds the stack to [`within`], which breaks none of the validator's state.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::search_cost::{SearchCost, SearchCosts};

/// Steps between two checks of the clock.
const CLOCK: u64 = 1024;

/// The limits of one validation. A step is about one access to a value. `time` bounds work that the steps do not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) steps: u64,
    /// Bytes of the stack.
    pub(crate) stack: usize,
    /// The thread's processor time, so that other threads' load does not count.
    pub(crate) time: Duration,
}

#[derive(Clone, Copy)]
struct BudgetLeft {
    steps: u64,
    top: usize,
    stack: usize,
    time: Duration,
    until: Option<Duration>,
}

const UNMETERED: BudgetLeft = BudgetLeft {
    steps: u64::MAX,
    top: 0,
    stack: usize::MAX,
    time: Duration::MAX,
    until: None,
};

thread_local! {
    static LEFT: Cell<BudgetLeft> = const { Cell::new(UNMETERED) };
    static SEARCHES: Cell<SearchCosts> = const { Cell::new(SearchCosts::NONE) };
}

struct Exhausted;

struct Restore(BudgetLeft, SearchCosts);

impl Drop for Restore {
    fn drop(&mut self) {
        LEFT.set(self.0);
        SEARCHES.set(self.1);
    }
}

/// `None` if the budget is exhausted. `searches` is charged for a string before a pattern searches it.
pub(super) fn within<T>(
    budget: Budget,
    searches: SearchCosts,
    validate: impl FnOnce() -> T,
) -> Option<T> {
    let left = BudgetLeft {
        steps: budget.steps,
        top: here(),
        stack: budget.stack,
        time: budget.time,
        until: None,
    };
    let _restore = Restore(LEFT.replace(left), SEARCHES.replace(searches));
    match catch_unwind(AssertUnwindSafe(validate)) {
        Ok(done) => Some(done),
        Err(panic) if panic.is::<Exhausted>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

#[inline]
pub(super) fn charge(steps: u64) {
    let left = LEFT.get();
    let after = left.steps.checked_sub(steps);
    let too_deep = left.top.abs_diff(here()) > left.stack;
    match after {
        Some(after) if !too_deep => {
            LEFT.set(BudgetLeft {
                steps: after,
                ..left
            });
            if left.steps / CLOCK != after / CLOCK {
                look_at_clock();
            }
        }
        _ => exhausted(),
    }
}

#[inline]
pub(super) fn charge_string(string: &str) {
    charge_search(SEARCHES.get().value, string);
}

#[inline]
pub(super) fn charge_name(name: &str) {
    charge_search(SEARCHES.get().name, name);
}

#[inline]
pub(super) fn charge_length(string: &str) {
    charge_search(SearchCost::NONE, string);
}

#[inline]
fn charge_search(search: SearchCost, string: &str) {
    charge(search.of(string.len()).saturating_add(1));
}

#[cold]
fn look_at_clock() {
    let (left, now) = (LEFT.get(), processor_time());
    match left.until {
        None => LEFT.set(BudgetLeft {
            until: Some(now.saturating_add(left.time)),
            ..left
        }),
        Some(until) if now > until => exhausted(),
        Some(_) => {}
    }
}

/// Without a clock, the time is unlimited.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

// `panic!` would call the panic hook.
#[cold]
fn exhausted() -> ! {
    resume_unwind(Box::new(Exhausted))
}

#[inline]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(&local).addr()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Budget, CLOCK, SearchCosts, charge, within};

    const NONE: SearchCosts = SearchCosts::NONE;

    const BUDGET: Budget = Budget {
        steps: 10_000,
        stack: 256 << 10,
        time: Duration::from_secs(60),
    };

    #[test]
    fn what_is_charged_is_bounded_and_the_meter_is_put_back() {
        assert_eq!(
            within(BUDGET, NONE, || (0..10_000).for_each(|_| charge(1))),
            Some(())
        );
        assert_eq!(
            within(BUDGET, NONE, || (0..10_001).for_each(|_| charge(1))),
            None
        );
        let inner = within(BUDGET, NONE, || {
            charge(6_000);
            (within(BUDGET, NONE, || charge(20_000)), charge(4_000))
        });
        assert_eq!(inner, Some((None, ())));
        charge(1_000_000);
    }

    #[test]
    fn time_and_stack_are_bounded() {
        let no_time = Budget {
            time: Duration::ZERO,
            steps: u64::MAX,
            ..BUDGET
        };
        assert_eq!(
            within(no_time, NONE, || loop {
                charge(1)
            }),
            None::<()>
        );
        fn deeper(level: u64) -> u64 {
            charge(1);
            match level {
                u64::MAX => 0,
                _ => std::hint::black_box(deeper(level + 1)) + level,
            }
        }
        assert_eq!(
            within(
                Budget {
                    steps: u64::MAX,
                    ..BUDGET
                },
                NONE,
                || deeper(0)
            ),
            None
        );
    }

    #[test]
    fn only_time_of_a_processor_counts() {
        let brief = Budget {
            time: Duration::from_millis(100),
            ..BUDGET
        };
        let validate = || {
            charge(CLOCK);
            std::thread::sleep(brief.time * 2);
            charge(CLOCK);
        };
        assert_eq!(within(brief, NONE, validate), Some(()));
    }

    #[test]
    #[should_panic(expected = "a defect")]
    fn another_panic_goes_on() {
        within(BUDGET, NONE, || panic!("a defect"));
    }
}
