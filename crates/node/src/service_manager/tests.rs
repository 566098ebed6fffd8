use std::ffi::OsString;
use std::time::Duration;

use super::{LONGEST_STATUS, ServiceManager, status};
use crate::admin::Readiness;

fn of(variables: &[(&str, &str)]) -> ServiceManager {
    ServiceManager::of(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

#[test]
fn the_environment_says_whom_to_tell_and_how_often() {
    let none = of(&[]);
    assert!(none.socket.is_none() && none.watchdog.is_none());
    let own = std::process::id().to_string();
    let manager = of(&[
        ("NOTIFY_SOCKET", "/run/systemd/notify"),
        ("WATCHDOG_USEC", "3000000"),
        ("WATCHDOG_PID", &own),
    ]);
    assert!(manager.socket.is_some());
    assert_eq!(manager.watchdog, Some(Duration::from_secs(3)));
    let of_another = of(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "1")]);
    assert_eq!(of_another.watchdog, None);
    assert!(of(&[("NOTIFY_SOCKET", "@abstract")]).socket.is_some());
    assert!(of(&[("NOTIFY_SOCKET", "vsock:2:1234")]).socket.is_none());
}

#[test]
fn a_status_is_one_line_of_bounded_length() {
    let readiness = Readiness::not_yet(format!("one\nREADY=1 {}", "x".repeat(10_000)));
    let said = status(&readiness);
    assert!(said.starts_with("not ready: one READY=1 xxx"), "{said}");
    assert_eq!(said.chars().count(), LONGEST_STATUS);
}
