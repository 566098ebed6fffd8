use std::collections::{HashMap, HashSet};

use super::{Stat, family, machine_cpu, measure, parse_kib, parse_machine, parse_stat};

const STAT: &str =
    "4242 (odd) (na me) S 17 4242 4242 0 -1 4194304 123 0 0 0 250 50 7 3 20 0 5 0 1000 1 2 3";

#[test]
fn a_name_with_blanks_and_parentheses_shifts_no_field() {
    let stat = parse_stat(STAT).unwrap();
    assert_eq!(
        stat,
        Stat {
            parent: 17,
            ticks: 310
        }
    );
}

#[test]
fn a_truncated_line_is_no_process() {
    assert_eq!(parse_stat("4242 (name) S 17 4242"), None);
    assert_eq!(parse_stat(""), None);
}

#[test]
fn resident_memory_is_found_among_other_lines() {
    let status = "Name:\tx\nVmHWM:\t  900 kB\nVmRSS:\t     812 kB\nThreads:\t3\n";
    assert_eq!(parse_kib(status, "VmRSS:"), Some(812));
    assert_eq!(parse_kib("Name:\tkthread\n", "VmRSS:"), None);
}

#[test]
fn grandchildren_belong_to_the_family() {
    let child_of = |parent| Stat { parent, ticks: 0 };
    let table: HashMap<u32, Stat> = [
        (2, child_of(1)),
        (3, child_of(2)),
        (4, child_of(9)),
        (9, child_of(0)),
    ]
    .into();
    assert_eq!(family(&[1], &table), HashSet::from([1, 2, 3]));
}

#[test]
fn this_process_has_a_usage() {
    let usage = measure(&[std::process::id()]).unwrap();
    assert!(usage.rss_kib > 0);
}

#[test]
fn waiting_is_not_work() {
    let stat = "cpu  100 20 30 9999 8888 4 2 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n";
    assert_eq!(parse_machine(stat), Some(156));
    assert_eq!(parse_machine("intr 1 2 3"), None);
}

#[test]
fn the_machine_has_worked_more_than_this_process() {
    let own = measure(&[std::process::id()]).unwrap().cpu;
    assert!(machine_cpu().unwrap() >= own);
}
