//! `gpn serve` as a process: it starts, it is told to stop, it is killed, and nothing acknowledged is lost.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::command::{command, failure, gpn, stderr, success};
use crate::teach::trained;

struct Server {
    process: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(folder: &Path, more: &[&str]) -> Server {
    let arguments = [&["serve", "m", "--addr=127.0.0.1:0"][..], more].concat();
    let mut process = command(folder, &arguments).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("the server ends before it serves").unwrap();
        if let Some(rest) = line.strip_prefix("serving on http://") {
            break rest.trim_end_matches('/').parse().unwrap();
        }
    };
    // What it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Server { process, address }
}

/// One request; `None` where the server is gone.
fn call(address: SocketAddr, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let text = String::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length: usize = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok())?;
    // An answer that was cut off is none.
    let body = (body.len() == length).then_some(body)?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or(Value::Null)))
}

/// What a client knows of one of its classes: samples and parent.
type Known = Option<(u64, String)>;

/// What a client has done: its classes as acknowledged, and as they may be if the last request was carried out nevertheless.
#[derive(Clone, Default)]
struct Memory {
    sure: BTreeMap<String, Known>,
    maybe: Option<BTreeMap<String, Known>>,
    acknowledged: u64,
}

/// Two new classes at once, some more samples, a move, a forgetting, and so on, until the server is gone.
fn stream_of_changes(
    address: SocketAddr,
    client: u64,
    start: u64,
    memory: &Mutex<Memory>,
    stop: &AtomicBool,
) {
    for step in start.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let known = memory.lock().unwrap().sure.clone();
        let row = |salt: u64| json!([client as f64 * 3.0, (step * 7 + salt) as f64 / 9.0, salt as f64, 1.0]);
        let [first, second] = ["a", "b"].map(|letter| format!("{letter}{client}"));
        let state = |class: &str| known.get(class).cloned().flatten();
        let mut after = known.clone();
        let (method, path, body) = match (state(&first), state(&second), step % 4) {
            // Both or none.
            (None, None, _) => {
                for class in [&first, &second] {
                    after.insert(class.clone(), Some((2, "group0".into())));
                }
                let class = |name: &str, salt| json!({ "class": name, "parents": ["group0"], "embeddings": [row(salt), row(salt + 1)] });
                ("POST", "/api/teach".to_owned(), json!({ "classes": [class(&first, 1), class(&second, 3)] }))
            }
            (Some((samples, parent)), _, 0) => {
                after.insert(first.clone(), Some((samples + 1, parent)));
                (
                    "POST",
                    "/api/teach".to_owned(),
                    json!({ "classes": [{ "class": first, "embeddings": [row(5 + step)] }], "if_taught": "add" }),
                )
            }
            (_, Some((samples, parent)), 1) => {
                let to = if parent == "group0" { "group1" } else { "group0" };
                after.insert(second.clone(), Some((samples, to.into())));
                ("POST", format!("/api/classes/{second}/move"), json!({ "parents": [to] }))
            }
            (Some(_), _, _) => {
                after.insert(first.clone(), None);
                ("DELETE", format!("/api/classes/{first}"), Value::Null)
            }
            _ => {
                after.insert(second.clone(), None);
                ("DELETE", format!("/api/classes/{second}"), Value::Null)
            }
        };
        memory.lock().unwrap().maybe = Some(after.clone());
        match call(address, method, &path, &body) {
            Some((200, _)) => {
                let mut memory = memory.lock().unwrap();
                memory.sure = after;
                memory.maybe = None;
                memory.acknowledged += 1;
            }
            Some((status, problem)) => panic!("{method} {path}: {status} {problem}"),
            None => return,
        }
    }
}

fn found(address: SocketAddr, class: &str) -> Known {
    let (status, page) = call(address, "GET", &format!("/api/classes/{class}"), &Value::Null).unwrap();
    (status == 200).then(|| {
        let class = &page["class"];
        (class["samples"].as_u64().unwrap(), class["parents"][0].as_str().unwrap_or_default().to_owned())
    })
}

