//! `--shard`: words, one-liners of the docs, kills at any moment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{command, failure, gpn, stderr, success};
use crate::world;

/// A folder with photos, a list of them, a fitted model and its encoder.
fn shop() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    world::encoders(path);
    world::photos(&path.join("photos"), 0, 3);
    let fit = ["fit", "photos", "--encoder", "lite0.onnx", "--out", "shop.safetensors", "--no-cache"];
    success(path, &fit);
    let mut list = String::new();
    for entry in fs::read_dir(path.join("photos/animal/cat")).unwrap() {
        let class = entry.unwrap().file_name().into_string().unwrap();
        for number in [0, 2] {
            list.extend(["photos/animal/cat/", &class, &format!("/{number}.jpg\n")]);
        }
    }
    fs::write(path.join("list.txt"), list).unwrap();
    folder
}

/// The bytes of all files of a folder, by name; hidden ones are left out.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    files.sort();
    files
}

#[test]
fn shards_are_written_told_and_not_done_again() {
    let folder = shop();
    let folder = folder.path();
    let shard = |shard: &str, out: &str| {
        success(
            folder,
            &["predict", "shop.safetensors", "list.txt", "--no-cache", "--shard", shard, "--out", out],
        )
    };
    assert_eq!(shard("0/2", "out"), "out/part-00000-of-00002.parquet: 5 rows\n");
    assert_eq!(shard("0/2", "out"), "out/part-00000-of-00002.parquet: 5 rows, done before\n");
    assert_eq!(shard("1/2", "out"), "out/part-00001-of-00002.parquet: 5 rows\n");
    let embed =
        ["embed", "lite0.onnx", "list.txt", "--no-cache", "--shard", "1/2", "--out", "embedded", "--json"];
    let told: serde_json::Value = serde_json::from_str(&success(folder, &embed)).unwrap();
    assert_eq!((&told["rows"], &told["was_done"]), (&5.into(), &false.into()));
    // A photo that is broken is a row with an error.
    fs::write(folder.join("broken.txt"), "photos/none.jpg\n").unwrap();
    let broken = ["predict", "shop.safetensors", "broken.txt", "--no-cache", "--out", "broken"];
    let output = gpn(folder, &broken);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("1 row could not be read; the column `error` says why"),
        "{}",
        stderr(&output)
    );
    let other = ["predict", "shop.safetensors", "broken.txt", "--no-cache", "--shard", "0/2", "--out", "out"];
    let message = failure(folder, &other);
    assert!(message.contains("name another folder, or pass --force to replace it"), "{message}");
    let message = failure(folder, &["predict", "shop.safetensors", "list.txt", "--explain", "--out", "e"]);
    assert!(message.contains("--explain has no place in a table"), "{message}");
    for wrong in [["--shard", "2/2", "--out", "out"], ["--shard", "0/2", "--top", "1"]] {
        let output = gpn(folder, &[&["predict", "shop.safetensors", "list.txt"][..], &wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

/// Kills the process at moments from its start to beyond its end, and starts it again.
#[test]
fn a_killed_shard_can_always_be_started_again() {
    let folder = shop();
    let folder = folder.path();
    let arguments = |out: &'static str| {
        ["predict", "shop.safetensors", "photos", "--no-cache", "--shard", "0/1", "--out", out]
    };
    success(folder, &arguments("whole"));
    let expected = files(&folder.join("whole"));
    let rounds: u64 = std::env::var("GPN_KILL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    for round in 0..rounds {
        let mut process = command(folder, &arguments("killed")).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 160 / rounds));
        process.kill().unwrap();
        process.wait().unwrap();
        if folder.join("killed").exists() {
            let found = files(&folder.join("killed"));
            assert!(found.is_empty() || found == expected, "half a file in round {round}");
        }
        success(folder, &arguments("killed"));
        assert_eq!(files(&folder.join("killed")), expected, "round {round}");
        fs::remove_dir_all(folder.join("killed")).unwrap();
    }
}

/// The lines of docs/scaling.md that start many processes, run by a shell. `sbatch` and `parallel`, which few machines have, are
/// played by scripts that do with these words what the real ones do.
#[cfg(unix)]
#[test]
fn one_liners_of_the_docs_make_all_shards() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = shop();
    let folder = folder.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/scaling.md")).unwrap();
    let lines: Vec<&str> = page
        .lines()
        .map(str::trim)
        .filter(|line| ["seq ", "sbatch ", "parallel "].iter().any(|word| line.starts_with(word)))
        .collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap();
    let scripts = [
        ("gpn", format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_gpn"))),
        (
            "sbatch",
            "for word in \"$@\"; do case $word in --array=*) span=${word#--array=} ;; esac; last=$word; done\n\
             for task in $(seq ${span%-*} ${span#*-}); do SLURM_ARRAY_TASK_ID=$task sh -c \"$last\" || exit 1; done"
                .into(),
        ),
        (
            "parallel",
            "while [ \"$1\" != gpn ]; do shift; done; line=; numbers=; after=\n\
             for word in \"$@\"; do if [ \"$word\" = ::: ]; then after=1; elif [ -n \"$after\" ]; then numbers=\"$numbers $word\"; \
             else line=\"$line $word\"; fi; done\n\
             for number in $numbers; do sh -c \"$(echo \"$line\" | sed \"s/{}/$number/g\")\" || exit 1; done"
                .into(),
        ),
    ];
    for (name, script) in scripts {
        fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut made: Vec<Vec<(String, Vec<u8>)>> = Vec::new();
    for line in lines {
        let run =
            Command::new("sh").args(["-c", line]).current_dir(folder).env("PATH", &path).output().unwrap();
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
        let out: PathBuf = folder.join("answers");
        let found = files(&out);
        assert_eq!(found.len(), 4, "{line}");
        fs::remove_dir_all(&out).unwrap();
        made.push(found);
    }
    assert!(made.windows(2).all(|pair| pair[0] == pair[1]), "all make the same files");
}
