//! Power of two choices: of two workers picked at random, the less busy one.

use rand::Rng as _;
use shoal_ports::{WorkerId, WorkerLoad};

use super::Member;

/// Picks a worker that is not in `tried`; `None` when there is none.
pub(super) fn choose<'a>(ready: &'a [Member], tried: &[WorkerId]) -> Option<&'a Member> {
    if tried.is_empty() {
        return of_two(ready.len(), |at| &ready[at]);
    }
    let left: Vec<&Member> = ready
        .iter()
        .filter(|member| !tried.contains(&member.id))
        .collect();
    of_two(left.len(), |at| left[at])
}

fn of_two<'a>(count: usize, member: impl Fn(usize) -> &'a Member) -> Option<&'a Member> {
    match count {
        0 => None,
        1 => Some(member(0)),
        _ => {
            let mut random = rand::rng();
            let first = random.random_range(0..count);
            // Always another one: a step of 1 to count - 1 around the circle.
            let second = (first + random.random_range(1..count)) % count;
            let (first, second) = (member(first), member(second));
            let busier = is_busier(first.worker.load(), second.worker.load());
            Some(if busier { second } else { first })
        }
    }
}

/// Compares (running + queued) / capacity without dividing; no capacity is fully busy.
fn is_busier(one: WorkerLoad, other: WorkerLoad) -> bool {
    let work = |load: WorkerLoad| (load.running + load.queued) as u128;
    match (one.capacity, other.capacity) {
        (0, other) => other > 0,
        (_, 0) => false,
        (a, b) => work(one) * b as u128 > work(other) * a as u128,
    }
}

#[cfg(test)]
mod tests {
    use super::is_busier;
    use shoal_ports::WorkerLoad;

    fn load(running: usize, queued: usize, capacity: usize) -> WorkerLoad {
        WorkerLoad {
            running,
            queued,
            capacity,
        }
    }

    #[test]
    fn load_counts_in_proportion_to_capacity() {
        assert!(is_busier(load(5, 0, 10), load(10, 5, 100)));
        assert!(!is_busier(load(10, 5, 100), load(5, 0, 10)));
        assert!(is_busier(load(2, 3, 4), load(4, 0, 4)));
        assert!(is_busier(load(0, 0, 0), load(9, 9, 1)));
        assert!(!is_busier(load(9, 9, 1), load(0, 0, 0)));
    }
}
