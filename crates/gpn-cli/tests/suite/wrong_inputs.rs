//! Wrong inputs of the kinds people make: each with its exit code and the words that help, no fault of the program, nothing left behind.

use std::fs;
use std::path::Path;

use crate::command::{command, stderr, success};
use crate::world;

/// What ends with exit code 1, and the words of its message that say what is wrong and what to do.
const FAILS: &[(&str, &[&str])] = &[
    // What to fit.
    ("fit nowhere --out o", &["source `nowhere`: there is no such file or folder"]),
    ("fit empty --out o", &["empty: it is empty; one folder of photos per class is expected"]),
    (
        "fit flat --encoder lite0.onnx --out o",
        &["flat: its 2 photos lie in no folder", "put the photos of each class into a folder"],
    ),
    ("fit photos/Leek --encoder lite0.onnx --out o", &["photos lie in no folder"]),
    ("fit notes --encoder lite0.onnx --out o", &["notes: no photos found"]),
    (
        "fit texts --encoder lite0.onnx --out o",
        &["photos:texts: none of its samples can be read", "its content is none of JPEG"],
    ),
    ("fit heic --encoder lite0.onnx --out o", &["HEIC photos (iPhone) are not read", "convert to JPEG"]),
    (
        "fit one-class --encoder lite0.onnx --out o",
        &["class `Leek`: all samples are of this one class", "give samples of two or more"],
    ),
    ("fit single --out o", &["too few photos to train a network on", "an encoder needs no training"]),
    ("fit photo.jpg --out o", &["it is a single image; name the folder"]),
    ("fit kinds.csv --out o", &["it is a text table; embeddings are read from .npy, .npz or .parquet"]),
    ("fit m.safetensors --out o", &["it is a file of an unknown kind"]),
    ("fit photo:photos --out o", &["unknown kind `photo` (did you mean `photos`?)"]),
    // Encoders.
    ("fit photos --encoder nowhere.onnx --out o", &["nowhere.onnx: cannot open"]),
    (
        "fit photos --encoder text.onnx --out o",
        &["text.onnx: it is no ONNX model, or a damaged one; export it again"],
    ),
    ("fit photos --encoder cut.onnx --out o", &["cut.onnx: it is no ONNX model, or a damaged one"]),
    ("fit photos --encoder photo.jpg --out o", &["photo.jpg: it is no ONNX model"]),
    ("fit photos --encoder minilm --out o", &["minilm: it encodes texts; these are photos"]),
    (
        "fit photos --encoder lite0.onnx --encoder-size 8 --out o",
        &["`size` is 8, but the model takes 16x16", "--encoder-"],
    ),
    ("fit x.npy --encoder lite0.onnx --out o", &["it holds embeddings already, which need no encoder"]),
    // Class graphs.
    ("fit x.npy --taxonomy nowhere.csv --out o", &["taxonomy `nowhere.csv`: there is no such file"]),
    ("fit x.npy --taxonomy swapped.csv --out o", &["child and parent seem to be exchanged", "exchange them"]),
    (
        "fit x.npy --taxonomy cycle.csv --out o",
        &["cycle.csv: the class graph has a cycle", "remove one of these edges"],
    ),
    (
        "fit x.npy --taxonomy partial.csv --out o",
        &["classes of x.npy are not in the taxonomy partial.csv", "`Granny`"],
    ),
    ("fit x.npy --taxonomy misspelt.csv --out o", &["`Gala` (did you mean `Galla`?)"]),
    (
        "fit x.npy --taxonomy self.csv --out o",
        &["self.csv:2: class `Gala` is its own parent; remove this edge"],
    ),
    ("fit x.npy --taxonomy empty.csv --out o", &["empty.csv: holds no class"]),
    ("fit x.npy --taxonomy one-column.csv --out o", &["expected two columns, child and parent, but found 1"]),
    ("fit x.npy --taxonomy kinds.xlsx --out o", &["kinds.xlsx: is a zip archive"]),
    ("fit x.npy --taxonomy photos --out o", &["it is a folder without WordNet's data.noun; name the file"]),
    ("fit x.npy --taxonomy x.npy --out o", &["x.npy"]),
    // Embeddings.
    ("fit nan.npy --out o", &["nan.npy: row 1 (class Gala), column 2 is NaN; embeddings must be finite"]),
    ("fit infinite.npy --out o", &["infinite.npy: row 1 (class Gala), column 2 is inf"]),
    ("fit unlabelled.npy --out o", &["unlabelled.npy: no labels beside it; expected unlabelled_labels.npy"]),
    ("fit fewer-labels.npy --out o", &["there are 30 embeddings but 27 labels; every row needs one label"]),
    ("fit integers.npy --out o", &["embeddings must be floats of shape [N, D]", "astype(\"float32\")"]),
    ("fit cube.npy --out o", &["not <f4 of shape [30, 2, 4]", "reshape"]),
    ("fit no-rows.npy --out o", &["there are 0 embeddings"]),
    ("fit no-columns.npy --out o", &["embeddings of 0 numbers"]),
    ("fit one-label.npy --out o", &["class `Gala`: all samples are of this one class"]),
    ("fit cut.npy --out o", &["cut.npy"]),
    ("fit text.npy --out o", &["text.npy: not a readable .npy file"]),
    ("fit unlabelled.npz --out o", &["unlabelled.npz: has no array `labels`", "it has embeddings.npy"]),
    ("fit cut.npz --out o", &["cut.npz: damaged zip archive", "the file is cut short"]),
    (
        "fit strange.npy --taxonomy kinds.csv --out o",
        &["classes of strange.npy are not in the taxonomy kinds.csv", "`Kiwi`"],
    ),
    // What to write.
    ("fit x.npy --out .", &[".: it is a directory; name a file"]),
    ("fit x.npy --out mine.txt", &["mine.txt: it exists already; name another file, or pass --force"]),
    ("fit x.npy --out nowhere/o", &["nowhere/o: there is no folder nowhere; make it first"]),
    ("fit x.npy --out o --report mine.txt", &["mine.txt: it exists already"]),
    ("fit x.npy --out o --report o", &["o: --out and --report name the same file; name two"]),
    ("fit x.npy --out o --report photos", &["photos: it is a directory"]),
    // Testing.
    ("test nowhere more", &["nowhere"]),
    ("test shop.safetensors nowhere", &["source `nowhere`: there is no such file or folder"]),
    ("test shop.safetensors empty", &["empty: it is empty"]),
    ("test shop.safetensors flat", &["photos lie in no folder"]),
    ("test shop.safetensors x.npy", &["the embedding has 8 numbers; the model's encoder gives 12"]),
    ("test m.safetensors more", &["it is an image; this model takes embeddings of 8 numbers"]),
    ("test m.safetensors narrow.npy", &["the embedding has 5 numbers; this model takes 8"]),
    ("test m.safetensors unlabelled.npy", &["no labels beside it"]),
    (
        "test m.safetensors strange.npy",
        &["classes of strange.npy are not in the model m.safetensors", "`Kiwi`"],
    ),
    ("test m.safetensors x.npy --csv mine.txt", &["mine.txt: it exists already"]),
    ("test m.safetensors x.npy --csv r --report r", &["r: --csv and --report name the same file"]),
    (
        "test text.safetensors more",
        &["text.safetensors: it is no model of gpn's, or a damaged one", "`gpn fit`"],
    ),
    ("test cut.safetensors more", &["cut.safetensors: it is no model of gpn's, or a damaged one"]),
    ("test photos more", &["photos: it is no run and holds no model.safetensors"]),
    ("test lite0.onnx more", &["lite0.onnx: it is no model of gpn's"]),
    (
        "test shop.safetensors more --encoder map.onnx",
        &["this is not the encoder that the model was made with", "its content differs"],
    ),
    (
        "test shop.safetensors more --encoder lite0.onnx --encoder-mean 1,2,3",
        &["the setting `mean` is [1.0,2.0,3.0]"],
    ),
    // Teaching.
    ("teach shop.safetensors --class Kiwi nowhere.jpg --out o", &["nowhere.jpg: cannot open"]),
    (
        "teach shop.safetensors --class Kiwi text.jpg --out o",
        &["text.jpg: broken image: its content is none of JPEG"],
    ),
    ("teach shop.safetensors --class Kiwi cut.jpg --out o", &["cut.jpg: broken image", "cut short"]),
    (
        "teach shop.safetensors --class Kiwi empty.jpg --out o",
        &["empty.jpg: broken image: the file is empty"],
    ),
    (
        "teach shop.safetensors --class Kiwi photo.heic --out o",
        &["is a HEIC photo (iPhone), which is not read; convert to JPEG"],
    ),
    ("teach shop.safetensors --class Kiwi empty --out o", &["empty: there are no images in it"]),
    (
        "teach shop.safetensors --class Kiwi x.npy --out o",
        &["the embedding has 8 numbers; the model's encoder gives 12"],
    ),
    (
        "teach shop.safetensors --class Kiwi --parent Citrsu photo.jpg --out o",
        &["parent `Citrsu`: there is no such class; did you mean `Citrus`?"],
    ),
    (
        "teach shop.safetensors --class Gala photo.jpg --out o",
        &["class `Gala`: it is already taught", "--more adds to them"],
    ),
    ("teach shop.safetensors --class Kiwi --parent Kiwi photo.jpg --out o", &["class `Kiwi`"]),
    (
        "teach shop.safetensors --class Kiwi --taxonomy kinds.csv photo.jpg --out o",
        &["neither the model nor the given class graph has it"],
    ),
    ("teach shop.safetensors --class Kiwi photo.jpg --out mine.txt", &["mine.txt: it exists already"]),
    ("teach shop.safetensors --class= photo.jpg --out o", &["a class needs a name of visible characters"]),
    (
        "teach shop.safetensors --classes-from empty --out o",
        &["empty: there are no folders in it; one for each class is expected"],
    ),
    (
        "teach m.safetensors --class Kiwi photo.jpg --out o",
        &["it is an image; this model takes embeddings of 8 numbers"],
    ),
    (
        "teach m.safetensors --class Kiwi narrow.npy --out o",
        &["the embedding has 5 numbers; this model takes 8"],
    ),
    // Changes.
    (
        "forget shop.safetensors --class Kiwi --out o",
        &["class `Kiwi`: there is no such class; `gpn classes MODEL` lists them"],
    ),
    (
        "forget shop.safetensors --class Fruit --out o",
        &["class `Fruit`: it has no samples that could be forgotten"],
    ),
    (
        "move shop.safetensors --class Fruit --below Apple --out o",
        &["class `Fruit`: `Apple` is below it; name a class that is not"],
    ),
    ("move shop.safetensors --class Gala --below Gala --out o", &["it cannot be below itself"]),
    ("move shop.safetensors --class Gala --below Kiwi --out o", &["class `Kiwi`: there is no such class"]),
    ("rename shop.safetensors --class Gala --to= --out o", &["a class needs a name of visible characters"]),
    // Predicting.
    (
        "predict shop.safetensors nowhere.jpg",
        &["nowhere.jpg: cannot open", "1 of 1 samples could not be read"],
    ),
    ("predict shop.safetensors text.jpg", &["text.jpg: broken image"]),
    ("predict shop.safetensors cut.jpg", &["cut.jpg: broken image"]),
    ("predict shop.safetensors photo.heic", &["is a HEIC photo (iPhone)"]),
    ("predict shop.safetensors x.npy", &["the embedding has 8 numbers; the model's encoder gives 12"]),
    ("predict shop.safetensors empty", &["empty: there are no images in it"]),
    ("predict m.safetensors photo.jpg", &["it is an image; this model takes embeddings of 8 numbers"]),
    ("predict m.safetensors narrow.npy", &["the embedding has 5 numbers; this model takes 8"]),
    ("predict m.safetensors x.npy --among Gala,Kiwi", &["class `Kiwi`: there is no such class"]),
    (
        "predict m.safetensors x.npy --below Gala",
        &["class `Gala`: the model has no trained or taught class below it"],
    ),
    ("predict m.safetensors x.npy --taught", &["there is no class to choose from"]),
    (
        "predict m.safetensors x.npy --explain --format csv",
        &["--explain has no place in CSV; use --format text or json"],
    ),
    ("predict photo.jpg shop.safetensors", &["photo.jpg: it is no model of gpn's"]),
    // Embeddings.
    ("embed lite0.onnx nowhere --out e.npy", &["nowhere: cannot open"]),
    ("embed lite0.onnx empty --out e.npy", &["empty: there are no images in it"]),
    ("embed lite0.onnx texts --out e.npy", &["nothing was written", "its content is none of JPEG"]),
    ("embed lite0.onnx photos --out e.csv", &["a file that ends in .npy, .npz or .parquet"]),
    (
        "embed minilm kinds.csv --out e.npy",
        &["kinds.csv: there is no column `text`; there are child, parent"],
    ),
    ("embed minilm photos --out e.npy", &["photos: it is a directory; name a text file"]),
    (
        "embed empty photos --out e.npy",
        &["empty: it is neither a text encoder (no tokenizer.json) nor a run directory"],
    ),
    // Benchmarks.
    (
        "data build --source nowhere --taxonomy kinds.csv --out b",
        &["source `nowhere`: there is no such file or folder"],
    ),
    ("data build --source photos --taxonomy swapped.csv --out b", &["child and parent seem to be exchanged"]),
    ("data build --source photos --taxonomy cycle.csv --out b", &["the class graph has a cycle"]),
    ("data build --source photos --taxonomy misspelt.csv --out b", &["did you mean `Galla`?"]),
    (
        "data build --source x.npy --out b",
        &["x.npy brings no class graph of its own; name one with --taxonomy"],
    ),
    (
        "data build --source photos --taxonomy kinds.csv --out photos",
        &["photos: it exists and is no benchmark"],
    ),
];

