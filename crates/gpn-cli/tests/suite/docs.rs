//! Every command of the documentation, run as it is written.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::command::{command, gpn, stderr, success};
use crate::world;

/// Commands that are too long or need what is not here, with the reason. Their words are checked, and that they stop at what is missing.
const PARSED: &[(&str, &str)] = &[
    ("gpn demo", "takes a minute"),
    ("gpn serve shop.safetensors", "serves until it is stopped; serve.rs runs it"),
    ("gpn serve run", "as above"),
    ("gpn serve birds=runs/birds trees=trees.safetensors --keep-images", "as above"),
    (
        "gpn serve run --addr 0.0.0.0:8443 --write-token-file write-token --read-token-file read-tokens --tls-cert cert.pem --tls-key key.pem",
        "as above",
    ),
    (
        "gpn fit photos --out own.safetensors",
        "trains a network for 2,000 steps; `a_network_is_trained` does fewer",
    ),
    (
        "gpn data build --source tiny-imagenet:tiny-imagenet-200.zip --taxonomy wordnet --preset tiny-imagenet --out tiny",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn data build --source tiered-imagenet:DIR --taxonomy wordnet --preset tiered-imagenet --out tiered",
        "needs tieredImageNet",
    ),
    ("gpn train --data bench --out run", "trains for minutes; a shorter run takes its place"),
    ("gpn train --method protonet --data bench --out proto", "trains for minutes"),
    ("gpn experiment tables --out lab", "takes minutes; experiment.rs runs a smaller one"),
    ("gpn experiment ablation --out lab", "as above"),
    ("gpn experiment figures --out lab", "as above"),
    ("gpn experiment tables --scale standard --data tiny --out lab --shapes 5w1s", "needs Tiny-ImageNet"),
    (
        "gpn experiment tables --scale standard --data tiny --out lab --shapes 5w1s --set train.auxiliary_batch=64",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn train --data tiny --out run --set train.episodes=8000 --set train.auxiliary_batch=64 --set rate.every=228 --set rate.from=456",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn train --data tiny --out run --set train.episodes=8000 --set memory.refresh_every=1000 --set rate.every=229 --set rate.from=500 --set schedule.count_few_shot_only=true",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn train --data tiny --out gpn --set train.episodes=100000 --set train.auxiliary_batch=64 --set rate.every=2857 --set rate.from=5714 --set memory.refresh_every=2000 --set validation.every=10000",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn eval run --data tiny --split close --tasks-file tasks_close_random_5w1s.json --method prior",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn eval run --data tiny --split close --hierarchy known --tasks-file tasks_close_random_5w1s.json",
        "needs Tiny-ImageNet",
    ),
    (
        "gpn embed lite0.onnx photos --out faster.npy --onnxruntime libonnxruntime.so",
        "needs ONNX Runtime, and a program built for it",
    ),
];

/// What stands in a block but is no command as it stands.
const NOT_COMMANDS: &[&str] = &["gpn train --data tiny --out protonet --method protonet ...the same"];

