//! How much one request, and all of them together, may take.

use std::time::Duration;

/// Limits of a server. Each has an answer of its own when it is reached.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body; more is 413. Default 32 MiB.
    pub body: usize,
    /// Bytes of all bodies that are being worked on; more is 503. Default 512 MiB.
    pub bodies: usize,
    /// Images or embeddings of a request; more is 413. Default 512.
    pub samples: usize,
    /// Pixels of an image, as its header tells; more is 413. Default 40 million.
    pub pixels: u64,
    /// Time for the head of a request to arrive; afterwards the connection is closed. Default 10 s.
    pub head_time: Duration,
    /// Time for the body of a request to arrive; more is 408. Default 30 s.
    pub body_time: Duration,
    /// Time for the answer, once the body is there; more is 503. Default 60 s.
    pub answer_time: Duration,
    /// Requests at work at once, health and metrics not counted; more is 503. Default 256.
    pub requests: usize,
    /// Open connections; more wait to be accepted. Default 8192.
    pub connections: usize,
    /// Requests that wait to be embedded; more is 503. Default 512.
    pub queue: usize,
    /// Samples that are embedded at once. Default 64.
    pub batch: usize,
    /// How long a request may wait for others to be embedded with. Default 2 ms.
    pub gather: Duration,
    /// How long requests under way may take when the server is told to stop. Default 10 s.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            bodies: 512 << 20,
            samples: 512,
            pixels: 40_000_000,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            answer_time: Duration::from_mins(1),
            requests: 256,
            connections: 8192,
            queue: 512,
            batch: 64,
            gather: Duration::from_millis(2),
            shutdown: Duration::from_secs(10),
        }
    }
}
