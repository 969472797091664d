//! What tells tasks apart without comparing their lists.

use super::Task;

/// Characters of a fingerprint.
const LENGTH: usize = 16;

impl Task {
    /// The fingerprint of the task over the classes and samples of a data set: tasks with the same classes, support and
    /// queries of the same data set have the same. Classes and samples are numbers, so `data_set` must say whose.
    ///
    /// ```
    /// use gpn_data::task::Task;
    ///
    /// let task = |query| Task { classes: vec![3, 5], support: vec![vec![1], vec![2]], query: vec![vec![7], vec![query]] };
    /// assert_eq!(task(8).fingerprint("close"), task(8).fingerprint("close"));
    /// assert_ne!(task(8).fingerprint("close"), task(9).fingerprint("close"));
    /// assert_ne!(task(8).fingerprint("close"), task(8).fingerprint("far"));
    /// ```
    pub fn fingerprint(&self, data_set: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(data_set.len() as u64).to_le_bytes());
        hasher.update(data_set.as_bytes());
        let lists = std::iter::once(&self.classes).chain(&self.support).chain(&self.query);
        for list in lists {
            // With its length, so that no entry can change places between two lists.
            hasher.update(&(list.len() as u64).to_le_bytes());
            for number in list {
                hasher.update(&number.to_le_bytes());
            }
        }
        hasher.finalize().to_hex()[..LENGTH].to_owned()
    }
}

/// The fingerprint of a list of tasks, from those of its tasks in their order.
pub fn fingerprint_of_list<'a>(tasks: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for task in tasks {
        hasher.update(task.as_bytes());
    }
    hasher.finalize().to_hex()[..LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_task_counts() {
        let task =
            Task { classes: vec![1, 2], support: vec![vec![3], vec![4]], query: vec![vec![5, 6], vec![7]] };
        let mut others = vec![task.clone(); 5];
        others[0].classes = vec![2, 1];
        others[1].support = vec![vec![3], vec![8]];
        others[2].query = vec![vec![5], vec![6, 7]];
        others[3].support = vec![vec![3, 4], vec![]];
        others[4].query.push(vec![]);
        let print = task.fingerprint("x");
        assert_eq!(print.len(), LENGTH);
        assert!(others.iter().all(|other| other.fingerprint("x") != print));
        assert_ne!(fingerprint_of_list(["a", "b"]), fingerprint_of_list(["b", "a"]));
    }
}
