//! Makes the files of the page a part of the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new("page/dist");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut code = String::from("static ASSETS: &[Asset] = &[\n");
    for file in files {
        let name = file.strip_prefix(folder).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let whole = fs::canonicalize(&file)?;
        let digest = format!("\"{:016x}\"", fnv(&fs::read(&file)?));
        writeln!(
            code,
            "    Asset {{ path: {name:?}, bytes: include_bytes!({:?}), digest: {digest:?} }},",
            whole.display().to_string()
        )
        .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("assets.rs"), code)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Tells one version of a file from another; nothing rests on it being hard to forge.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
