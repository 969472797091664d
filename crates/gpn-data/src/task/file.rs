//! Fixed tasks as JSON: a list of `{"classes": [..], "support": [[..], ..], "query": [[..], ..]}`.
//!
//! A task with one more list of support and query samples than classes has the answer "other".

use std::path::Path;

use super::Task;
use crate::error::DataError;

/// Reads fixed tasks and checks that each has samples for every class.
pub fn read_tasks(path: &Path) -> Result<Vec<Task>, DataError> {
    let text = std::fs::read(path).map_err(|error| DataError::io("read", path, error))?;
    let invalid = |reason: String| DataError::Malformed { file: path.display().to_string(), reason };
    let tasks: Vec<Task> = serde_json::from_slice(&text).map_err(|error| {
        let reason = gpn_taxonomy::plain_words(&error.to_string());
        invalid(format!("{reason}; a task file is a JSON list of objects with classes, support and query"))
    })?;
    if tasks.is_empty() {
        return Err(invalid("it holds no task".into()));
    }
    for (number, task) in tasks.iter().enumerate() {
        let way = task.classes.len();
        if way < 2 {
            return Err(invalid(format!("task {number} has {way} classes; a task needs at least 2")));
        }
        let (support, query) = (task.support.len(), task.query.len());
        if support != query || !(way..=way + 1).contains(&support) {
            return Err(invalid(format!(
                "task {number} has {way} classes but {support} support and {query} query lists; give one of each \
                 per class, and one more for \"other\" if that is an answer"
            )));
        }
        if task.query.iter().all(Vec::is_empty) {
            return Err(invalid(format!("task {number} has no query; give at least one")));
        }
        if let Some(answer) = task.support.iter().position(Vec::is_empty) {
            let class = task.classes.get(answer).map_or("other".into(), u32::to_string);
            return Err(invalid(format!(
                "task {number} has no support sample for its class {class}; give at least one"
            )));
        }
    }
    Ok(tasks)
}

/// Writes fixed tasks, one task to a line, beside the target and then renamed into place.
pub fn write_tasks(path: &Path, tasks: &[Task]) -> Result<(), DataError> {
    let mut text = String::from("[");
    for (number, task) in tasks.iter().enumerate() {
        text.push_str(if number == 0 { "\n" } else { ",\n" });
        // invariant: a task is plain numbers, which always serialise.
        text.push_str(&serde_json::to_string(task).unwrap());
    }
    text.push_str("\n]\n");
    gpn_files::write(path, text).map_err(|error| DataError::io("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn tasks_survive_write_and_read() {
        let (_folder, path) = written("");
        let task = |offset| Task {
            classes: vec![offset, offset + 1],
            support: vec![vec![1], vec![2]],
            query: vec![vec![3, 4], vec![]],
        };
        let mut with_rest = task(3);
        with_rest.support.push(vec![5]);
        with_rest.query.push(vec![6]);
        let tasks = vec![task(0), task(7), with_rest];
        write_tasks(&path, &tasks).unwrap();
        assert_eq!(read_tasks(&path).unwrap(), tasks);
    }

    #[test]
    fn faults_name_the_task() {
        for (text, expected) in [
            ("[]", "no task"),
            ("{", "JSON list"),
            (
                r#"[{"classes":[1,2],"support":[[1]],"query":[[1],[2]]}]"#,
                "task 0 has 2 classes but 1 support",
            ),
            (
                r#"[{"classes":[1,2],"support":[[1],[]],"query":[[1],[2]]}]"#,
                "no support sample for its class 2",
            ),
            (r#"[{"classes":[1],"support":[[1]],"query":[[1]]}]"#, "at least 2"),
            (r#"[{"classes":[1,2],"support":[[1],[2]],"query":[[],[]]}]"#, "task 0 has no query"),
            (r#"[{"classes":["a"],"support":[],"query":[]}]"#, "expected a whole number, not \"a\""),
        ] {
            let (_folder, path) = written(text);
            let message = read_tasks(&path).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("tasks.json"), "{message}");
        }
    }
}
