//! Tokens, origins, limits and the end of a server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use gpn_server::{Access, Server, Settings};
use serde_json::json;

use crate::client::{Answer, form, get, post_form, raw, request};
use crate::fixture::{folder, image, settings, start, untaught};

const READ: &str = "reader-0123456789";
const WRITE: &str = "writer-0123456789";

fn with_tokens(mut settings: Settings) -> Settings {
    settings.tokens.add(&format!("ada {WRITE}"), Access::Write).unwrap();
    settings.tokens.add(READ, Access::Read).unwrap();
    settings
}

#[test]
fn tokens_guard_everything_but_health_and_the_page() {
    let folder = folder();
    let server = start(with_tokens(settings(folder.path())));
    let at = server.address;
    let id = &untaught(1)[0];
    let (kind, body) = form(&[("class", id)], &[("image", "a.bmp", &image(1))]);
    let call = |method: &str, path: &str, token: Option<&str>, kind: &str, body: &[u8]| -> Answer {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("Content-Type", kind)];
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        request(at, method, path, &headers, body)
    };
    let reads = [
        ("GET", "/api/card"),
        ("GET", "/api/classes"),
        ("GET", "/api/models"),
        ("GET", "/api/history"),
        ("GET", "/api/graph"),
        ("GET", "/api/export"),
        ("GET", "/metrics"),
        ("GET", "/v2"),
        ("GET", "/v2/models/birds"),
        ("POST", "/api/predict"),
        ("POST", "/v2/models/birds/infer"),
        ("GET", "/api/models/birds/card"),
    ];
    let writes = [
        ("POST", "/api/teach"),
        ("DELETE", "/api/classes/x"),
        ("POST", "/api/undo"),
        ("POST", "/api/models/birds/load"),
        ("DELETE", "/api/models/birds"),
        ("POST", "/api/models/birds/teach"),
    ];
    let wrong = format!("{WRITE}x");
    for (method, path) in reads.iter().chain(&writes) {
        for token in [None, Some(""), Some("x"), Some(&wrong), Some(&WRITE[1..]), Some("\u{e9}\u{e9}")] {
            let answer = call(method, path, token, &kind, &body);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"gpn\""), "{method} {path}");
            answer.problem(401);
        }
        // A token in the address is none.
        call(method, &format!("{path}?token={WRITE}&access_token={WRITE}"), None, &kind, &body).problem(401);
    }
    for (method, path) in writes {
        call(method, path, Some(READ), &kind, &body).problem(403);
    }
    for (method, path) in reads {
        let status = call(method, path, Some(READ), &kind, &body).status;
        assert!(status != 401 && status != 403, "{method} {path}: {status}");
    }
    // Nothing has changed.
    let card = call("GET", "/api/card", Some(READ), &kind, b"").expect(200);
    assert_eq!(
        (&card["version"], &card["may_write"], &card["who"]),
        (&json!(0), &json!(false), &json!("reader"))
    );
    call("POST", "/api/teach", Some(WRITE), &kind, &body).expect(200);
    let history = call("GET", "/api/history", Some(READ), &kind, b"").expect(200);
    assert_eq!(history["changes"][0]["who"], "ada");
    for open in ["/healthz", "/readyz", "/", "/api/docs", "/api/openapi.json", "/v2/health/live"] {
        assert_eq!(get(at, open).status, 200, "{open}");
    }
}

#[test]
fn other_addresses_than_loopback_need_a_token() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.address = "0.0.0.0:0".parse().unwrap();
    let error = Server::open(settings).err().unwrap();
    assert!(error.to_string().contains("a token is needed"), "{error}");
}

#[test]
fn foreign_pages_and_foreign_names_are_refused() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.origins = vec!["https://example.org".into()];
    let server = start(settings);
    let at = server.address;
    let (kind, body) = form(&[("class", "mine"), ("place", "unknown")], &[("image", "a.bmp", &image(1))]);
    let teach = |origin: &str| {
        request(at, "POST", "/api/teach", &[("Content-Type", &kind), ("Origin", origin)], &body)
    };
    for origin in
        ["https://evil.example", "null", "http://localhost.evil.example", "https://example.org.evil.example"]
    {
        teach(origin).problem(403);
    }
    for host in ["evil.example", "evil.example:8080", ""] {
        request(at, "GET", "/api/card", &[("Host", host)], b"").problem(403);
    }
    let own = format!("http://{at}");
    teach(&own).expect(200);
    let allowed = request(at, "GET", "/api/card", &[("Origin", "https://example.org")], b"");
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://example.org"));
    let other = request(at, "GET", "/api/card", &[("Origin", "https://evil.example")], b"");
    assert_eq!(other.header("access-control-allow-origin"), None);
}

