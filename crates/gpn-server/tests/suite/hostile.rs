//! Requests that nobody sends by accident: each has its right status, and the server lives on, in bounded memory.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::{form, get, post_form, raw, request};
use crate::fixture::{Running, folder, image, settings, start};

const PATIENCE: Duration = Duration::from_secs(10);

fn server(folder: &tempfile::TempDir) -> Running {
    let mut settings = settings(folder.path());
    settings.limits.body = 1 << 20;
    settings.limits.body_time = Duration::from_millis(400);
    settings.limits.head_time = Duration::from_millis(800);
    settings.limits.pixels = 1_000_000;
    start(settings)
}

/// A request with any head and any body.
struct Hostile {
    what: String,
    bytes: Vec<u8>,
    /// Statuses that are right; none means that the connection may just be closed.
    right: Vec<u16>,
}

fn hostile(what: impl Into<String>, head: &str, body: &[u8], right: &[u16]) -> Hostile {
    Hostile { what: what.into(), bytes: [head.as_bytes(), body].concat(), right: right.to_vec() }
}

fn post(at: SocketAddr, path: &str, content_type: &str, body: &[u8]) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {at}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
}

/// A PNG that says it has so many pixels.
fn png_head(width: u32, height: u32) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(width.to_be_bytes());
    png.extend(height.to_be_bytes());
    png.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
    png
}

