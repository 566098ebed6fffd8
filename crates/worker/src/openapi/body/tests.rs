use serde_json::{Value, json};

use super::{BodyEncoder, BodyKind, choose};
use crate::openapi::document::MediaType;

fn written(
    media: &str,
    content: Value,
    files: &[&str],
    value: Value,
) -> Result<(String, String), String> {
    let content: MediaType = serde_json::from_value(content).unwrap();
    let files = files.iter().map(|&file| file.to_owned()).collect();
    let writer = BodyEncoder::new(media, BodyKind::of(media), &content, files);
    let (media, body) = writer.write(&value)?;
    Ok((media, String::from_utf8(body.to_vec()).unwrap()))
}

#[test]
fn the_kind_that_says_most_is_chosen() {
    for (offered, chosen) in [
        (
            json!({ "text/plain": {}, "application/json; charset=utf-8": {} }),
            "application/json; charset=utf-8",
        ),
        (
            json!({ "application/xml": {}, "application/x-www-form-urlencoded": {} }),
            "application/x-www-form-urlencoded",
        ),
        (
            json!({ "application/octet-stream": {}, "application/merge-patch+json": {} }),
            "application/merge-patch+json",
        ),
    ] {
        assert_eq!(choose(offered.as_object().unwrap()).unwrap().0, chosen);
    }
    assert!(choose(json!({}).as_object().unwrap()).is_none());
}

#[test]
fn each_kind_is_written() {
    let form = "application/x-www-form-urlencoded";
    let value = json!({ "a": "x y&z", "list": [1, 2], "deep": { "b": true } });
    assert_eq!(
        written(form, json!({}), &[], value.clone()).unwrap(),
        (
            form.to_owned(),
            "a=x%20y%26z&list=1&list=2&deep=%7B%22b%22%3Atrue%7D".to_owned()
        )
    );
    let encoding = json!({ "encoding": { "list": { "explode": false }, "deep": { "style": "deepObject", "explode": true } } });
    assert_eq!(
        written(form, encoding, &[], value).unwrap().1,
        "a=x%20y%26z&list=1,2&deep%5Bb%5D=true"
    );
    assert_eq!(
        written("text/plain", json!({}), &[], json!("é")).unwrap().1,
        "é"
    );
    assert_eq!(
        written("application/pdf", json!({}), &[], json!("JVBERg=="))
            .unwrap()
            .1,
        "%PDF"
    );
    assert!(
        written("application/pdf", json!({}), &[], json!("not it"))
            .unwrap_err()
            .contains("Base64")
    );
    assert_eq!(
        written("*/*", json!({}), &[], json!([1])).unwrap(),
        ("application/json".to_owned(), "[1]".to_owned())
    );
}

#[test]
fn no_name_leaves_its_part_of_a_form() {
    let content = json!({ "encoding": { "file": { "contentType": "image/png, image/jpeg" } } });
    let value = json!({ "a\"\r\nX-Evil: 1": "b", "file": "eA==", "list": ["1", { "c": 2 }] });
    let (media, body) = written("multipart/form-data", content, &["file"], value).unwrap();
    let boundary = media
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
    assert_eq!(
        parts,
        [
            "",
            "\r\nContent-Disposition: form-data; name=\"a%22%0D%0AX-Evil: 1\"\r\n\r\nb\r\n",
            "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: image/png\r\n\r\nx\r\n",
            "\r\nContent-Disposition: form-data; name=\"list\"\r\n\r\n1\r\n",
            "\r\nContent-Disposition: form-data; name=\"list\"\r\nContent-Type: application/json\r\n\r\n{\"c\":2}\r\n",
            "--\r\n",
        ]
    );
}
