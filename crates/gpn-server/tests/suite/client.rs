//! A small HTTP client that sends exactly what it is told to.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The JSON of an answer that must have this status.
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}\n{}", self.head, String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The detail of a problem, which must have this status.
    pub(crate) fn problem(self, status: u16) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.expect(status);
        assert_eq!(problem["status"], status);
        assert!(problem["kind"].is_string() && problem["title"].is_string(), "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// Sends bytes as they are and reads what comes back, until the server closes the connection or falls silent.
pub(crate) fn raw(address: SocketAddr, bytes: &[u8], patience: Duration) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    stream.set_write_timeout(Some(patience)).unwrap();
    // The server may answer and close before everything is sent.
    let _ = stream.write_all(bytes);
    let mut received = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
        }
        if whole(&received) {
            break;
        }
    }
    parse(&received)
}

fn whole(received: &[u8]) -> bool {
    let Some(answer) = parse(received) else { return false };
    let length = answer.header("content-length").and_then(|length| length.parse::<usize>().ok());
    length.is_some_and(|length| answer.body.len() >= length)
}

fn parse(received: &[u8]) -> Option<Answer> {
    let end = received.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head, body: received[end + 4..].to_vec() })
}

/// One request on a connection of its own.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        let _ = write!(head, "Host: {address}\r\n");
    }
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let bytes = [head.as_bytes(), b"\r\n", body].concat();
    raw(address, &bytes, Duration::from_secs(30)).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, &[], b"")
}

pub(crate) fn delete(address: SocketAddr, path: &str) -> Answer {
    request(address, "DELETE", path, &[], b"")
}

pub(crate) fn post_json(address: SocketAddr, path: &str, body: &Value) -> Answer {
    request(address, "POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

/// A form: plain fields, and files by field.
pub(crate) fn form(fields: &[(&str, &str)], files: &[(&str, &str, &[u8])]) -> (String, Vec<u8>) {
    let boundary = "----a-boundary";
    let mut body = Vec::new();
    for (name, value) in fields {
        let part =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend(part.as_bytes());
    }
    for (name, file, bytes) in files {
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\nContent-Type: image/bmp\r\n\r\n"
        );
        body.extend(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

pub(crate) fn post_form(
    address: SocketAddr,
    path: &str,
    fields: &[(&str, &str)],
    files: &[(&str, &str, &[u8])],
) -> Answer {
    let (content_type, body) = form(fields, files);
    request(address, "POST", path, &[("Content-Type", &content_type)], &body)
}
