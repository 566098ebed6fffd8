use serde_json::{Value, json};

use super::{BodyEncoder, BodyKind, choose, files};
use crate::openapi::document::{Document, MediaType};

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

#[test]
fn forms_of_stripe_are_written_as_its_documents_say() {
    let deep = json!({ "explode": true, "style": "deepObject" });
    let content = json!({ "encoding": { "items": deep, "expand": deep, "metadata": deep } });
    let value = json!({
        "customer": "c", "expand": ["a", "b"], "metadata": "",
        "items": [{ "price": "p", "quantity": 2, "tax_rates": ["t"] }], "none": null,
    });
    let form = "application/x-www-form-urlencoded";
    let (_, body) = written(form, content, &[], value).unwrap();
    let pairs: Vec<String> = body
        .split('&')
        .map(|pair| pair.replace("%5B", "[").replace("%5D", "]"))
        .collect();
    assert_eq!(
        pairs,
        [
            "customer=c",
            "expand[]=a",
            "expand[]=b",
            "metadata=",
            "items[0][price]=p",
            "items[0][quantity]=2",
            "items[0][tax_rates][]=t",
        ]
    );
    assert_eq!(
        written(form, json!({}), &[], json!("a=1&b=2")).unwrap().1,
        "a=1&b=2"
    );
}

#[test]
fn a_body_of_parts_may_be_one_file_or_a_list() {
    let (_, body) = written("multipart/form-data", json!({}), &["file"], json!("eA==")).unwrap();
    assert!(body.contains(
        "name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\nx\r\n"
    ));
    let (_, body) = written("multipart/form-data", json!({}), &[], json!([1, null, 2])).unwrap();
    assert_eq!(body.matches("name=\"body\"").count(), 2);
}

#[test]
fn files_are_found_wherever_they_stand() {
    let document = json!({ "openapi": "3.1.0", "components": { "schemas": {
        "File": { "type": "string", "format": "binary" },
        "Tree": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } },
        "Base": { "properties": { "one": { "$ref": "#/components/schemas/File" } } },
    } } });
    let document = Document::parse(document.to_string().as_bytes()).unwrap();
    let schema = json!({
        "allOf": [{ "$ref": "#/components/schemas/Base" }, { "properties": {
            "many": { "type": "array", "items": { "$ref": "#/components/schemas/File" } },
            "perhaps": { "anyOf": [{ "type": "string", "format": "binary" }, { "type": "null" }] },
            "text": { "type": "string" }, "tree": { "$ref": "#/components/schemas/Tree" },
        } }],
    });
    assert_eq!(files(&document, &schema), ["one", "many", "perhaps"]);
    assert_eq!(
        files(&document, &json!({ "$ref": "#/components/schemas/File" })),
        ["file"]
    );
    assert!(files(&document, &json!({ "$ref": "#/components/schemas/Tree" })).is_empty());
}
