//! Counters, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper ends of the buckets of durations, in seconds.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
/// Upper ends of the buckets of batch sizes.
const SAMPLES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0];

/// What a server counts.
#[derive(Default)]
pub(crate) struct Metrics {
    /// By method, route and status.
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    durations: Histogram<12>,
    batches: Histogram<8>,
    connections: AtomicI64,
    in_flight: AtomicI64,
    changes: AtomicU64,
}

/// Counts values up to some ends.
struct Histogram<const N: usize> {
    counts: [AtomicU64; N],
    count: AtomicU64,
    /// In millionths.
    sum: AtomicU64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&self, ends: &[f64; N], value: f64) {
        for (count, end) in self.counts.iter().zip(ends) {
            if value <= *end {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add((value * 1e6) as u64, Ordering::Relaxed);
    }

    fn write(&self, text: &mut String, name: &str, help: &str, ends: &[f64; N]) -> std::fmt::Result {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram")?;
        for (count, end) in self.counts.iter().zip(ends) {
            writeln!(text, "{name}_bucket{{le=\"{end}\"}} {}", count.load(Ordering::Relaxed))?;
        }
        let count = self.count.load(Ordering::Relaxed);
        let sum = self.sum.load(Ordering::Relaxed) as f64 / 1e6;
        writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}")
    }
}

/// Counts something that goes on, until it is dropped.
pub(crate) struct GoesOn<'a>(&'a AtomicI64);

impl Drop for GoesOn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A request was answered. Routes are those of the program, so their number is bounded.
    pub(crate) fn request(&self, method: &str, route: &str, status: u16, time: Duration) {
        let key = (method.to_owned(), route.to_owned(), status);
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
        self.durations.add(&SECONDS, time.as_secs_f64());
    }

    /// So many samples were embedded at once.
    pub(crate) fn batch(&self, samples: usize) {
        self.batches.add(&SAMPLES, samples as f64);
    }

    /// A change was committed.
    pub(crate) fn change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection is open.
    pub(crate) fn connection(&self) -> GoesOn<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        GoesOn(&self.connections)
    }

    /// A request is at work.
    pub(crate) fn in_flight(&self) -> GoesOn<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        GoesOn(&self.in_flight)
    }

    /// Everything in the text format of Prometheus; `models` are name, version and number of classes.
    pub(crate) fn text(&self, models: &[(String, u64, usize)]) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text, models);
        text
    }

    fn write(&self, text: &mut String, models: &[(String, u64, usize)]) -> std::fmt::Result {
        writeln!(text, "# HELP gpn_requests_total Requests answered.\n# TYPE gpn_requests_total counter")?;
        for ((method, route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner)
        {
            writeln!(
                text,
                "gpn_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} {count}"
            )?;
        }
        self.durations.write(
            text,
            "gpn_request_seconds",
            "Time from the head of a request to its answer.",
            &SECONDS,
        )?;
        self.batches.write(text, "gpn_batch_samples", "Samples embedded at once.", &SAMPLES)?;
        for (name, help, kind, value) in [
            ("gpn_connections", "Open connections.", "gauge", self.connections.load(Ordering::Relaxed)),
            ("gpn_requests_in_flight", "Requests at work.", "gauge", self.in_flight.load(Ordering::Relaxed)),
            (
                "gpn_changes_total",
                "Changes committed.",
                "counter",
                self.changes.load(Ordering::Relaxed) as i64,
            ),
        ] {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}")?;
        }
        writeln!(
            text,
            "# HELP gpn_model_version Number of the last change.\n# TYPE gpn_model_version gauge"
        )?;
        for (name, version, _) in models {
            writeln!(text, "gpn_model_version{{model=\"{name}\"}} {version}")?;
        }
        writeln!(text, "# HELP gpn_model_classes Classes of a model.\n# TYPE gpn_model_classes gauge")?;
        for (name, _, classes) in models {
            writeln!(text, "gpn_model_classes{{model=\"{name}\"}} {classes}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told() {
        let metrics = Metrics::default();
        metrics.request("GET", "/healthz", 200, Duration::from_millis(2));
        metrics.batch(3);
        let connection = metrics.connection();
        let text = metrics.text(&[("birds".into(), 7, 12)]);
        for line in [
            "gpn_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1",
            "gpn_request_seconds_bucket{le=\"0.001\"} 0",
            "gpn_request_seconds_bucket{le=\"0.0025\"} 1",
            "gpn_batch_samples_bucket{le=\"4\"} 1",
            "gpn_batch_samples_sum 3",
            "gpn_connections 1",
            "gpn_model_version{model=\"birds\"} 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        drop(connection);
        assert!(metrics.text(&[]).contains("gpn_connections 0\n"));
    }
}
