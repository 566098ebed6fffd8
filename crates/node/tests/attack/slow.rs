use crate::harness::{Family, Request, raw, serve};
use crate::http2::{self, CONTINUATION, END_HEADERS, HEADERS, RESET, frame, packed};
use crate::process::Server;

pub(crate) async fn family() -> Family {
    let mut family = Family::new("slow and rapid");
    let server = Server::of(serve(&[
        ("SHOAL_SERVER__HEADER_TIMEOUT", "1s"),
        ("SHOAL_SERVER__BODY_TIMEOUT", "1s"),
        ("SHOAL_SERVER__WRITE_TIMEOUT", "1s"),
    ]))
    .await;
    let url = &server.mcp;
    let echo = Request::echo();
    let mut half = echo.clone();
    half.body.truncate(20);
    let mut chunk = echo
        .clone()
        .without("Content-Length")
        .header("Transfer-Encoding", "chunked");
    "100\r\nhalf".clone_into(&mut chunk.body);
    family.row("nothing at all", "closed", raw(url, b"").await);
    family.row(
        "half of a head",
        "closed",
        raw(url, b"POST /mcp HTTP/1.1\r\nHost: 127").await,
    );
    family.row("half of a body", "408 did not arrive", half.send(url).await);
    family.row(
        "half of a chunk",
        "408 did not arrive",
        chunk.send(url).await,
    );
    let many = (0..600).fold(echo.clone(), |request, each| {
        request.and(&format!("X-{each}"), "a")
    });
    family.row("600 headers", "431", many.send(url).await);
    let long = echo.clone().header("X-Long", &"a".repeat(40_000));
    family.row("a header of 40 KB", "431", long.send(url).await);

    let head = http2::head("127.0.0.1", "echo");
    let block = packed(&head);
    let body = echo.body.as_bytes();
    let request = [frame(HEADERS, END_HEADERS, 1, &block), frame(0, 1, 1, body)].concat();
    // This setting forbids the server to send data.
    let no_window = [0, 4, 0, 0, 0, 0];
    family.row(
        "HTTP/2: an answer that is never read",
        "reset",
        http2::send(url, &no_window, &request).await,
    );
    let half = frame(HEADERS, END_HEADERS, 1, &block);
    family.row(
        "HTTP/2: a body that never comes",
        "answer did not arrive",
        http2::send(url, &[], &half).await,
    );
    let mut storm = Vec::new();
    for stream in (1..4000).step_by(2) {
        storm.extend(frame(HEADERS, END_HEADERS, stream, &block));
        storm.extend(frame(RESET, 0, stream, &[0, 0, 0, 8]));
    }
    family.row(
        "HTTP/2: rapid reset",
        "goaway 11",
        http2::send(url, &[], &storm).await,
    );
    let mut flood = frame(HEADERS, 0, 1, &block);
    for _ in 0..2000 {
        flood.extend(frame(
            CONTINUATION,
            0,
            1,
            &packed(&vec![("x", "a".repeat(100))]),
        ));
    }
    family.row(
        "HTTP/2: headers without end",
        "goaway",
        http2::send(url, &[], &flood).await,
    );
    let after = echo.send(url).await;
    family.row("others are served after all this", "200 hello", after);
    family
}
