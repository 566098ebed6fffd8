use std::net::IpAddr;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

use super::{CellRate, QuotaConfig, QuotaPer, QuotaSubject, Rate, Taken};

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

#[test]
fn a_rate_is_read_as_it_is_written() {
    for text in ["1/s", "600/min", "1000/h", "5000/day"] {
        assert_eq!(rate(text).to_string(), text);
    }
    assert_eq!(rate("600/min").interval(), 100_000_000);
    for wrong in [
        "", "10", "10/", "/s", "-1/s", "0/s", "1.5/s", "10/week", "100001/s",
    ] {
        assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
    }
}

#[test]
fn quotas_that_cannot_be_used_are_refused() {
    let fit = QuotaConfig {
        name: "fit".to_owned(),
        per: QuotaPer::Principal,
        tools: Vec::new(),
        rate: Some(rate("10/s")),
        burst: None,
        concurrent: None,
    };
    let refused = |change: fn(&mut QuotaConfig)| {
        let mut quota = fit.clone();
        change(&mut quota);
        QuotaConfig::check_all(&[quota]).unwrap_err()
    };
    QuotaConfig::check_all(std::slice::from_ref(&fit)).unwrap();
    assert!(refused(|it| it.name = "Not fit".to_owned()).contains("a-z"));
    assert!(refused(|it| it.rate = None).contains("`concurrent`"));
    assert!(refused(|it| it.burst = Some(0)).contains("`burst`"));
    assert!(refused(|it| it.concurrent = Some(0)).contains("`concurrent`"));
    assert!(refused(|it| it.tools = vec![String::new()]).contains("`tools`"));
    let addresses = refused(|it| {
        it.per = QuotaPer::Address;
        it.tools = vec!["a".to_owned()];
    });
    assert!(addresses.contains("before the message is read"));
    let slow = refused(|it| {
        it.rate = "1/day".parse().ok();
        it.burst = Some(31);
    });
    assert!(slow.contains("30 days"), "{slow}");
    assert!(
        QuotaConfig::check_all(&[fit.clone(), fit.clone()])
            .unwrap_err()
            .contains("two quotas")
    );
}

#[test]
fn an_ipv6_network_is_one_subject() {
    let subject = |text: &str| QuotaSubject::address(text.parse::<IpAddr>().unwrap());
    assert_eq!(subject("2001:db8::1"), subject("2001:db8::ffff:1"));
    assert_ne!(subject("2001:db8::1"), subject("2001:db8:0:1::1"));
    assert_eq!(subject("::ffff:192.0.2.1"), subject("192.0.2.1"));
    assert_ne!(subject("192.0.2.1"), subject("192.0.2.2"));
}

struct Bucket {
    rate: CellRate,
    cells: u32,
    part: u64,
}

impl Bucket {
    fn wait(&mut self, nanos: u64) {
        let nanos = self.part + nanos;
        let came = u32::try_from(nanos / self.rate.interval()).unwrap();
        self.part = nanos % self.rate.interval();
        self.cells += came;
        if self.cells >= self.rate.burst() {
            (self.cells, self.part) = (self.rate.burst(), 0);
        }
    }

    fn take(&mut self, need: u32, want: u32) -> Taken {
        if self.cells < need {
            let lacks = u64::from(need - self.cells) * self.rate.interval() - self.part;
            return Taken::Later(Duration::from_nanos(lacks));
        }
        let cells = self.cells.min(want.max(need));
        self.cells -= cells;
        Taken::Cells(cells)
    }

    fn give_back(&mut self, cells: u32) {
        self.cells += cells;
        if self.cells >= self.rate.burst() {
            (self.cells, self.part) = (self.rate.burst(), 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn gcra_is_a_bucket(
        burst in 1_u32..20,
        steps in vec((0_u64..3_000_000_000, 1_u32..5, 0_u32..8, 0_u32..4), 1..60),
    ) {
        let rate = CellRate::new(rate("3/s"), burst);
        let mut bucket = Bucket { rate, cells: burst, part: 0 };
        let (mut now, mut full) = (1_000_000_000, 0);
        for (wait, need, want, back) in steps {
            now += wait;
            bucket.wait(wait);
            let need = need.min(burst);
            let (then, taken) = rate.take(full, now, need, want);
            full = then;
            prop_assert_eq!(taken, bucket.take(need, want));
            if let Taken::Cells(cells) = taken {
                let back = back.min(cells);
                full = rate.give_back(full, now, back);
                bucket.give_back(back);
            }
        }
    }

    #[test]
    fn what_is_let_through_is_bounded(
        burst in 1_u32..20,
        waits in vec(0_u64..1_000_000_000, 1..200),
    ) {
        let rate = CellRate::new(rate("10/s"), burst);
        let (began, mut full, mut let_through) = (7, 0, 0_u64);
        let mut now = began;
        for wait in waits {
            now += wait;
            let (then, taken) = rate.take(full, now, 1, 1);
            full = then;
            let_through += u64::from(taken == Taken::Cells(1));
            prop_assert!(let_through <= u64::from(burst) + (now - began) / rate.interval());
        }
    }

    #[test]
    fn a_smaller_bucket_is_not_in_debt_for_longer_than_it_takes_to_fill(
        old in 1_u32..1_000,
        new in 1_u32..10,
    ) {
        let slow = CellRate::new(rate("1/h"), old);
        let fast = CellRate::new(rate("1/s"), new);
        let (full, _) = slow.take(0, 5, old, old);
        let (_, taken) = fast.take(full, 5, 1, 1);
        prop_assert_eq!(taken, Taken::Later(Duration::from_secs(1)));
    }
}
