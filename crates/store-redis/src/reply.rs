use std::collections::HashMap;

use bytes::Bytes;
use redis::Value;
use shoal_ports::{LogError, StoreError};

pub(crate) const NO_STREAM: &str = "the stream has expired or never existed";
const TRIMMED: &str = "the stream has outgrown its limit and lost its oldest events";
pub(crate) const RESTARTED: &str = "the log has been restarted since";
const SESSION_FULL: &str = "the session's streams hold as many bytes as they may";

/// Reads a script's reply. `lua/common.lua` defines the numbers of refusals.
pub(crate) fn step(reply: Value) -> Result<ReplyParts, LogError> {
    let refusal = match reply {
        Value::Int(code @ ..0) => code,
        one @ (Value::Int(_) | Value::BulkString(_)) => {
            return Ok(ReplyParts(vec![one].into_iter()));
        }
        other => return parts(other).map_err(LogError::Store),
    };
    Err(match refusal {
        -1 => StoreError::Stale.into(),
        -2 => StoreError::NotFound.into(),
        -3 => StoreError::Held.into(),
        -4 => StoreError::Full(SESSION_FULL).into(),
        -5 => LogError::Gone(NO_STREAM),
        -6 => LogError::Gone(TRIMMED),
        -7 => LogError::Gone(RESTARTED),
        -8 => StoreError::Forgotten.into(),
        _ => unexpected().into(),
    })
}

pub(crate) fn plain_step(reply: Value) -> Result<ReplyParts, StoreError> {
    step(reply).map_err(|error| match error {
        LogError::Store(error) => error,
        LogError::Gone(_) => unexpected(),
    })
}

pub(crate) fn parts(reply: Value) -> Result<ReplyParts, StoreError> {
    match reply {
        Value::Array(parts) => Ok(ReplyParts(parts.into_iter())),
        _ => Err(unexpected()),
    }
}

pub(crate) fn fields(reply: Value) -> Result<HashMap<Bytes, Bytes>, StoreError> {
    let mut fields = HashMap::new();
    match reply {
        Value::Map(pairs) => {
            for (field, value) in pairs {
                fields.insert(bytes(field)?, bytes(value)?);
            }
        }
        Value::Array(flat) => {
            let mut flat = flat.into_iter();
            while let (Some(field), Some(value)) = (flat.next(), flat.next()) {
                fields.insert(bytes(field)?, bytes(value)?);
            }
        }
        _ => return Err(unexpected()),
    }
    Ok(fields)
}

/// Only another program's write can explain the reply.
pub(crate) fn unexpected() -> StoreError {
    StoreError::Unavailable("Redis answered something unexpected".to_owned())
}

pub(crate) fn optional(reply: Value) -> Result<Option<Bytes>, StoreError> {
    match reply {
        Value::Nil => Ok(None),
        other => bytes(other).map(Some),
    }
}

fn bytes(reply: Value) -> Result<Bytes, StoreError> {
    match reply {
        Value::BulkString(text) => Ok(text.into()),
        Value::SimpleString(text) => Ok(text.into()),
        _ => Err(unexpected()),
    }
}

pub(crate) fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, StoreError> {
    let text = std::str::from_utf8(text).map_err(|_| unexpected())?;
    text.parse().map_err(|_| unexpected())
}

#[derive(Debug)]
pub(crate) struct ReplyParts(std::vec::IntoIter<Value>);

impl ReplyParts {
    pub(crate) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        self.optional()?.ok_or_else(unexpected)
    }

    pub(crate) fn optional(&mut self) -> Result<Option<Bytes>, StoreError> {
        optional(self.0.next().ok_or_else(unexpected)?)
    }

    pub(crate) fn number<T: TryFrom<i64> + std::str::FromStr>(&mut self) -> Result<T, StoreError> {
        match self.0.next().ok_or_else(unexpected)? {
            Value::Int(number) => T::try_from(number).map_err(|_| unexpected()),
            other => number(&bytes(other)?),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(crate) fn rest(self) -> impl Iterator<Item = Result<Bytes, StoreError>> {
        self.0.map(bytes)
    }
}
