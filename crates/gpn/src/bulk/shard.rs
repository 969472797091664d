//! One of equal parts.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};

/// Part `index` of `count`, counted from 0; written `index/count`.
///
/// ```
/// use gpn::Shard;
///
/// let last: Shard = "2/3".parse()?;
/// assert_eq!((last.range(10), last.file_name()), (6..10, "part-00002-of-00003.parquet".into()));
/// assert!("3/3".parse::<Shard>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// All in one part.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`; `None` where there is no such part.
    pub fn new(index: usize, count: usize) -> Option<Self> {
        (index < count && u32::try_from(count).is_ok()).then_some(Self { index, count })
    }

    /// The rows of this part, of `rows` in all. Parts differ by one row at most.
    pub fn range(self, rows: usize) -> Range<usize> {
        let start = |part: usize| (part as u128 * rows as u128 / self.count as u128) as usize;
        start(self.index)..start(self.index + 1)
    }

    /// The name of its file. Names are in the order of the rows.
    pub fn file_name(self) -> String {
        format!("part-{:05}-of-{:05}.parquet", self.index, self.count)
    }

    /// The files of other parts in a folder. Parts of another division are refused: together they would hold rows twice.
    pub(super) fn siblings(self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut siblings = Vec::new();
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(siblings) };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let numbers = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".parquet"));
            let numbers = numbers.and_then(|numbers| numbers.split_once("-of-"));
            let Some(other) = numbers.and_then(|(_, count)| count.parse::<usize>().ok()) else { continue };
            if other != self.count {
                return Err(Error::Conflict {
                    what: folder.display().to_string(),
                    reason: format!(
                        "it holds {name}, of a division into {other} shards and not {}; divide alike, or name another folder",
                        self.count
                    ),
                });
            }
            if name != self.file_name() {
                siblings.push(entry.path());
            }
        }
        siblings.sort();
        Ok(siblings)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let parts = text.split_once('/').and_then(|(index, count)| number(index).zip(number(count)));
        let Some((index, count)) = parts else {
            return Err(format!("`{text}` is no shard; write the number of the shard and of all, as in 0/4"));
        };
        Self::new(index, count).ok_or_else(|| match count {
            0 => "there must be one shard at least".into(),
            count => {
                format!("shards are counted from 0: those of {count} are 0/{count} to {}/{count}", count - 1)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_hold_every_row_once_in_order() {
        for rows in [0, 1, 7, 100, 1_000_003] {
            for count in [1, 2, 3, 7, 64] {
                let ranges: Vec<Range<usize>> =
                    (0..count).map(|index| Shard::new(index, count).unwrap().range(rows)).collect();
                assert_eq!((ranges[0].start, ranges[count - 1].end), (0, rows));
                assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert!(ranges.iter().all(|range| range.len().abs_diff(rows / count) <= 1));
            }
        }
    }

    #[test]
    fn what_is_no_shard_is_told() {
        for (text, part) in
            [("4/4", "0/4 to 3/4"), ("1", "as in 0/4"), ("-1/4", "as in 0/4"), ("0/0", "one shard")]
        {
            let message = text.parse::<Shard>().unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