/// What ends with exit code 2.
const WRONG_USAGE: &[(&str, &str)] = &[
    ("fit x.npy", "--out <MODEL>"),
    ("fit --out o", "<WHAT>"),
    ("fit photos --encoder lite0.onnx --encoder-mean 1,2 --out o", "give three numbers, such as"),
    ("fit photos --episodes 0 --out o", "give a whole number of at least 1"),
    ("fit x.npy --taxonmy kinds.csv --out o", "'--taxonomy'"),
    ("teach shop.safetensors --class Kiwi photo.jpg", "--out <MODEL>"),
    ("teach shop.safetensors --class Kiwi --more --replace photo.jpg --out o", "cannot be used with"),
    ("move shop.safetensors --class Gala --out o", "--below <CLASS>"),
    ("predict m.safetensors", "<FILES>"),
    ("predict m.safetensors x.npy --confidence 2", "give a share between 0 and 1"),
    ("predict m.safetensors x.npy --level 0", "give a number of at least 1, `all` or `leaves`"),
    ("predict m.safetensors x.npy --top 0", "0 is not in 1.."),
    (
        "data build --source photos --taxonomy kinds.csv --out b --train-share 2",
        "give a share between 0 and 1",
    ),
];

const LEAVES: [&str; 5] = ["Gala", "Granny", "Lemon", "Orange", "Leek"];

