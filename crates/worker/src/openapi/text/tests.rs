use serde_json::json;

use super::{of_operation, plain, short};

#[test]
fn markup_is_no_text() {
    for (written, meant) in [
        ("<p>One <b>two</b>.</p><p>Three</p>", "One two.\n\nThree"),
        (
            "A<br/>b &amp; c&nbsp;&lt;d&gt; &#39;e&#x27; &who;",
            "A\nb & c <d> 'e' &who;",
        ),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("x <!-- hidden --> <script>alert(1)</script>y", "x y"),
        ("<a href=\"https://a.example\" title='b'>here</a>", "here"),
        (
            "List<String> of <your key> where 1 < 2",
            "List<String> of <your key> where 1 < 2",
        ),
        ("a\n\n\n\n  b   c\nd", "a\n\nb c\nd"),
        ("<", "<"),
    ] {
        assert_eq!(plain(written), meant);
    }
}

#[test]
fn a_text_ends_where_a_sentence_does() {
    assert_eq!(short("One two. Three four five.", 18), "One two.");
    assert_eq!(short("First.\n\nSecond part that is long.", 20), "First.");
    assert_eq!(short("one two three four", 12), "one two…");
    assert_eq!(short("größer größer größer", 8), "größer…");
    assert_eq!(short("fits", 4), "fits");
    assert_eq!(short("gone", 0), "");
}

#[test]
fn a_tool_says_what_it_does_and_how_it_fails() {
    let object = json!({
        "summary": "Gets a pet", "description": "<p>Gets a pet by its id.</p>",
        "responses": {
            "200": { "description": "a pet" }, "404": { "description": "There is <b>none</b>." },
            "401": { "description": "unauthorized" }, "409": { "$ref": "#/x" },
        },
    });
    let object = serde_json::from_value(object).unwrap();
    assert_eq!(
        of_operation(&object).unwrap(),
        "Gets a pet by its id.\n\nErrors: 404 There is none."
    );
    let object = serde_json::from_value(json!({})).unwrap();
    assert_eq!(of_operation(&object), None);
}
