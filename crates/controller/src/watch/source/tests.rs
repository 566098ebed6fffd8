use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use shoal_ports::kubernetes::ServerKind;

use super::Source;
use crate::watch::objects::{MOST_BYTES, MOST_NAMESPACE_BYTES, MOST_OBJECTS};
use crate::watch::tests::service;

fn see(source: &mut Source, event: Event<DynamicObject>, room: usize) -> bool {
    source.see((ServerKind::Service, "v1"), event, room)
}

fn list(source: &mut Source, objects: impl IntoIterator<Item = DynamicObject>, room: usize) {
    see(source, Event::Init, room);
    for object in objects {
        see(source, Event::InitApply(object), room);
    }
    assert!(see(source, Event::InitDone, room));
}

fn known(count: usize) -> impl Iterator<Item = DynamicObject> {
    (0..count).map(|at| service("team-a", &format!("s{at:04}"), 0))
}

/// Returns the namespaces and names of the objects.
fn paths(source: &Source) -> Vec<String> {
    let objects = source.objects.iter();
    let paths = objects.map(|it| format!("{}/{}", it.namespace, it.name));
    paths.collect()
}

fn has(source: &Source, path: &str) -> bool {
    paths(source).iter().any(|it| it == path)
}

fn path_of(source: &Source, name: &str) -> usize {
    let object = source.objects.get("team-a", name).unwrap();
    object.annotation("path").unwrap().len()
}

#[test]
fn a_list_displaces_no_known_object_of_a_full_namespace() {
    let mut source = Source::default();
    list(&mut source, known(MOST_OBJECTS), MOST_BYTES);
    assert_eq!(source.trouble(), None);
    let before = paths(&source);
    let new = || service("team-a", "a-new-one", 0);

    list(
        &mut source,
        std::iter::once(new()).chain(known(MOST_OBJECTS)),
        MOST_BYTES,
    );
    assert_eq!(paths(&source), before);
    assert!(source.trouble().unwrap().contains("the namespace team-a"));

    list(
        &mut source,
        std::iter::once(new()).chain(known(MOST_OBJECTS).skip(1)),
        MOST_BYTES,
    );
    assert!(!has(&source, "team-a/s0000"));
    assert!(has(&source, "team-a/a-new-one"));
    assert_eq!(source.objects.len(), MOST_OBJECTS);
    assert_eq!(source.trouble(), None);
}

#[test]
fn a_list_displaces_no_known_object_of_a_full_kind() {
    let mut source = Source::default();
    list(&mut source, known(10), MOST_BYTES);
    let (room, before) = (source.objects.bytes(), paths(&source));
    let new = || service("a-new-team", "s0000", 0);

    list(&mut source, std::iter::once(new()).chain(known(10)), room);
    assert_eq!(paths(&source), before);
    assert!(source.trouble().unwrap().contains("those of this kind"));

    list(
        &mut source,
        std::iter::once(new()).chain(known(9)),
        room + 4,
    );
    assert!(has(&source, "a-new-team/s0000") && !has(&source, "team-a/s0009"));
    assert_eq!(source.trouble(), None);
}

#[test]
fn a_known_object_that_grows_displaces_no_other() {
    let mut source = Source::default();
    list(&mut source, known(3), MOST_BYTES);
    let room = source.objects.bytes();
    let grown = || service("team-a", "s0000", 10);

    list(
        &mut source,
        std::iter::once(grown()).chain(known(3).skip(1)),
        room,
    );
    assert_eq!(source.objects.len(), 3);
    assert_eq!(path_of(&source, "s0000"), 0, "the old version stays");
    assert!(source.trouble().unwrap().contains("those of this kind"));

    let new = service("team-a", "a-new-one", 0);
    list(
        &mut source,
        [new, grown(), service("team-a", "s0001", 0)],
        room,
    );
    assert_eq!(paths(&source), ["team-a/s0000", "team-a/s0001"]);
    assert_eq!(
        path_of(&source, "s0000"),
        10,
        "a known object comes before a new one"
    );
}

#[test]
fn a_list_that_breaks_off_takes_nothing_away() {
    let mut source = Source::default();
    list(&mut source, known(3), MOST_BYTES);
    see(&mut source, Event::Init, MOST_BYTES);
    see(
        &mut source,
        Event::InitApply(service("team-a", "s0000", 0)),
        MOST_BYTES,
    );
    source.listing = None;
    assert_eq!(source.objects.len(), 3);
    list(&mut source, known(2), MOST_BYTES);
    assert_eq!(source.objects.len(), 2);
}

#[test]
fn a_list_in_progress_takes_no_more_memory_than_a_source_may() {
    for (path, limit) in [(0, "the objects"), (1000, "the bytes")] {
        let mut source = Source::default();
        list(&mut source, known(MOST_OBJECTS), MOST_BYTES);
        see(&mut source, Event::Init, MOST_BYTES);
        for at in 0..3 * MOST_OBJECTS {
            let new = service("team-a", &format!("a{at:04}"), path);
            see(&mut source, Event::InitApply(new), MOST_BYTES);
        }
        let listing = source.listing.as_ref().unwrap();
        assert!(listing.len() <= MOST_OBJECTS, "{limit}");
        assert!(source.bytes() <= MOST_NAMESPACE_BYTES, "{limit}");
        assert!(see(&mut source, Event::InitDone, MOST_BYTES));
        assert!(has(&source, "team-a/a0000") && !has(&source, "team-a/s0000"));
        assert!(source.trouble().unwrap().contains("the namespace team-a"));
    }
}