/// An array of NumPy's form from its type, shape and bytes.
fn npy(path: &Path, descr: &str, shape: &str, bytes: &[u8]) {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = (header.len() as u16).to_le_bytes();
    fs::write(path, [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), bytes].concat()).unwrap();
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Tables of 30 embeddings of 8 values, sound and spoiled.
fn tables(folder: &Path) {
    let at = |name: &str| folder.join(name);
    let value = |row: usize, column: usize| {
        let noise = ((row * 31 + column * 17) % 13) as f32 / 20.0;
        if row / 6 == column { 4.0 + noise } else { noise }
    };
    let rows: Vec<f32> = (0..30).flat_map(|row| (0..8).map(move |column| value(row, column))).collect();
    let labels: Vec<&str> = (0..30).map(|row| LEAVES[row / 6]).collect();
    let labelled = |name: &str, labels: &[&str]| {
        fs::write(at(&format!("{name}_labels.txt")), labels.join("\n") + "\n").unwrap();
    };
    let spoiled = |wrong: f32| {
        let mut rows = rows.clone();
        rows[8 + 2] = wrong;
        bytes(&rows)
    };
    npy(&at("x.npy"), "<f4", "30, 8", &bytes(&rows));
    npy(&at("nan.npy"), "<f4", "30, 8", &spoiled(f32::NAN));
    npy(&at("infinite.npy"), "<f4", "30, 8", &spoiled(f32::INFINITY));
    npy(&at("unlabelled.npy"), "<f4", "30, 8", &bytes(&rows));
    npy(&at("cube.npy"), "<f4", "30, 2, 4", &bytes(&rows));
    npy(&at("integers.npy"), "<i4", "30, 8", &vec![0; 30 * 8 * 4]);
    npy(&at("no-rows.npy"), "<f4", "0, 8", &[]);
    npy(&at("no-columns.npy"), "<f4", "30, 0", &[]);
    npy(&at("narrow.npy"), "<f4", "30, 5", &bytes(&rows[..150]));
    for name in ["fewer-labels", "one-label", "strange"] {
        npy(&at(&format!("{name}.npy")), "<f4", "30, 8", &bytes(&rows));
    }
    for name in ["x", "nan", "infinite", "cube", "integers", "no-columns", "narrow"] {
        labelled(name, &labels);
    }
    fs::write(at("no-rows_labels.txt"), "").unwrap();
    labelled("fewer-labels", &labels[..27]);
    labelled("one-label", &["Gala"; 30]);
    labelled("strange", &["Kiwi"; 30]);
    let whole = fs::read(at("x.npy")).unwrap();
    fs::write(at("cut.npy"), &whole[..whole.len() / 2]).unwrap();
    fs::copy(at("x_labels.txt"), at("cut_labels.txt")).unwrap();
    fs::write(at("text.npy"), "hello").unwrap();
}

