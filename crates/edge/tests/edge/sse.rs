use bytes::BytesMut;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::Response;
use serde_json::Value;

use crate::server::header;

pub(crate) struct Events {
    chunks: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    read: BytesMut,
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "content-type"), "text/event-stream");
        assert_eq!(header(&response, "cache-control"), "no-store, no-transform");
        assert_eq!(header(&response, "x-accel-buffering"), "no");
        Self {
            chunks: response.bytes_stream().boxed(),
            read: BytesMut::new(),
        }
    }

    pub(crate) async fn block(&mut self) -> Option<String> {
        loop {
            let end = self.read.windows(2).position(|pair| pair == b"\n\n");
            if let Some(end) = end {
                let block = self.read.split_to(end + 2);
                return Some(String::from_utf8(block[..end].to_vec()).unwrap());
            }
            match self.chunks.next().await {
                Some(chunk) => self.read.extend_from_slice(&chunk.unwrap()),
                None => {
                    assert!(self.read.is_empty(), "the stream ended within a block");
                    return None;
                }
            }
        }
    }

    pub(crate) async fn message(&mut self) -> Value {
        let block = self.block().await.unwrap();
        let data = block.strip_prefix("event: message\ndata: ").unwrap();
        serde_json::from_str(data).unwrap()
    }
}
