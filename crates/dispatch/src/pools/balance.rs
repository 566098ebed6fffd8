use rand::Rng as _;
use shoal_ports::{WorkerId, WorkerLoad};

use std::sync::Arc;

use super::{CircuitState, PoolMember, WantedWorker};

/// Chooses a worker that is not in `tried`. If its circuit is half-open, the call becomes the trial.
///
/// For anonymous callers, workers with open circuits are the last resort, so that one caller's failures do not refuse
/// another's calls.
pub(super) fn choose<'a>(
    ready: &'a [Arc<PoolMember>],
    wanted: &WantedWorker<'_>,
    tried: &[WorkerId],
) -> Option<&'a Arc<PoolMember>> {
    while let Some(picked) = fitting(ready, wanted, tried) {
        // Fails if another call has just taken the trial.
        if picked.enter(wanted) {
            return Some(picked);
        }
    }
    last_resort(ready, wanted, tried)
}

/// Picks a worker for a call that another node starts, as [`choose`] does, and leaves the trial to that node.
pub(super) fn draw<'a>(
    ready: &'a [Arc<PoolMember>],
    wanted: &WantedWorker<'_>,
    tried: &[WorkerId],
) -> Option<&'a Arc<PoolMember>> {
    fitting(ready, wanted, tried).or_else(|| last_resort(ready, wanted, tried))
}

fn fitting<'a>(
    ready: &'a [Arc<PoolMember>],
    wanted: &WantedWorker<'_>,
    tried: &[WorkerId],
) -> Option<&'a Arc<PoolMember>> {
    pick(ready, wanted, |member| {
        can(member, wanted, tried) && member.circuit_of(wanted) != CircuitState::Open
    })
}

fn last_resort<'a>(
    ready: &'a [Arc<PoolMember>],
    wanted: &WantedWorker<'_>,
    tried: &[WorkerId],
) -> Option<&'a Arc<PoolMember>> {
    match wanted.is_anybodys() {
        true => pick(ready, wanted, |member| can(member, wanted, tried)),
        false => None,
    }
}

fn can(member: &PoolMember, wanted: &WantedWorker<'_>, tried: &[WorkerId]) -> bool {
    !tried.contains(&member.id) && member.can_take(wanted.tool)
}

fn pick<'a>(
    ready: &'a [Arc<PoolMember>],
    wanted: &WantedWorker<'_>,
    fits: impl Fn(&PoolMember) -> bool,
) -> Option<&'a Arc<PoolMember>> {
    match wanted.key {
        Some(key) => ready
            .iter()
            .filter(|member| fits(member))
            .max_by_key(|member| key.weight(member.seed)),
        None => of_two(ready, fits),
    }
}

fn of_two(
    ready: &[Arc<PoolMember>],
    fits: impl Fn(&PoolMember) -> bool,
) -> Option<&Arc<PoolMember>> {
    if let [only] = ready {
        return fits(only).then_some(only);
    }
    if let Some((first, second)) = two_of(ready.len()) {
        let (first, second) = (&ready[first], &ready[second]);
        if fits(first) && fits(second) {
            return Some(less_busy(first, second));
        }
    }
    let fitting: Vec<_> = ready.iter().filter(|member| fits(member)).collect();
    match two_of(fitting.len()) {
        Some((first, second)) => Some(less_busy(fitting[first], fitting[second])),
        None => fitting.first().copied(),
    }
}

fn two_of(count: usize) -> Option<(usize, usize)> {
    if count < 2 {
        return None;
    }
    let mut random = rand::rng();
    let first = random.random_range(0..count);
    Some((first, (first + random.random_range(1..count)) % count))
}

fn less_busy<'a>(first: &'a Arc<PoolMember>, second: &'a Arc<PoolMember>) -> &'a Arc<PoolMember> {
    if is_busier(first.worker.load(), second.worker.load()) {
        second
    } else {
        first
    }
}

/// Compares `(running + queued) / capacity` without division.
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
