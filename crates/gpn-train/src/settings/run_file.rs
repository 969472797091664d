//! `config.toml` of a run: complete, and tied to the run's checkpoints.

use std::path::Path;

use super::{Config, flattened};
use crate::error::TrainError;

/// Settings that may change when a run is resumed: they decide how long it goes on, what it records and with how
/// many threads it prepares batches. All others decide what is learned.
const MAY_CHANGE: [&str; 5] = [
    "train.episodes",
    "train.checkpoint_every",
    "train.keep_checkpoints",
    "train.log_every",
    "train.workers",
];

/// Settings, or groups of them, that runs of earlier versions do not have. They stand before the last group, so that a file cut
/// short lacks more than these; and they do not count in the fingerprint while they have their defaults.
const ADDED_LATER: [&str; 4] = ["prior.", "task.most_shot", "train.tasks_per_step", "train.shards"];

fn is_added_later(key: &str) -> bool {
    ADDED_LATER.iter().any(|name| key.starts_with(name))
}

impl Config {
    /// Reads the settings that a run wrote. Every one must be there: a file cut short would otherwise be one of defaults.
    pub(crate) fn from_run_file(text: &str, path: &Path) -> Result<Self, TrainError> {
        let malformed = |reason: String| TrainError::Malformed { path: path.to_owned(), reason };
        let given: toml::Table =
            toml::from_str(text).map_err(|error| malformed(error.to_string().trim_end().to_owned()))?;
        let given: Vec<String> = flattened(&given).into_iter().map(|(key, _)| key).collect();
        let wanted = Self::default().keys().into_iter().filter(|key| !is_added_later(key));
        let missing: Vec<String> = wanted.filter(|key| !given.contains(key)).collect();
        match &missing[..] {
            [] => Self::default().with_toml(text, path).map_err(|error| malformed(error.to_string())),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                Err(malformed(format!(
                    "setting `{first}`{more} is missing: the file is damaged; put back a copy of it, or start the run anew"
                )))
            }
        }
    }

    /// A hash of all settings that decide what is learned.
    pub(crate) fn fingerprint(&self) -> String {
        // invariant: settings are plain values in groups, which TOML can write.
        let mut settings = flattened(&toml::Table::try_from(self).unwrap());
        let defaults = flattened(&toml::Table::try_from(Self::default()).unwrap());
        settings.retain(|setting| {
            let is_default = is_added_later(&setting.0) && defaults.contains(setting);
            !MAY_CHANGE.contains(&setting.0.as_str()) && !is_default
        });
        settings.sort_by(|a, b| a.0.cmp(&b.0));
        let mut hasher = blake3::Hasher::new();
        for (key, value) in settings {
            hasher.update(format!("{key}={value}\n").as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// `group.name` of every setting.
    fn keys(&self) -> Vec<String> {
        // invariant: settings are plain values in groups, which TOML can write.
        flattened(&toml::Table::try_from(self).unwrap()).into_iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_file_must_be_complete() {
        let config = Config::preset("paper").unwrap();
        let text = toml::to_string(&config).unwrap();
        let read = |text: &str| Config::from_run_file(text, "run/config.toml".as_ref());
        assert_eq!(read(&text).unwrap(), config);
        let lines: Vec<&str> = text.lines().collect();
        for kept in 0..lines.len() {
            let message = read(&lines[..kept].join("\n")).unwrap_err().to_string();
            assert!(message.starts_with("run/config.toml: setting `"), "{message}");
            assert!(message.contains("missing"), "{message}");
        }
        let message = read("").unwrap_err().to_string();
        assert!(message.contains("more is missing"), "{message}");
        let message = read(&text.replace("[train]", "[train]\nseed2 = 1")).unwrap_err().to_string();
        assert!(message.contains("run/config.toml") && message.contains("seed2"), "{message}");
    }

    #[test]
    fn a_run_of_an_earlier_version_is_read() {
        let text = toml::to_string(&Config::default()).unwrap();
        let (start, end) = (text.find("[prior]").unwrap(), text.find("[pathways]").unwrap());
        let older = format!("{}{}", &text[..start], &text[end..]);
        assert_eq!(Config::from_run_file(&older, "run/config.toml".as_ref()).unwrap(), Config::default());
    }

    #[test]
    fn the_fingerprint_is_of_what_is_learned() {
        let config = Config::default();
        let changed = |assignment: &str| config.with_setting(assignment).unwrap().fingerprint();
        for key in MAY_CHANGE {
            assert_eq!(changed(&format!("{key}=7")), config.fingerprint(), "{key}");
            assert!(config.keys().contains(&key.to_owned()), "{key}");
        }
        for assignment in
            ["train.seed=1", "task.way=6", "prior.scale=2", "rate.initial=0.0011", "propagation.gate=fixed"]
        {
            assert_ne!(changed(assignment), config.fingerprint(), "{assignment}");
        }
    }
}
