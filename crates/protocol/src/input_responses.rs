use crate::{RawJson, RawObject, RpcError};

/// Reads the client's answers to questions, by key (2026-07-28, Multi Round-Trip Requests; SEP-2663).
///
/// # Errors
/// -32602 if the answers or one of them is not an object.
pub fn input_responses(given: Option<&RawJson>) -> Result<RawObject, RpcError> {
    let responses = given.and_then(RawObject::of);
    let responses =
        responses.ok_or_else(|| RpcError::invalid_params("inputResponses must be an object"))?;
    let malformed = responses.iter().find(|(_, response)| !response.is_object());
    match malformed {
        None => Ok(responses),
        Some((key, _)) => {
            let key = crate::shown(&key, LONGEST_KEY);
            let reason =
                format!("inputResponses[{key:?}] must be an object, the result of the request");
            Err(RpcError::invalid_params(reason))
        }
    }
}

const LONGEST_KEY: usize = 64;

#[cfg(test)]
mod tests {
    use super::input_responses;
    use crate::RawJson;

    #[test]
    fn answers_are_objects_by_their_keys() {
        let read = |text: &'static str| input_responses(Some(&RawJson::from_static(text)));
        let responses = read(r#"{"a":{"action":"accept"},"b":{}}"#).unwrap();
        assert_eq!(responses.iter().count(), 2);
        assert_eq!(read("{}").unwrap().iter().count(), 0);
        for malformed in ["5", "[]", "null", r#"{"a":{},"b":5}"#, r#"{"a":[]}"#] {
            assert_eq!(read(malformed).unwrap_err().code, -32602, "{malformed}");
        }
        assert!(input_responses(None).is_err());
        let named = read(r#"{"b":5}"#).unwrap_err().message;
        assert!(named.contains("\"b\""), "{named}");
    }
}
