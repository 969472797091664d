//! Small made-up samples under the names that the documentation uses.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Leaf classes below the folders that are their kinds.
const KINDS: [(&str, &str); 9] = [
    ("animal/cat", "tabby siamese persian manx sphynx"),
    ("animal/dog", "beagle poodle boxer collie husky"),
    ("animal/penguin", "emperor gentoo adelie rockhopper chinstrap"),
    ("animal/elephant", "bush forest indian borneo"),
    ("Fruit/Citrus", "Lemon Orange Lime Grapefruit Yuzu"),
    ("Fruit/Apple", "Gala Granny Fuji Braeburn Cox"),
    ("Vegetables", "Leek Carrot Turnip Radish Swede"),
    ("kitchen/pot", "kettle saucepan stockpot wok"),
    ("kitchen/cup", "espresso-cup mug beaker goblet"),
];

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpn-encode/tests/fixtures").join(name)
}

/// Writes a picture of 16x16 pixels, noise around a colour; readers go by the content, so it may bear any name.
pub(crate) fn picture(path: &Path, colour: [u8; 3], number: u32) {
    const SIDE: u32 = 16;
    let mut state = number.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let pixels: Vec<u8> = (0..SIDE * SIDE)
        .flat_map(|_| colour)
        .map(|value| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            value.saturating_add((state >> 24) as u8 / 5)
        })
        .collect();
    let mut bytes = b"BM".to_vec();
    for value in [54 + pixels.len() as u32, 0, 54, 40, SIDE, SIDE] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([1_u16.to_le_bytes(), 24_u16.to_le_bytes()].concat());
    for value in [0, pixels.len() as u32, 2835, 2835, 0, 0] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(pixels);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes photos of every leaf class to `folder`, `count` of each, beginning with number `from`.
pub(crate) fn photos(folder: &Path, from: u32, count: u32) {
    let mut class = 0_u32;
    for (above, leaves) in KINDS {
        for leaf in leaves.split(' ') {
            class += 1;
            let colour = [37, 91, 53].map(|step| (class * step % 200) as u8);
            for number in from..from + count {
                let file = folder.join(above).join(leaf).join(format!("{number}.jpg"));
                picture(&file, colour, class * 1000 + number);
            }
        }
    }
}

/// The list that says what is a kind of what.
pub(crate) fn kinds() -> String {
    let mut lines = vec!["child,parent".to_owned()];
    for (above, leaves) in KINDS {
        let above: Vec<&str> = above.split('/').collect();
        lines.push(format!("{},thing", above[0]));
        lines.extend(above.windows(2).map(|pair| format!("{},{}", pair[1], pair[0])));
        lines.extend(leaves.split(' ').map(|leaf| format!("{leaf},{}", above[above.len() - 1])));
    }
    lines.push("Kumquat,Citrus".into());
    let mut seen = std::collections::HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").unwrap();
        text
    })
}

/// The small encoders of the tests, as `lite0.onnx` and `minilm`.
pub(crate) fn encoders(folder: &Path) {
    fs::copy(fixture("conv.onnx"), folder.join("lite0.onnx")).unwrap();
    fs::copy(fixture("conv.toml"), folder.join("lite0.toml")).unwrap();
    copy(&fixture("tokens"), &folder.join("minilm"));
}

/// Copies a folder with all it holds.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