/// A folder with two sound models and everything that goes wrong.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    world::encoders(folder.path());
    fs::copy(world::fixture("map.onnx"), at("map.onnx")).unwrap();
    let above = ["Fruit/Apple", "Fruit/Apple", "Fruit/Citrus", "Fruit/Citrus", "."];
    for (class, (leaf, above)) in LEAVES.iter().zip(above).enumerate() {
        let colour = [40 * class as u8, 200 - 40 * class as u8, 90];
        for number in 0..4 {
            world::picture(
                &at("photos").join(above).join(leaf).join(format!("{number}.jpg")),
                colour,
                number,
            );
        }
        world::picture(&at("more").join(above).join(leaf).join("9.jpg"), colour, 9);
    }
    for name in [
        "single/a/1.jpg",
        "single/b/1.jpg",
        "photo.jpg",
        "flat/a.jpg",
        "flat/b.jpg",
        "one-class/Leek/a.jpg",
        "one-class/Leek/b.jpg",
    ] {
        world::picture(&at(name), [9, 99, 199], name.len() as u32);
    }
    let heic = [&b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"[..], &[0; 100]].concat();
    for name in ["empty", "texts/a", "texts/b", "heic/a", "heic/b", "notes/a"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    for (name, content) in [
        ("texts/a/1.jpg", &b"hello, no photo"[..]),
        ("texts/b/1.jpg", b"hello, no photo"),
        ("notes/a/1.txt", b"hello"),
        ("heic/a/1.heic", &heic),
        ("heic/b/1.heic", &heic),
        ("heic/a/2.jpg", &heic),
        ("heic/b/2.jpg", &heic),
        ("photo.heic", &heic),
        ("text.jpg", b"hello"),
        ("empty.jpg", b""),
        ("text.onnx", b"hello"),
        ("text.safetensors", b"hello"),
        ("mine.txt", b"mine"),
        ("kinds.xlsx", b"PK\x03\x04 a table"),
        ("kinds.csv", b"child,parent\nGala,Apple\nGranny,Apple\nLemon,Citrus\nOrange,Citrus\nApple,Fruit\nCitrus,Fruit\nFruit,food\nLeek,food\n"),
        ("swapped.csv", b"child,parent\nApple,Gala\nApple,Granny\nCitrus,Lemon\nCitrus,Orange\nFruit,Apple\nFruit,Citrus\nfood,Fruit\nfood,Leek\n"),
        ("cycle.csv", b"child,parent\nGala,Apple\nApple,Fruit\nFruit,Gala\n"),
        ("partial.csv", b"child,parent\nGala,Apple\nApple,Fruit\n"),
        ("misspelt.csv", b"child,parent\nGalla,Apple\nGranny,Apple\nLemon,Citrus\nOrange,Citrus\nLeek,food\nApple,food\nCitrus,food\n"),
        ("self.csv", b"child,parent\nGala,Gala\n"),
        ("empty.csv", b""),
        ("one-column.csv", b"child\nGala\nGranny\n"),
    ] {
        fs::write(at(name), content).unwrap();
    }
    tables(folder.path());
    success(
        folder.path(),
        &["fit", "photos", "--encoder=lite0.onnx", "--no-cache", "--out=shop.safetensors"],
    );
    success(folder.path(), &["fit", "x.npy", "--taxonomy=kinds.csv", "--out=m.safetensors"]);
    success(folder.path(), &["embed", "lite0.onnx", "photos", "--no-cache", "--out=all.npz"]);
    success(folder.path(), &["embed", "lite0.onnx", "photo.jpg", "--no-cache", "--out=unlabelled.npz"]);
    let jpeg = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpn-data/tests/fixtures/images/colour.jpg");
    for (whole, cut) in [
        (at("lite0.onnx"), "cut.onnx"),
        (at("all.npz"), "cut.npz"),
        (at("shop.safetensors"), "cut.safetensors"),
        (jpeg, "cut.jpg"),
    ] {
        let whole = fs::read(whole).unwrap();
        fs::write(at(cut), &whole[..whole.len() / 2]).unwrap();
    }
    folder
}

/// Every file with its size, and every folder.
fn listing(folder: &Path, into: &mut Vec<(String, u64)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let size = entry.metadata().unwrap().len();
        into.push((entry.path().display().to_string(), if entry.path().is_dir() { 0 } else { size }));
        if entry.path().is_dir() {
            listing(&entry.path(), into);
        }
    }
    into.sort();
}

