//! `gpn teach`, `gpn predict` and `gpn classes` as a user meets them, on a model of embeddings.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::command::{failure, gpn, stderr, success};

/// Runs a command that must fail with one error that contains `expected`.
fn refused(folder: &Path, arguments: &[&str], expected: &str) {
    let message = failure(folder, arguments);
    assert!(message.contains(expected), "{message}");
}

fn npy(path: &Path, rows: &[[f32; 4]]) {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 4), }}\n", rows.len());
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(rows.iter().flatten().flat_map(|value| value.to_le_bytes()));
    fs::write(path, file).unwrap();
}

/// Sample `number` of a class: classes of one group are near each other.
fn row(group: u32, class: u32, number: u32) -> [f32; 4] {
    let wobble = |salt: u32| ((number * 7 + salt * 5) % 11) as f32 / 20.0;
    [group as f32 * 4.0 + wobble(1), class as f32 * 2.0 + wobble(2), wobble(3), 1.0 + wobble(4)]
}

/// A folder with a labelled table of six groups of three classes, with so many samples each, their edges, and samples of a new class in `a.npy`.
fn table(samples: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (mut rows, mut labels, mut edges) = (Vec::new(), String::new(), String::from("child,parent\n"));
    for group in 0..6 {
        writeln!(edges, "group{group},all").unwrap();
        for class in 0..3 {
            writeln!(edges, "kind{group}{class},group{group}").unwrap();
            for number in 0..samples {
                rows.push(row(group, class, number));
                writeln!(labels, "kind{group}{class}").unwrap();
            }
        }
    }
    npy(&folder.path().join("x.npy"), &rows);
    fs::write(folder.path().join("x_labels.txt"), labels).unwrap();
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    npy(&folder.path().join("a.npy"), &[row(7, 0, 0), row(7, 0, 1), row(7, 0, 2)]);
    folder
}

const BUILD: [&str; 6] = [
    "data",
    "build",
    "--source=embeddings:x.npy",
    "--taxonomy=edges:edges.csv",
    "--out=bench",
    "--images-per-leaf=4",
];

/// The same with a benchmark `bench`, some classes held out.
pub(crate) fn benchmark(more: &[&str]) -> tempfile::TempDir {
    let folder = table(24);
    let shares = ["--train-share=0.7", "--close=1..2", "--far=3..9"];
    success(folder.path(), &[&BUILD[..], &shares, more].concat());
    folder
}

