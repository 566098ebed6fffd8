use super::framing::{Framing, FramingFault};

pub(crate) fn framing(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else {
        return;
    };
    let size = usize::from(cut % 16) + 1;
    assert_eq!(fault(bytes, bytes.len().max(1)), fault(bytes, size));
}

fn fault(bytes: &[u8], size: usize) -> (Option<(u64, FramingFault)>, bool) {
    let mut framing = Framing::default();
    let mut pieces = bytes.chunks(size);
    let fault = pieces.find_map(|piece| framing.read(piece));
    (fault, framing.is_amid())
}