#[test]
fn limits_have_answers_of_their_own() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.limits.body = 64 << 10;
    settings.limits.samples = 3;
    settings.limits.pixels = 2000;
    settings.limits.body_time = Duration::from_millis(300);
    let server = start(settings);
    let at = server.address;
    let small = image(1);
    post_form(at, "/api/predict", &[], &[("image", "a.bmp", &small)]).expect(200);
    let four: Vec<(&str, &str, &[u8])> = vec![("image", "a.bmp", &small); 4];
    assert!(post_form(at, "/api/predict", &[], &four).problem(413).contains("more than 3 files"));
    let wide = crate::fixture::bmp(60, 60, &[0; 60 * 60 * 3]);
    assert!(
        post_form(at, "/api/predict", &[], &[("image", "wide.bmp", &wide)])
            .problem(413)
            .contains("60 x 60 pixels")
    );
    let large = vec![0; 70 << 10];
    assert!(
        post_form(at, "/api/predict", &[], &[("image", "large", &large)])
            .problem(413)
            .contains("65536 bytes")
    );
    // A body that does not say how long it is ends at the limit too.
    let mut chunked = format!("POST /api/predict HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..10 {
        chunked.extend(b"4000\r\n");
        chunked.extend(vec![0; 0x4000]);
        chunked.extend(b"\r\n");
    }
    raw(at, &chunked, Duration::from_secs(5)).unwrap().problem(413);
    // A body that does not come.
    let slow = format!(
        "POST /api/predict HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    );
    raw(at, slow.as_bytes(), Duration::from_secs(5)).unwrap().problem(408);
    let rows = json!({ "embeddings": [[0.0], [0.0], [0.0], [0.0]] });
    crate::client::post_json(at, "/api/predict", &rows).problem(413);
}

#[test]
fn a_busy_server_says_so_and_recovers() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.limits.requests = 2;
    settings.limits.body_time = Duration::from_mins(2);
    let server = start(settings);
    let at = server.address;
    // Two requests whose bodies do not come take both places.
    let slow = format!(
        "POST /api/predict HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    );
    let hold = || {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(slow.as_bytes()).unwrap();
        stream
    };
    let mut held = vec![hold(), hold()];
    let until = Instant::now() + Duration::from_mins(1);
    let busy = loop {
        let answer = get(at, "/api/card");
        if answer.status == 503 {
            break answer;
        }
        assert!(Instant::now() < until, "the places are never taken");
        // A request that came while this one had a place was refused: the next may take it.
        held.push(hold());
    };
    assert_eq!(busy.header("retry-after"), Some("1"));
    busy.problem(503);
    assert_eq!(get(at, "/healthz").status, 200);
    drop(held);
    let until = Instant::now() + Duration::from_mins(1);
    while get(at, "/api/card").status != 200 {
        assert!(Instant::now() < until, "the places are never given back");
    }
}

#[test]
fn silence_is_cut_off_and_work_under_way_ends() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.limits.head_time = Duration::from_millis(300);
    settings.limits.shutdown = Duration::from_secs(5);
    let server = start(settings);
    let at = server.address;
    let mut silent = TcpStream::connect(at).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    silent.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).unwrap();

    // The server ends at once when nothing is under way.
    let started = Instant::now();
    drop(server);
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(TcpStream::connect(at).is_err());
}

#[test]
fn requests_are_gathered_and_answered_as_if_alone() {
    let folder = folder();
    let mut settings = settings(folder.path());
    settings.limits.gather = Duration::from_millis(20);
    let server = start(settings);
    let at = server.address;
    let ask =
        |number: usize| post_form(at, "/api/predict", &[], &[("image", "q.bmp", &image(number))]).expect(200);
    let alone: Vec<_> = (0..8).map(ask).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..64).map(|number| scope.spawn(move || ask(number % 8))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    for (number, answer) in together.iter().enumerate() {
        assert_eq!(*answer, alone[number % 8]);
    }
    let metrics = String::from_utf8(get(at, "/metrics").body).unwrap();
    let value = |name: &str| -> u64 {
        metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    };
    assert_eq!(value("gpn_batch_samples_sum "), 72);
    assert!(value("gpn_batch_samples_count ") < 72, "no two requests were embedded together");
}