/// A folder with a model `m` trained on all of the benchmark's classes, made once and copied.
pub(crate) fn trained() -> tempfile::TempDir {
    static MODEL: OnceLock<Vec<u8>> = OnceLock::new();
    let model = MODEL.get_or_init(|| {
        let folder = table(12);
        success(folder.path(), &[&BUILD[..], &["--train-share=1"]].concat());
        success(
            folder.path(),
            &[
                "train",
                "--data=bench",
                "--out=run",
                "--set=model.backbone=identity",
                "--set=train.episodes=20",
                "--set=task.way=3",
                "--set=memory.refresh_every=10",
            ],
        );
        fs::read(folder.path().join("run/model.safetensors")).unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m"), model).unwrap();
    npy(&folder.path().join("a.npy"), &[row(7, 0, 0), row(7, 0, 1), row(7, 0, 2)]);
    npy(&folder.path().join("b.npy"), &[row(7, 2, 0), row(7, 2, 1)]);
    npy(&folder.path().join("query.npy"), &[row(7, 0, 5), row(7, 2, 5), row(2, 2, 5)]);
    folder
}

#[test]
fn a_class_is_taught_listed_and_recognised() {
    let folder = trained();
    let folder = folder.path();
    let text =
        success(folder, &["teach", "m", "--class", "ant", "--parent", "group5", "a.npy", "--out", "m2"]);
    assert!(text.contains("ant  ant   3        below group5"), "{text}");
    // Onto itself.
    let text = success(folder, &["teach", "m2", "--class", "bee", "b.npy", "--out", "m2"]);
    assert!(text.contains("bee  bee   2        near "), "{text}");

    let text = success(folder, &["predict", "m2", "query.npy", "--top", "2", "--explain"]);
    assert!(text.contains("query.npy: row 1") && text.contains("what shaped"), "{text}");
    let text =
        success(folder, &["predict", "m2", "query.npy", "--lambda", "1", "--format", "csv", "--top=1"]);
    let best: Vec<&str> = text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(best, ["ant", "bee", "kind22"], "{text}");
    for (choice, expected) in [
        (&["--taught"][..], ["ant", "bee"]),
        (&["--among", "kind50, ant"], ["ant", "kind50"]),
        (&["--below", "group4"], ["kind40", "kind42"]),
    ] {
        let text =
            success(folder, &[&["predict", "m2", "query.npy", "--json", "--explain"], choice].concat());
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let entries = report.as_array().unwrap();
        assert_eq!(entries.len(), 3);
        for entry in entries {
            let list = |key: &str| entry[key].as_array().unwrap().clone();
            let total: f64 = list("shaped_by").iter().map(|share| share["share"].as_f64().unwrap()).sum();
            assert!((total - 1.0).abs() < 1e-9, "{entry}");
            let total: f64 = list("classes").iter().map(|class| class["probability"].as_f64().unwrap()).sum();
            assert!((total - 1.0).abs() < 1e-9, "{entry}");
            let mut ids: Vec<String> =
                list("classes").iter().map(|class| class["id"].as_str().unwrap().to_owned()).collect();
            ids.sort();
            assert!(expected.iter().all(|id| ids.contains(&(*id).to_owned())), "{ids:?}");
        }
    }

    let text = success(folder, &["classes", "m2", "--taught"]);
    assert_eq!(text.lines().count(), 4, "{text}");
    let text = success(folder, &["classes", "m2", "kind2", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report.as_array().unwrap().len(), 3);
    assert_eq!(report[0]["kind"], "training");
    refused(folder, &["classes", "m2", "knid"], "no id or name contains it");
    refused(folder, &["classes", "m", "--taught"], "no such class is taught");
}

#[test]
fn many_classes_are_taught_at_once() {
    let folder = trained();
    let folder = folder.path();
    for (class, group) in [("ant", 7), ("bee", 8), ("insect", 9)] {
        fs::create_dir_all(folder.join("new").join(class)).unwrap();
        npy(&folder.join("new").join(class).join("rows.npy"), &[row(group, 1, 1), row(group, 1, 2)]);
    }
    fs::write(folder.join("parents.csv"), "child,parent\nant,insect\nbee,insect\ninsect,group5\n").unwrap();
    let text =
        success(folder, &["teach", "m", "--classes-from=new", "--parents=parents.csv", "--out=folders"]);
    assert!(text.contains("below insect") && text.contains("below group5"), "{text}");

    // The same from one labelled table.
    let rows: Vec<[f32; 4]> =
        [8, 7, 9].iter().flat_map(|&group| [row(group, 1, 2), row(group, 1, 1)]).collect();
    npy(&folder.join("table.npy"), &rows);
    fs::write(folder.join("table_labels.txt"), "bee\nbee\nant\nant\ninsect\ninsect\n").unwrap();
    success(folder, &["teach", "m", "--classes-from=table.npy", "--parents=parents.csv", "--out=table"]);
    assert!(fs::read(folder.join("folders")).unwrap() == fs::read(folder.join("table")).unwrap());

    fs::write(folder.join("wrong.csv"), "child,parent\nants,insect\n").unwrap();
    let wrong = ["teach", "m", "--classes-from=new", "--parents=wrong.csv", "--out=never"];
    refused(folder, &wrong, "class `ants` has parents here but is not being taught; did you mean `ant`?");
    fs::create_dir(folder.join("new/cow")).unwrap();
    refused(folder, &["teach", "m", "--classes-from=new", "--out=never"], "new/cow: there are no tables");
    assert!(!folder.join("never").exists());
}

#[test]
fn a_mistake_leaves_the_model_as_it_is() {
    let folder = trained();
    let folder = folder.path();
    success(folder, &["teach", "m", "--class", "ant", "--parent", "group5", "a.npy", "--out", "m"]);
    let before = fs::read(folder.join("m")).unwrap();
    fs::write(folder.join("picture.jpg"), b"\xff\xd8").unwrap();
    fs::write(folder.join("broken.npy"), b"\x93NUMPY\x01").unwrap();
    fs::write(folder.join("text.safetensors"), b"hello").unwrap();
    let mut short = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }\n";
    short.extend((header.len() as u16).to_le_bytes());
    short.extend(header.as_bytes());
    short.extend(1.0_f32.to_le_bytes());
    fs::write(folder.join("short.npy"), short).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    for (arguments, expected) in [
        (&["--class=ant", "a.npy"][..], "class `ant`: it is already taught with 3 samples; --more adds"),
        (&["--class=kind21", "a.npy"], "class `kind21`: the model was trained with it"),
        (
            &["--class=bee", "--parent=gruop5", "a.npy"],
            "parent `gruop5`: there is no such class; did you mean `group5`?",
        ),
        (
            &["--class=bee", "picture.jpg"],
            "picture.jpg: it is an image; this model takes embeddings of 4 numbers",
        ),
        (&["--class=bee", "short.npy"], "short.npy: row 0: the embedding has 1 numbers; this model takes 4"),
        (&["--class=bee", "broken.npy"], "broken.npy: not a readable .npy file"),
        (&["--class=bee", "nowhere.npy"], "nowhere.npy"),
        (&["--class=bee", "empty"], "empty: there are no tables of embeddings"),
        (&["--class=ant", "--more", "--parent=group1", "a.npy"], "it has its place already"),
    ] {
        refused(folder, &[&["teach", "m", "--out", "m"], arguments].concat(), expected);
        assert!(fs::read(folder.join("m")).unwrap() == before, "{arguments:?}");
    }
    let output = gpn(folder, &["teach", "m", "--class", "ant", "--out", "m"]);
    assert_eq!(output.status.code(), Some(2), "no files: {}", stderr(&output));
    refused(folder, &["classes", "text.safetensors"], "text.safetensors");
    refused(folder, &["predict", "nowhere", "a.npy"], "nowhere");
    refused(
        folder,
        &["predict", "m", "--among", "ant,an", "a.npy"],
        "class `an`: there is no such class; did you mean `ant`?",
    );

    // Again, with leave: the same samples count once.
    let output = gpn(folder, &["teach", "m", "--class", "ant", "--more", "a.npy", "--out", "m"]);
    assert!(stderr(&output).contains("class ant: 3 samples were given before; they count once"));
    assert!(fs::read(folder.join("m")).unwrap() == before);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_goes_on() {
    let folder = trained();
    let folder = folder.path();
    fs::write(folder.join("broken.npy"), b"none").unwrap();
    let output = gpn(folder, &["predict", "m", "broken.npy", "query.npy", "gone.npy", "--top=1", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let faults = report.as_array().unwrap().iter().filter(|entry| entry["error"].is_string()).count();
    assert_eq!((report.as_array().unwrap().len(), faults), (5, 2));
    let message = stderr(&output);
    assert!(message.contains("warning: broken.npy") && message.contains("2 of 5 samples"), "{message}");
}