/// Commands that are shown to fail, with words of the message.
const FAILING: &[(&str, &str)] = &[("gpn classes model.safetensors pengiun", "did you mean `penguin`?")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and docs/*.md, in order.
fn pages() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    files.insert(0, root().join("README.md"));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The commands in the blocks of a page: lines that begin with `gpn`, perhaps after a prompt, with the lines that go on.
fn commands(page: &str) -> Vec<String> {
    let (mut found, mut goes_on): (Vec<String>, bool) = (Vec::new(), false);
    // The language of the block that a line is in.
    let mut block: Option<&str> = None;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(language.trim()) };
            continue;
        }
        let is_shell = block.is_some_and(|language| ["", "sh", "console", "bash"].contains(&language));
        let line = line.trim_start_matches("$ ").trim();
        let line = line
            .strip_prefix("cargo run --release -p gpn-cli -- ")
            .map_or(line.to_owned(), |rest| format!("gpn {rest}"));
        if goes_on {
            let last = found.last_mut().unwrap();
            last.push_str(line.trim_end_matches('\\'));
        } else if is_shell && line.starts_with("gpn ") {
            found.push(line.trim_end_matches('\\').to_owned());
        } else {
            continue;
        }
        goes_on = line.ends_with('\\');
    }
    found.iter().map(|line| without_comment(line)).collect()
}

/// The command without a shell's comment, its words one blank apart.
fn without_comment(line: &str) -> String {
    let line = line.split(" # ").next().unwrap();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a command as a shell takes them, without `gpn`.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (letter, quote) {
            (letter, Some(mark)) if letter == mark => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            (' ', None) => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    assert!(quote.is_none(), "{line}");
    words.remove(0);
    words
}

/// A benchmark and a short run on it, made once.
fn trained() -> &'static Path {
    static TRAINED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = TRAINED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        world::photos(&folder.path().join("photos"), 0, 90);
        fs::write(folder.path().join("kinds.csv"), world::kinds()).unwrap();
        success(folder.path(), &["data", "build", "--source=photos", "--taxonomy=kinds.csv", "--out=bench"]);
        fs::remove_dir_all(folder.path().join("photos")).unwrap();
        let short = ["--episodes=4", "--set=task.way=3", "--set=validation.tasks=2"];
        success(folder.path(), &[&["train", "--data=bench", "--out=run"], &short[..]].concat());
        folder
    });
    made.path()
}

/// A folder with everything that the pages name.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    world::photos(&at("photos"), 0, 6);
    world::photos(&at("more-photos"), 50, 2);
    world::encoders(folder.path());
    fs::write(at("kinds.csv"), world::kinds()).unwrap();
    for (number, name) in ["pomelo", "photo", "lynx1", "lynx2", "a", "b", "elephant"].iter().enumerate() {
        world::picture(&at(&format!("{name}.jpg")), [90, 120, 20], number as u32);
    }
    fs::write(at("texts.txt"), "a red apple\na blue boat\n").unwrap();
    fs::write(at("names.csv"), "class,description\nGala,a red apple\nLemon,a yellow boat\n").unwrap();
    success(folder.path(), &["embed", "lite0.onnx", "photos", "--no-cache", "--out=train.npz"]);
    folder
}

/// Runs the commands of a page one after the other in a folder.
fn run(page: &str, folder: &Path, lines: &[String]) {
    // Stops every command that is not run: nothing that it reads is there, and files stand where it would write folders.
    let nothing = tempfile::tempdir().unwrap();
    for name in ["lab", "gpn-demo"] {
        fs::write(nothing.path().join(name), "").unwrap();
    }
    for line in lines {
        let words = words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if NOT_COMMANDS.contains(&line.as_str()) {
            continue;
        }
        if PARSED.iter().any(|(listed, _)| listed == line) {
            let output = gpn(nothing.path(), &words);
            assert_eq!(output.status.code(), Some(1), "{page}: {line}: {}", stderr(&output));
            if words[..] == ["train", "--data", "bench", "--out", "run"] {
                // A benchmark with more samples and a shorter run take the place of those.
                for name in ["bench", "run"] {
                    let _ = fs::remove_dir_all(folder.join(name));
                    world::copy(&trained().join(name), &folder.join(name));
                }
            }
            continue;
        }
        let output = command(folder, &words).env("XDG_CACHE_HOME", folder.join(".cache")).output().unwrap();
        let message = stderr(&output);
        match FAILING.iter().find(|(listed, _)| listed == line) {
            Some((_, expected)) => {
                assert_eq!(output.status.code(), Some(1), "{page}: {line}: {message}");
                assert!(message.contains(expected), "{page}: {line}: {message}");
            }
            None => assert_eq!(output.status.code(), Some(0), "{page}: {line}: {message}"),
        }
    }
}

fn lines_of(name: &str) -> Vec<String> {
    commands(&pages().into_iter().find(|(page, _)| page == name).unwrap().1)
}

#[test]
fn readme() {
    run("README.md", prepared().path(), &lines_of("README.md"));
}

#[test]
fn fit() {
    run("fit.md", prepared().path(), &lines_of("fit.md"));
}

#[test]
fn encoders() {
    let folder = prepared();
    world::copy(&trained().join("run"), &folder.path().join("run"));
    run("encoders.md", folder.path(), &lines_of("encoders.md"));
}

#[test]
fn teach() {
    let folder = prepared();
    world::copy(&trained().join("run"), &folder.path().join("run"));
    for (class, name) in ["king-penguin", "african-elephant", "my-teapot"].iter().enumerate() {
        for number in 0..5 {
            let file = folder.path().join("photos").join(name).join(format!("{number}.jpg"));
            world::picture(&file, [200, 60 * class as u8, 10], number);
        }
    }
    run("teach.md", folder.path(), &lines_of("teach.md"));
}

#[test]
fn training() {
    run("training.md", prepared().path(), &lines_of("training.md"));
}

#[test]
fn every_other_page() {
    let own = ["README.md", "fit.md", "encoders.md", "teach.md", "training.md"];
    let (folder, mut met) = (prepared(), HashSet::new());
    for (page, text) in pages() {
        let lines = commands(&text);
        if !own.contains(&page.as_str()) {
            run(&page, folder.path(), &lines);
        }
        met.extend(lines);
    }
    let listed =
        PARSED.iter().map(|(line, _)| line).chain(NOT_COMMANDS).chain(FAILING.iter().map(|(line, _)| line));
    for line in listed {
        assert!(met.contains(*line), "no page has this any more: {line}");
    }
    assert!(met.len() > 40, "{}", met.len());
}

/// Commands in running text are often shortened; their subcommands and options must exist all the same.
#[test]
fn commands_in_the_text_exist() {
    let folder = tempfile::tempdir().unwrap();
    let mut helps: HashMap<String, String> = HashMap::new();
    for (page, text) in pages() {
        let spans = text.split('`').skip(1).step_by(2).filter(|span| !span.contains('\n'));
        for span in spans.filter(|span| span.starts_with("gpn ")) {
            let words: Vec<&str> = span.split_whitespace().skip(1).collect();
            let depth = if ["data", "experiment"].contains(&words[0]) && words.len() > 1 { 2 } else { 1 };
            let name = words[..depth].join(" ");
            let help = helps
                .entry(name)
                .or_insert_with(|| success(folder.path(), &[&words[..depth], &["--help"]].concat()));
            for option in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let option = option.split('=').next().unwrap().trim_end_matches(&[',', ']'][..]);
                assert!(help.contains(option), "{page}: `{span}`: there is no {option}");
            }
        }
    }
    assert!(helps.len() > 8, "{:?}", helps.keys());
}

#[test]
fn commands_are_found_and_divided_into_words() {
    let page = "```\n$ gpn teach m --class \"my cup\" a.jpg   # a word\nother\ngpn train \\\n    --set a=1\n```\ngpn not\n```rust\ngpn not\n```\ngpn not\n```\ngpn demo\n```\n";
    let found = commands(page);
    assert_eq!(found, ["gpn teach m --class \"my cup\" a.jpg", "gpn train --set a=1", "gpn demo"]);
    assert_eq!(words(&found[0]), ["teach", "m", "--class", "my cup", "a.jpg"]);
}

#[test]
fn a_network_is_trained_on_photos_without_an_encoder() {
    let folder = tempfile::tempdir().unwrap();
    world::photos(&folder.path().join("photos"), 0, 6);
    let text = success(folder.path(), &["fit", "photos", "--episodes=3", "--out=own.safetensors"]);
    // The sixth part of the photos, which the network was not trained on, and no figures from others.
    assert!(text.contains("measured on 42 samples") && !text.contains("comes later"), "{text}");
    world::picture(&folder.path().join("photo.jpg"), [90, 120, 20], 1);
    let text =
        success(folder.path(), &["predict", "own.safetensors", "photo.jpg", "--unknown", "--confidence"]);
    assert!(text.contains("(as deep as sure)"), "{text}");

    // Three classes with two photos each.
    for (class, colour) in [("red", [200, 0, 0]), ("green", [0, 200, 0]), ("blue", [0, 0, 200])] {
        for number in 0..2 {
            world::picture(&folder.path().join(format!("few/{class}/{number}.jpg")), colour, number);
        }
    }
    let text = success(folder.path(), &["fit", "few", "--episodes=3", "--out=few.safetensors"]);
    assert!(text.contains("3 classes, 6 samples") && text.contains("nothing could be measured"), "{text}");
    success(folder.path(), &["predict", "few.safetensors", "photo.jpg"]);
}
