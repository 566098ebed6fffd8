#[path = "../../examples/reference/page.rs"]
mod page;

#[test]
fn the_reference_page_is_current() {
    let written = include_str!("../../../../docs/metrics.md");
    assert!(
        written == page::markdown(),
        "run: cargo run -q -p shoal-telemetry --example reference > docs/metrics.md"
    );
}