fn all(at: SocketAddr) -> Vec<Hostile> {
    let mut table = Vec::new();
    let good = image(1);
    let (form_type, form_body) = form(&[("class", "x"), ("place", "unknown")], &[("image", "a.bmp", &good)]);

    // Forms that end early, at every part of them.
    for cut in 0..60 {
        let end = form_body.len() * cut / 60;
        let body = &form_body[..end];
        table.push(hostile(
            format!("form cut at {end}"),
            &post(at, "/api/teach", &form_type, body),
            body,
            &[400],
        ));
    }
    // Forms with another boundary, without one, with odd ones.
    for boundary in [
        "",
        "; boundary=",
        "; boundary=other",
        "; boundary=\"",
        "; boundary=a b",
        "; boundary=----",
        "; charset=utf-8",
    ] {
        let kind = format!("multipart/form-data{boundary}");
        table.push(hostile(&*kind, &post(at, "/api/predict", &kind, &form_body), &form_body, &[400]));
    }
    // Fields that are not, or are too much.
    for (name, value) in [
        ("class", ""),
        ("class", "\u{0}"),
        ("class", "a\nb"),
        ("class", " "),
        ("place", "there"),
        ("if_taught", "maybe"),
        ("unknown", "1"),
        ("parents", "no-such-class"),
        ("parents", ""),
        ("class", "\u{202e}\u{0007}"),
    ] {
        let fields = if name == "class" { vec![(name, value)] } else { vec![("class", "x"), (name, value)] };
        let (kind, body) = form(&fields, &[("image", "a.bmp", &good)]);
        table.push(hostile(
            format!("{name}={value:?}"),
            &post(at, "/api/teach", &kind, &body),
            &body,
            &[400, 404],
        ));
    }
    // Images that are none, bombs, and damaged ones.
    let mut images: Vec<(String, Vec<u8>, Vec<u16>)> = vec![
        ("png bomb".into(), png_head(60_000, 60_000), vec![413]),
        ("png of no size".into(), png_head(0, 0), vec![400, 422]),
        ("wide png".into(), png_head(u32::MAX, 1), vec![413]),
        (
            "gif bomb".into(),
            b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\x02\x02D\x01\0;".to_vec(),
            vec![413],
        ),
        (
            "jpeg bomb".into(),
            b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01\x11\0\x02\x11\0\x03\x11\0\xff\xd9".to_vec(),
            vec![413],
        ),
        (
            "bmp bomb".into(),
            [
                &b"BM"[..],
                &[0; 16],
                &60_000_u32.to_le_bytes(),
                &60_000_u32.to_le_bytes(),
                &[1, 0, 24, 0],
                &[0; 24],
            ]
            .concat(),
            vec![400, 413, 422],
        ),
        (
            "webp bomb".into(),
            b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff".to_vec(),
            vec![413],
        ),
        (
            "svg".into(),
            b"<svg xmlns='http://www.w3.org/2000/svg' width='99999' height='99999'/>".to_vec(),
            vec![400, 413, 422],
        ),
        ("html".into(), b"<script>alert(1)</script>".to_vec(), vec![400, 422]),
        ("nothing".into(), Vec::new(), vec![400, 422]),
        ("zip".into(), b"PK\x03\x04\x14\0\0\0\x08\0".to_vec(), vec![400, 422]),
    ];
    for cut in 0..40 {
        images.push((format!("image cut at {cut}"), good[..good.len() * cut / 41].to_vec(), vec![400, 422]));
    }
    for (what, bytes, right) in images {
        let (kind, body) = form(&[("class", "x"), ("place", "unknown")], &[("image", "a.bmp", &bytes)]);
        table.push(hostile(what, &post(at, "/api/teach", &kind, &body), &body, &right));
    }
    // JSON of the wrong shape.
    for path in
        ["/api/teach", "/api/predict", "/api/undo", "/api/test", "/api/explain", "/v2/models/birds/infer"]
    {
        for body in [
            "{",
            "null",
            "[]",
            "1",
            "\"x\"",
            "{\"embeddings\": 1}",
            "{\"classes\": [1]}",
            "{\"a\":",
            "\u{feff}{}",
            "{\"number\": -1}",
            "{\"number\": 1e99}",
            "{\"embeddings\": [[1e999]]}",
            "{\"embeddings\": [[]], \"request\": {\"top\": -1}}",
            "{\"samples\": [{\"class\": 1}]}",
            "{\"inputs\": {}}",
        ] {
            table.push(hostile(
                format!("{path} {body}"),
                &post(at, path, "application/json", body.as_bytes()),
                body.as_bytes(),
                &[400, 404],
            ));
        }
        let deep = "[".repeat(100_000);
        table.push(hostile(
            format!("{path} deep"),
            &post(at, path, "application/json", deep.as_bytes()),
            deep.as_bytes(),
            &[400],
        ));
    }
    // Types that nobody reads.
    for kind in [
        "text/plain",
        "application/xml",
        "image/png",
        "",
        "multipart/mixed; boundary=a",
        "application/json/x",
        "\u{e9}",
    ] {
        table.push(hostile(format!("type {kind}"), &post(at, "/api/predict", kind, b"x"), b"x", &[415, 400]));
    }
    // Paths out of the house.
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/api/../../etc/passwd",
        "/api/models/..%2f..%2fetc%2fpasswd/card",
        "/api/models/%2e%2e/card",
        "/api/classes/..%2f..%2fetc%2fpasswd",
        "/api/classes/%00",
        "/api/classes/%ff%fe",
        "/index.html%00.js",
        "//etc/passwd",
        "/.git/config",
        "/model.safetensors",
        "/model.safetensors.redb",
        "/api/classes/x/samples/..%2f1/image",
        "/api/classes/x/samples/-1/image",
        "/api/classes/x/samples/99999999999999999999/image",
        "/v2/models/..%2f/infer",
        "/\\..\\..\\windows\\win.ini",
        "/api/docs/../../../Cargo.toml",
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        table.push(hostile(path, &head, b"", &[400, 404, 405]));
    }
    // Queries of the wrong kind.
    for query in [
        "classes?limit=99999999999999999999",
        "classes?limit=-1",
        "classes?cursor=-1",
        "graph?up=4294967296",
        "graph?limit=1e3",
        "history?before=x",
        "history?limit=0",
        "classes?q=%ff",
        "classes?limit=1&limit=2",
        "graph?node=%00",
        "history?limit=501",
    ] {
        let head = format!("GET /api/{query} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        table.push(hostile(query, &head, b"", &[400, 404]));
    }
    // Methods that are not.
    for method in ["PUT", "PATCH", "TRACE", "CONNECT", "FOO", "get"] {
        let head = format!("{method} /api/card HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
        table.push(hostile(method, &head, b"", &[400, 404, 405]));
    }
    // Shapes that smuggle a second request.
    let second = "GET /api/export HTTP/1.1\r\nHost: x\r\n\r\n";
    for (what, headers) in [
        ("length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        ("lengths in one", "Content-Length: 5, 6\r\n"),
        ("negative length", "Content-Length: -1\r\n"),
        ("length with a sign", "Content-Length: +5\r\n"),
        ("length in hex", "Content-Length: 0x5\r\n"),
        ("huge length", "Content-Length: 99999999999999999999999\r\n"),
        ("chunks with a space", "Transfer-Encoding : chunked\r\n"),
        ("chunks not last", "Transfer-Encoding: chunked, identity\r\n"),
        ("odd chunks", "Transfer-Encoding: xchunked\r\n"),
        ("folded header", "X-A: b\r\n c\r\nTransfer-Encoding: xchunked\r\n"),
        ("header without a name", ": x\r\n"),
        ("nul in a header", "X-A: b\0c\r\n"),
    ] {
        let head = format!("POST /api/undo HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{headers}\r\n");
        table.push(Hostile {
            what: what.into(),
            bytes: [head.as_bytes(), b"0\r\n\r\n", second.as_bytes()].concat(),
            right: vec![400, 404, 413, 408],
        });
    }
    for chunk in ["FFFFFFFFFFFFFFFF1\r\n", "-1\r\n", "zz\r\n", "5;ext\r\nab", "5\r\nabcdefgh\r\n0\r\n\r\n"] {
        let head = format!(
            "POST /api/undo HTTP/1.1\r\nHost: {at}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        );
        table.push(hostile(format!("chunk {chunk:?}"), &head, chunk.as_bytes(), &[400, 408]));
    }
    // Heads that are too much, or no heads.
    let many = "X-Many: y\r\n".repeat(500);
    table.push(hostile(
        "500 headers",
        &format!("GET / HTTP/1.1\r\nHost: {at}\r\n{many}\r\n"),
        b"",
        &[431, 400],
    ));
    let long = format!("X-A: {}\r\n", "y".repeat(1 << 20));
    table.push(hostile(
        "a header of a megabyte",
        &format!("GET / HTTP/1.1\r\nHost: {at}\r\n{long}\r\n"),
        b"",
        &[431, 400],
    ));
    let path = "a".repeat(1 << 17);
    table.push(hostile(
        "a long address",
        &format!("GET /{path} HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        b"",
        &[414, 431, 400],
    ));
    for start in [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\0\x01\0\x01\u{fc}",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1 x\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        table.push(Hostile { what: format!("{start:?}"), bytes: start.as_bytes().to_vec(), right: vec![] });
    }
    // Bodies that are larger than allowed, or come too slowly.
    let large = vec![b'x'; 2 << 20];
    for path in ["/api/teach", "/api/predict", "/api/test", "/v2/models/birds/infer"] {
        table.push(hostile(
            format!("{path} too large"),
            &post(at, path, "application/json", &large),
            &large,
            &[413],
        ));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
        );
        table.push(hostile(format!("{path} slow"), &head, b"{", &[408]));
    }
    table
}

/// Bytes of memory that this process has.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

#[test]
fn hostile_requests_have_their_right_status() {
    let folder = folder();
    let server = server(&folder);
    let at = server.address;
    let table = all(at);
    assert!(table.len() >= 300, "{}", table.len());
    get(at, "/api/export");
    let before = memory();
    let faults: Vec<String> = std::thread::scope(|scope| {
        let checks: Vec<_> = table
            .chunks(table.len().div_ceil(8))
            .map(|part| {
                scope.spawn(move || {
                    let mut faults = Vec::new();
                    for case in part {
                        let answer = raw(at, &case.bytes, PATIENCE);
                        match answer {
                            Some(answer) if case.right.is_empty() || case.right.contains(&answer.status) => {}
                            None if case.right.is_empty() => {}
                            // A client that still sends may not get to read the answer.
                            None if case.bytes.len() > 1 << 19 => {}
                            answer => faults.push(format!("{}: {answer:?}", case.what)),
                        }
                    }
                    faults
                })
            })
            .collect();
        checks.into_iter().flat_map(|check| check.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), table.len(), faults.join("\n"));
    // Nothing has changed, and the server works.
    assert_eq!(get(at, "/api/card").expect(200)["version"], 0);
    post_form(at, "/api/predict", &[], &[("image", "a.bmp", &image(1))]).expect(200);
    let grown = memory().saturating_sub(before);
    assert!(grown < 300 << 20, "{} MB more than before", grown >> 20);
    eprintln!("{} hostile requests, {} MB more than before", table.len(), grown >> 20);
}

#[test]
fn a_thousand_idle_connections_are_no_hindrance() {
    let folder = folder();
    let server = server(&folder);
    let at = server.address;
    let mut idle = Vec::new();
    for number in 0..1000 {
        // A process may not have as many; then as many as it may.
        let Ok(mut stream) = TcpStream::connect(at) else { break };
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /api/card HTTP/1.1\r\nX-");
        }
        idle.push(stream);
    }
    assert!(idle.len() >= 400, "{}", idle.len());
    eprintln!("{} idle connections", idle.len());
    assert_eq!(request(at, "GET", "/api/card", &[], b"").status, 200);
    drop(idle);
    assert_eq!(get(at, "/healthz").status, 200);
}
