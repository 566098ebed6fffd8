use parking_lot::Mutex;
use shoal_ports::WorkerLoad;

/// Counts the calls started and ended since the worker's last report. Otherwise, a node would send
/// all calls to a worker that was just idle.
#[derive(Default)]
pub(super) struct Gauge(Mutex<LoadReading>);

#[derive(Default)]
struct LoadReading {
    reported: WorkerLoad,
    since: i64,
}

impl Gauge {
    pub(super) fn report(&self, load: WorkerLoad) -> bool {
        let now = LoadReading {
            reported: load,
            since: 0,
        };
        let before = std::mem::replace(&mut *self.0.lock(), now);
        before.reported.capacity == 0 && load.capacity > 0
    }

    pub(super) fn started(&self) {
        self.0.lock().since += 1;
    }

    pub(super) fn ended(&self) {
        self.0.lock().since -= 1;
    }

    pub(super) fn read(&self) -> WorkerLoad {
        let reading = self.0.lock();
        let WorkerLoad {
            running,
            queued,
            capacity,
        } = reading.reported;
        // Started calls take free capacity, then wait. When calls end, waiting ones replace them.
        let more = usize::try_from(reading.since).unwrap_or(0);
        let fewer = usize::try_from(-reading.since).unwrap_or(0);
        let runs = more.min(capacity.saturating_sub(running));
        let moves_up = fewer.min(queued);
        WorkerLoad {
            running: (running + runs).saturating_sub(fewer - moves_up),
            queued: queued + (more - runs) - moves_up,
            capacity,
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::WorkerLoad;

    use super::Gauge;

    #[test]
    fn calls_since_the_report_count() {
        let gauge = Gauge::default();
        gauge.report(WorkerLoad {
            running: 1,
            queued: 0,
            capacity: 2,
        });
        for _ in 0..3 {
            gauge.started();
        }
        let load = gauge.read();
        assert_eq!((load.running, load.queued, load.capacity), (2, 2, 2));
        for _ in 0..9 {
            gauge.ended();
        }
        assert_eq!((gauge.read().running, gauge.read().queued), (0, 0));
    }
}
