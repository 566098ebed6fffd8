//! Entry points for `scripts/fuzz`, compiled only with `--cfg fuzzing`.

use tokio::time::Instant;

use prost::Message;
use shoal_ports::WorkerId;

use crate::convert::call::{attach_in, call_in};
use crate::convert::catalog::announcement_in;
use crate::convert::event::event_in;
use crate::convert::gateway::{item_in, open_in, opened_in};
use crate::convert::post::deliver_in;
use crate::proto::types::v1 as types;
use crate::proto::{node::v1 as node, worker::v1 as worker};

/// Decodes a message; the first byte selects its type.
pub fn link_message(data: &[u8]) {
    let Some((&kind, data)) = data.split_first() else {
        return;
    };
    match kind % 8 {
        0 => read(data, |it| announcement_in(&WorkerId::new("w"), it).is_ok()),
        1 => read(data, |it: worker::Event| event_in(it).is_some()),
        2 => read(data, |it: types::Call| call_in(it, Instant::now()).is_ok()),
        3 => read(data, |it: worker::Attach| attach_in(it).is_ok()),
        4 => read(data, |it: node::Open| open_in(it).is_ok()),
        5 => read(data, |it: node::Opened| opened_in(it).is_ok()),
        6 => read(data, |it: node::Deliver| deliver_in(it).is_ok()),
        _ => read(data, |it: node::Item| item_in(it).is_ok()),
    }
}

fn read<T: Message + Default>(data: &[u8], convert: impl FnOnce(T) -> bool) {
    if let Ok(message) = T::decode(data) {
        let _ = convert(message);
    }
}
