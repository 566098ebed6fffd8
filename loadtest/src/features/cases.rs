use super::case::Authentication::{self, Tokens};
use super::case::{Case, Deployment, Features, Part, Traces};
use crate::mcp::Mode;
use crate::servers::collector::Conduct;

const BARE: Features = Features {
    validation: false,
    authentication: Authentication::Off,
    policy: false,
    quotas: false,
    audit: false,
    metrics: false,
    traces: None,
};

const WITHOUT_TELEMETRY: Features = Features {
    validation: true,
    ..BARE
};

const WITH_SECURITY: Features = Features {
    authentication: Authentication::Jwt,
    policy: true,
    quotas: true,
    audit: true,
    ..BARE
};

const SECURED: &str = "JWT+policy+quotas+audit";

const OPERATED: f64 = 0.1;

pub(super) fn telemetry(mode: Mode, with_cluster: bool) -> Vec<Case> {
    let of = |deployment, name, part, features| Case {
        name,
        mode,
        deployment,
        part,
        features,
    };
    let one = |name, part, features| of(Deployment::OneProcess, name, part, features);
    let cluster = |name, part, features| of(Deployment::Cluster, name, part, features);
    let operated = |collector| traces(OPERATED, collector);
    let mut cases = vec![
        one("off", Part::Off, WITHOUT_TELEMETRY),
        one("metrics", Part::Shown, metrics(WITHOUT_TELEMETRY)),
        one("traces 10 %", Part::Sampled, operated(Conduct::Answers)),
        one("traces 100 %", Part::Shown, traces(1.0, Conduct::Answers)),
        one(
            "10 %, collector stopped",
            Part::Outage,
            operated(Conduct::Refuses),
        ),
        one(
            "10 %, collector hangs",
            Part::Outage,
            operated(Conduct::Hangs),
        ),
    ];
    if with_cluster {
        let sampled = operated(Conduct::Answers);
        cases.push(cluster("cluster off", Part::Off, WITHOUT_TELEMETRY));
        cases.push(cluster("cluster traces 10 %", Part::Sampled, sampled));
    }
    cases
}

pub(super) fn features(modes: &[Mode]) -> Vec<Case> {
    let with = |mut features: Features, change: fn(&mut Features)| {
        change(&mut features);
        features
    };
    let traced = traces(OPERATED, Conduct::Answers);
    let rows = [
        ("off", BARE),
        ("validation", WITHOUT_TELEMETRY),
        (
            "authentication",
            with(BARE, |it| it.authentication = Tokens(1)),
        ),
        (
            "one of 1000 tokens",
            with(BARE, |it| it.authentication = Tokens(1000)),
        ),
        (
            "JWT",
            with(BARE, |it| it.authentication = Authentication::Jwt),
        ),
        ("policy", with(BARE, |it| it.policy = true)),
        ("quotas", with(BARE, |it| it.quotas = true)),
        ("audit", with(BARE, |it| it.audit = true)),
        (SECURED, WITH_SECURITY),
        ("metrics", metrics(BARE)),
        ("traces 10 %", with(traced, |it| it.validation = false)),
        ("all", with(traced, |it| it.authentication = Tokens(1))),
    ];
    let of = |mode| {
        rows.map(|(name, features)| Case {
            name,
            mode,
            deployment: Deployment::OneProcess,
            part: match name {
                "off" => Part::Off,
                SECURED => Part::Secured,
                _ => Part::Shown,
            },
            features,
        })
    };
    modes.iter().flat_map(|mode| of(*mode)).collect()
}

fn metrics(features: Features) -> Features {
    Features {
        metrics: true,
        ..features
    }
}

fn traces(ratio: f64, collector: Conduct) -> Features {
    Features {
        traces: Some(Traces { ratio, collector }),
        ..metrics(WITHOUT_TELEMETRY)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Part, features, telemetry};
    use crate::mcp::Mode;

    #[test]
    fn every_case_has_one_beside_it_that_it_is_compared_with() {
        let both = [Mode::Legacy, Mode::Modern];
        for cases in [
            telemetry(Mode::Legacy, true),
            telemetry(Mode::Modern, false),
            features(&both),
        ] {
            for case in &cases {
                let is_beside = |it: &&super::Case| {
                    it.part == Part::Off && (it.mode, it.deployment) == (case.mode, case.deployment)
                };
                assert_eq!(cases.iter().filter(is_beside).count(), 1, "{}", case.name);
            }
        }
        assert_eq!(features(&both).len(), 2 * features(&both[..1]).len());
    }

    #[test]
    fn no_two_cases_of_an_era_have_the_same_name() {
        for cases in [telemetry(Mode::Legacy, true), features(&[Mode::Legacy])] {
            let names: HashSet<&str> = cases.iter().map(|case| case.name).collect();
            assert_eq!(names.len(), cases.len());
        }
    }
}