/// `GPN_KILL_ROUNDS=100` makes it long.
#[test]
fn a_killed_server_comes_back_with_everything_acknowledged() {
    let rounds: u64 =
        std::env::var("GPN_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4);
    let folder = trained();
    let memories: Vec<Mutex<Memory>> = (0..4).map(|_| Mutex::default()).collect();
    for round in 0..rounds {
        let mut server = serve(folder.path(), &[]);
        let address = server.address;
        // What the round before has left: all that was acknowledged, and one more change at the most, whole.
        for memory in &memories {
            let mut memory = memory.lock().unwrap();
            let there: BTreeMap<String, Known> = memory
                .maybe
                .as_ref()
                .unwrap_or(&memory.sure)
                .keys()
                .map(|class| (class.clone(), found(address, class)))
                .collect();
            let absent = |known: &BTreeMap<String, Known>| -> BTreeMap<String, Known> {
                known
                    .iter()
                    .filter(|(_, state)| state.is_some())
                    .map(|(class, state)| (class.clone(), state.clone()))
                    .collect()
            };
            let fits = |known: &BTreeMap<String, Known>| absent(known) == absent(&there);
            assert!(
                fits(&memory.sure) || memory.maybe.as_ref().is_some_and(fits),
                "round {round}: there is {there:?}; acknowledged {:?}, under way {:?}",
                memory.sure,
                memory.maybe
            );
            (memory.sure, memory.maybe) = (there, None);
        }
        let before: u64 = memories.iter().map(|memory| memory.lock().unwrap().acknowledged).sum();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (client, memory) in memories.iter().enumerate() {
                let stop = &stop;
                scope.spawn(move || stream_of_changes(address, client as u64, round * 1000, memory, stop));
            }
            std::thread::sleep(Duration::from_millis(150 + round * 37 % 400));
            server.process.kill().unwrap();
            server.process.wait().unwrap();
            stop.store(true, Ordering::Relaxed);
        });
        let after: u64 = memories.iter().map(|memory| memory.lock().unwrap().acknowledged).sum();
        assert!(after > before, "round {round}: nothing was acknowledged before the kill");
    }
    let acknowledged: u64 = memories.iter().map(|memory| memory.lock().unwrap().acknowledged).sum();
    eprintln!("{rounds} kills: {acknowledged} changes acknowledged, none lost");
}

#[cfg(unix)]
#[test]
fn it_stops_when_told_and_exports_what_it_was_taught() {
    let folder = trained();
    let mut server = serve(folder.path(), &["--state=state"]);
    let body =
        json!({ "classes": [{ "class": "mine", "parents": ["group0"], "embeddings": [[1, 2, 3, 4]] }] });
    assert_eq!(call(server.address, "POST", "/api/teach", &body).unwrap().0, 200);
    let kill = std::process::Command::new("kill")
        .args(["-TERM", &server.process.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let until = Instant::now() + Duration::from_secs(15);
    let status = loop {
        if let Some(status) = server.process.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < until, "it does not stop");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(0));
    success(folder.path(), &["serve", "m", "--state=state", "--export=out.safetensors"]);
    let listed = success(folder.path(), &["classes", "out.safetensors", "--json"]);
    assert!(listed.contains("\"mine\""), "{listed}");
    let again = failure(folder.path(), &["serve", "m", "--state=state", "--export=out.safetensors"]);
    assert!(again.contains("exists already"), "{again}");
}

#[test]
fn wrong_settings_are_refused_with_what_to_do() {
    let folder = trained();
    let open = failure(folder.path(), &["serve", "m", "--addr=0.0.0.0:0"]);
    assert!(open.contains("--write-token-file"), "{open}");
    std::fs::write(folder.path().join("tokens"), "short\n").unwrap();
    let short = failure(folder.path(), &["serve", "m", "--write-token-file=tokens"]);
    assert!(short.contains("tokens: line 1"), "{short}");
    let missing = failure(folder.path(), &["serve", "none"]);
    assert!(missing.contains("none"), "{missing}");
    let usage = gpn(folder.path(), &["serve", "m", "--tls-cert=x"]);
    assert_eq!(usage.status.code(), Some(2), "{}", stderr(&usage));
    let twice = failure(folder.path(), &["serve", "a=m", "a=m"]);
    assert!(twice.contains("two models are called"), "{twice}");
}
