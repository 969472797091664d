//! `gpn experiment` as a user meets it, in its shortest form.

use std::fs;
use std::path::Path;

use crate::command::{command, failure, gpn, stderr, success};

/// Few episodes and tasks, on the built-in data.
const SHORT: [&str; 8] = ["--out", "lab", "--episodes", "6", "--tasks", "3", "--set", "memory.samples=2"];

fn short(what: &str, more: &[&str]) -> Vec<String> {
    [&["experiment", what], &SHORT[..], more].concat().iter().map(|&word| word.to_owned()).collect()
}

fn run(folder: &Path, what: &str, more: &[&str]) -> String {
    let arguments = short(what, more);
    success(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The times at which every file below a folder was last written.
fn written(folder: &Path) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(written(&path));
        } else {
            files.push((path.clone(), fs::metadata(&path).unwrap().modified().unwrap()));
        }
    }
    files.sort();
    files
}

#[test]
fn tables_ablation_and_figures_end_to_end() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let printed = run(folder, "tables", &["--shapes", "5w1s"]);
    for method in ["Nearest prototype", "Prototypical Network", "GNN", "Baseline++", "PPN", "GPN+"] {
        assert!(printed.contains(method), "{method}: {printed}");
    }
    for name in ["close-random", "close-snowball", "far-random", "far-snowball"] {
        for extension in ["md", "csv", "json", "tex"] {
            assert!(folder.join(format!("lab/{name}.{extension}")).is_file(), "{name}.{extension}");
        }
        // Every method has an accuracy, and every cell links the run behind it.
        let table: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(folder.join(format!("lab/{name}.json"))).unwrap())
                .unwrap();
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 10);
        for row in rows {
            let ours = &row["cells"][0];
            assert!(ours["mean"].is_f64(), "{row}");
            assert!(folder.join("lab").join(ours["link"].as_str().unwrap()).is_dir(), "{row}");
        }
    }
    assert!(fs::read_to_string(folder.join("lab/tables.html")).unwrap().contains("GPN+"));

    // What is done is not done again.
    let before = (written(&folder.join("lab/runs")), written(&folder.join("lab/results")));
    assert_eq!(run(folder, "tables", &["--shapes", "5w1s"]), printed);
    assert_eq!((written(&folder.join("lab/runs")), written(&folder.join("lab/results"))), before);

    // The ablation uses the run of the whole method that the tables trained.
    let printed = run(folder, "ablation", &[]);
    assert!(printed.contains("additive attention") && printed.contains("no auxiliary task"), "{printed}");
    assert!(folder.join("lab/ablation.html").is_file());

    let printed = run(folder, "figures", &[]);
    assert_eq!(printed.lines().count(), 5, "{printed}");
    for figure in printed.lines() {
        let svg = folder.join(figure);
        assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"), "{figure}");
        assert!(fs::read(svg.with_extension("png")).unwrap().starts_with(b"\x89PNG"), "{figure}");
    }
    let unknown = short("figures", &["--subtree", "no such class"]);
    let message = failure(folder, &unknown.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(message.contains("class `no such class`: no training class"), "{message}");

    let other_method = short("figures", &["--run", "lab/runs/protonet-5w1s"]);
    let message = failure(folder, &other_method.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(message.contains("it is a run of protonet"), "{message}");
    let teach = ["teach", "lab/runs/gnn-5w1s", "--class", "x", "no.jpg", "--out", "x.safetensors"];
    let message = failure(folder, &teach);
    assert!(message.contains("gnn answers whole tasks") && !message.contains("damaged"), "{message}");

    // Other settings in the same directory would mix results that do not belong together.
    let other =
        failure(folder, &["experiment", "tables", "--out", "lab", "--episodes", "7", "--shapes", "5w1s"]);
    assert!(other.contains("other settings"), "{other}");
}

#[test]
fn an_experiment_that_was_killed_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let arguments = short("tables", &["--shapes", "5w1s", "--methods", "gpn"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = command(folder, &arguments).spawn().unwrap();
    // Killed as soon as a first run is there.
    while !folder.join("lab/runs").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let printed = success(folder, &arguments);
    assert!(printed.contains("GPN+") && !printed.contains("GNN"), "{printed}");
}

#[test]
fn wrong_wishes_are_answered() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let message = failure(folder, &["experiment", "tables", "--out", "lab", "--scale", "standard"]);
    assert!(message.contains("name it with --data"), "{message}");
    let usage = gpn(folder, &["experiment", "tables", "--out", "lab", "--shapes", "5-1"]);
    assert_eq!(usage.status.code(), Some(2));
    assert!(stderr(&usage).contains("write it as 5w1s"), "{}", stderr(&usage));
}