#[test]
fn wrong_inputs_are_answered_with_what_to_do() {
    let folder = folder();
    let cache = tempfile::tempdir().unwrap();
    let content = || {
        let mut files = Vec::new();
        listing(folder.path(), &mut files);
        files
    };
    let before = content();
    let mut wrong = Vec::new();
    let fails = FAILS.iter().map(|(line, expected)| (*line, *expected, 1));
    let usage = WRONG_USAGE.iter().map(|(line, expected)| (*line, std::slice::from_ref(expected), 2));
    for (line, expected, code) in fails.chain(usage) {
        let words: Vec<&str> = line.split(' ').collect();
        let output = command(folder.path(), &words).env("XDG_CACHE_HOME", cache.path()).output().unwrap();
        let message = stderr(&output);
        let errors = message.lines().filter(|text| text.starts_with("error:")).count();
        let is_fault = message.contains("internal fault") || message.contains("panicked");
        if output.status.code() != Some(code)
            || errors != 1
            || is_fault
            || !expected.iter().all(|words| message.contains(words))
        {
            wrong.push(format!(
                "gpn {line}\n  exit code {:?}, not {code}; expected {expected:?}\n  {message}",
                output.status.code()
            ));
        }
        let after = content();
        if after != before {
            let left: Vec<_> = after.iter().filter(|file| !before.contains(file)).collect();
            wrong.push(format!("gpn {line}\n  leaves behind or changes {left:?}"));
            break;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        FAILS.len() + WRONG_USAGE.len(),
        wrong.join("\n")
    );
}

/// A sample that cannot be read is named, and the rest goes on.
#[test]
fn broken_samples_are_left_out_by_name() {
    let folder = folder();
    fs::copy(folder.path().join("text.jpg"), folder.path().join("photos/Leek/broken.jpg")).unwrap();
    fs::copy(folder.path().join("photo.heic"), folder.path().join("photos/Leek/new.heic")).unwrap();
    for (line, named) in [
        ("fit photos --encoder lite0.onnx --no-cache --out o", "1 sample is left out"),
        ("test shop.safetensors photos --no-cache", "1 sample is left out"),
        ("teach shop.safetensors --class Leek --more photos/Leek --no-cache --out o2", "left out"),
    ] {
        let output = command(folder.path(), &line.split(' ').collect::<Vec<_>>()).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {message}");
        assert!(message.contains(named) && message.contains("broken.jpg"), "{line}: {message}");
        assert!(message.contains("HEIC"), "{line}: {message}");
    }
}
