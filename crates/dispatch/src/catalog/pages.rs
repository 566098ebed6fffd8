use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use shoal_protocol::{Era, RawJson, RpcError};

#[derive(Debug, Default)]
pub(crate) struct ListPages {
    legacy: Vec<RawJson>,
    modern: Vec<RawJson>,
    /// Each cursor begins with this member, so that a cursor fits only its own list.
    member: &'static str,
}

impl ListPages {
    /// Modern clients get the pages that `shaped` returns, without the items in `legacy_only`.
    pub(super) fn write(
        member: &'static str,
        items: &[(usize, &RawJson)],
        legacy_only: &[usize],
        page_size: usize,
        shaped: impl Fn(&RawJson) -> RawJson,
    ) -> Self {
        let all: Vec<&RawJson> = items.iter().map(|(_, item)| *item).collect();
        let legacy = paged(member, &all, page_size);
        let modern = if legacy_only.is_empty() {
            legacy.clone()
        } else {
            let shown: Vec<&RawJson> = items
                .iter()
                .filter(|(at, _)| !legacy_only.contains(at))
                .map(|(_, item)| *item)
                .collect();
            paged(member, &shown, page_size)
        };
        let modern = modern.iter().map(shaped).collect();
        Self {
            legacy,
            modern,
            member,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.legacy
            .iter()
            .chain(&self.modern)
            .map(RawJson::len)
            .sum()
    }

    /// Fails with -32602 if the cursor does not belong to this list.
    pub(crate) fn get(&self, era: Era, params: Option<&RawJson>) -> Result<RawJson, RpcError> {
        let pages = match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        };
        let cursor = params.and_then(RawJson::cursor);
        let number = match cursor {
            None => Some(0),
            Some(cursor) => match number(&cursor) {
                Some((member, number)) => (member == self.member && number > 0).then_some(number),
                // Some clients invent cursors, and servers with one page ignore them.
                None => (pages.len() == 1).then_some(0),
            },
        };
        number
            .and_then(|number| pages.get(number))
            .cloned()
            .ok_or_else(|| {
                RpcError::invalid_params(
                    "the cursor is not valid, or has expired: list again from the beginning",
                )
            })
    }
}

fn number(cursor: &RawJson) -> Option<(String, usize)> {
    let decoded = URL_SAFE_NO_PAD.decode(cursor.string()?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (member, number) = text.split_once(':')?;
    Some((member.to_owned(), number.parse().ok()?))
}

fn paged(member: &str, items: &[&RawJson], page_size: usize) -> Vec<RawJson> {
    if items.is_empty() {
        return vec![page(member, &[], None)];
    }
    let last = items.len().div_ceil(page_size.max(1)) - 1;
    items
        .chunks(page_size.max(1))
        .enumerate()
        .map(|(at, items)| page(member, items, (at < last).then_some(at + 1)))
        .collect()
}

fn page(member: &str, items: &[&RawJson], next: Option<usize>) -> RawJson {
    let length: usize = items.iter().map(|item| item.len() + 1).sum();
    let mut text = Vec::with_capacity(length + 64);
    text.extend_from_slice(format!("{{\"{member}\":[").as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item.as_bytes());
    }
    text.push(b']');
    if let Some(next) = next {
        let cursor = URL_SAFE_NO_PAD.encode(format!("{member}:{next}"));
        text.extend_from_slice(format!(",\"nextCursor\":\"{cursor}\"").as_bytes());
    }
    text.push(b'}');
    RawJson::from_valid(text.into())
}
