//! What people give by mistake, and what they are told: each input with the words that its message must have.

mod made;

use std::fs;
use std::path::Path;

use gpn_data::source::left_out;
use gpn_data::{SampleKind, Source, SourceSpec};

const HEIC: &[u8] = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic";
const TIFF: &[u8] = b"II\x2a\0\x08\0\0\0";

/// Opens what `given` names below `folder`, reads all samples, and tells the error, or else the notes and what was left out.
fn told(folder: &Path, given: &str) -> String {
    let named = match given.split_once(':') {
        Some((kind, path)) if !kind.contains('/') => format!("{kind}:{}", folder.join(path).display()),
        _ => folder.join(given).display().to_string(),
    };
    let spec: SourceSpec = match named.parse() {
        Ok(spec) => spec,
        Err(error) => return error.to_string(),
    };
    let source = match gpn_data::open(&spec) {
        Ok(source) => source,
        Err(error) => return error.to_string(),
    };
    let mut messages: Vec<String> = source.notes().iter().map(ToString::to_string).collect();
    messages.extend(left_out(&read_all(&*source)));
    assert!(!messages.is_empty(), "{given}: nothing is told");
    messages.join("\n")
}

fn read_all(source: &dyn Source) -> Vec<gpn_data::DataError> {
    let mut row = match source.kind() {
        SampleKind::Embeddings { dim } => vec![0.0; dim],
        SampleKind::Images => Vec::new(),
    };
    let all = 0..source.samples().len();
    let read = all.map(|index| match source.kind() {
        SampleKind::Images => source.image(index).map(drop),
        SampleKind::Embeddings { .. } => source.embedding(index, &mut row),
    });
    read.filter_map(Result::err).collect()
}

/// A table of 2 rows of 2 floats, and its labels.
fn table() -> Vec<u8> {
    made::npy("<f4", "(2, 2)", &made::floats(&[1.0, 2.0, 3.0, 4.0]))
}

fn npz(embeddings: Vec<u8>, labels: Option<Vec<u8>>) -> Vec<u8> {
    let mut files = vec![("embeddings.npy".to_owned(), embeddings)];
    files.extend(labels.map(|labels| ("labels.npy".to_owned(), labels)));
    made::zip(&files)
}

fn labels(texts: &[&str]) -> Vec<u8> {
    made::npy("<U3", &format!("({},)", texts.len()), &made::unicode(texts, 3))
}

fn photos() -> Vec<u8> {
    made::tar(&vec![
        ("a/1.png".to_owned(), made::png([1, 2, 3])),
        ("b/1.png".to_owned(), made::png([3, 2, 1])),
    ])
}

/// (files, what is given, words of the message)
fn mistakes() -> Vec<(made::Files, &'static str, Vec<&'static str>)> {
    let mut cases: Vec<(made::Files, &'static str, Vec<&'static str>)> = Vec::new();
    let mut case = |files: &[(&str, Vec<u8>)], given: &'static str, words: &[&'static str]| {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        cases.push((files, given, words.to_vec()));
    };
    let png = || made::png([9, 9, 9]);
    let jpeg = || made::jpeg([9, 9, 9]);

    // Names.
    case(
        &[("photos/a/1.png", png())],
        "photo",
        &["there is no such file or folder", "did you mean", "photos`?"],
    );
    case(
        &[],
        "nothing",
        &["there is no such file or folder", "one folder of photos per class", ".npz", "KIND:PATH"],
    );
    case(&[("p/a/1.png", png())], "photo:p", &["unknown kind `photo`", "did you mean `photos`?"]);
    case(
        &[("p/a/1.png", png())],
        "pictures-of-mine:p",
        &["unknown kind `pictures-of-mine`", "photos, imagefolder"],
    );
    case(&[], "photos:nothing", &["nothing: cannot open", "No such file"]);

    // Folders.
    case(&[("p/.hidden", vec![])], "p", &["p: it is empty", "one folder of photos per class"]);
    case(
        &[("p/a/notes.txt", b"x".to_vec())],
        "p",
        &["no photos found", "none a JPEG, PNG, WebP, BMP or GIF"],
    );
    case(
        &[("p/a/b/list.csv", b"x".to_vec()), ("p/a/c.doc", b"x".to_vec())],
        "p",
        &["no photos found: none of its 2 files is a JPEG", "one folder of photos per class"],
    );
    case(&[("p/1.png", png()), ("p/2.png", png())], "p", &["its 2 photos lie in no folder", "named like it"]);
    case(
        &[("p/1.png", png()), ("p/a/2.png", png()), ("p/b/2.png", png())],
        "p",
        &["1 photo lies outside of all folders", "left out: 1.png", "put photos into a folder"],
    );
    case(
        &[("p/Fruit/1.png", png()), ("p/Fruit/Apple/1.png", png()), ("p/Nut/1.png", png())],
        "p",
        &["1 photo lies beside the folders of narrower classes", "belongs to the wider class itself: Fruit"],
    );
    case(
        &[("p/train/a/1.png", png()), ("p/test/a/2.png", png()), ("p/train/b/3.png", png())],
        "p",
        &["the folders test (1), train (2) are parts of a data set", "name one of the folders"],
    );
    case(&[("p/x.npy", table())], "p", &["a folder with a table of embeddings", "name the table", "x.npy"]);
    case(&[("p/benchmark.toml", vec![])], "p", &["it is a benchmark directory"]);
    case(&[("p/a/1.png", png())], "tiny-imagenet:p", &["no images found", "train/<wnid>/images/*.JPEG"]);
    case(&[("p/a/1.png", png())], "cifar100:p", &["train.bin is missing"]);
    case(&[("p/a/1.png", png())], "embeddings:p", &["is a folder; name the table of embeddings in it"]);

    // Photos that are not what they seem.
    case(
        &[("p/a/1.heic", HEIC.to_vec()), ("p/a/2.HEIC", HEIC.to_vec()), ("p/b/3.png", png())],
        "p",
        &[
            "2 HEIC photos (iPhone) are not read and left out: a/1.heic, a/2.HEIC",
            "convert to JPEG",
            "heif-convert",
        ],
    );
    case(
        &[("p/a/1.jpg", HEIC.to_vec()), ("p/a/2.jpg", HEIC.to_vec()), ("p/b/3.png", png())],
        "p",
        &["2 HEIC photos (iPhone) are not read and left out: a/1.jpg, a/2.jpg", "convert to JPEG"],
    );
    case(
        &[("p/a/1.heic", HEIC.to_vec())],
        "p",
        &["no photo can be read: a HEIC photo (iPhone)", "convert to JPEG"],
    );
    case(
        &[("p/a/1.heic", HEIC.to_vec()), ("p/b/1.png", png())],
        "imagefolder:p",
        &["a HEIC photo (iPhone) is not read and left out: a/1.heic", "convert to JPEG"],
    );
    case(
        &[("p/a/1.tiff", TIFF.to_vec()), ("p/b/1.png", png())],
        "p",
        &["a TIFF image", "a/1.tiff", "convert to PNG"],
    );
    case(
        &[("p/a/1.nef", TIFF.to_vec()), ("p/b/1.png", png())],
        "p",
        &["a camera's raw file", "export as JPEG"],
    );
    case(&[("p/a/1.pdf", b"%PDF-1.4".to_vec()), ("p/b/1.png", png())], "p", &["a PDF document", "as images"]);
    case(&[("p/a/1.svg", b"<svg/>".to_vec()), ("p/b/1.png", png())], "p", &["an SVG drawing", "as PNG"]);
    case(
        &[("p/a/1.mov", b"\0\0\0\x14ftypqt  ".to_vec()), ("p/b/1.png", png())],
        "p",
        &["a video is not read", "take frames out"],
    );
    case(
        &[("p/a/1.jpg", b"<!DOCTYPE html><html>404".to_vec()), ("p/b/1.png", png())],
        "p",
        &["a web page", "a/1.jpg", "fetch the picture again"],
    );
    case(
        &[("p/a/1.jpg", b"version https://git-lfs.github.com/spec/v1".to_vec()), ("p/b/1.png", png())],
        "p",
        &["a pointer of Git LFS", "git lfs pull"],
    );
    case(&[("p/a/1.jpg", vec![]), ("p/b/1.png", png())], "p", &["a/1.jpg: broken image: the file is empty"]);
    let cut = jpeg()[..jpeg().len() - 20].to_vec();
    case(&[("p/a/1.jpg", cut), ("p/b/1.png", png())], "p", &["a/1.jpg: broken image", "cut short"]);
    case(
        &[("p/a/1.jpg", b"hello".to_vec()), ("p/b/1.png", png())],
        "p",
        &["none of JPEG, PNG, WebP, BMP, GIF"],
    );

    // Files in place of folders, and archives.
    case(&[("x.jpg", jpeg())], "x.jpg", &["a single image", "name the folder"]);
    case(&[("x.heic", HEIC.to_vec())], "x.heic", &["a HEIC photo (iPhone)", "a folder or an archive"]);
    case(&[("x.tar", photos()[..700].to_vec())], "x.tar", &["cut short"]);
    case(&[("x.tar.gz", made::gzip(&photos())[..60].to_vec())], "x.tar.gz", &["x.tar.gz: damaged gzip data"]);
    let zip = made::zip(&vec![("a/1.png".to_owned(), png())]);
    case(&[("x.zip", zip[..zip.len() - 30].to_vec())], "x.zip", &["damaged zip archive", "cut short"]);
    case(&[("x.zip", made::zip(&vec![("a/x.txt".to_owned(), vec![1])]))], "x.zip", &["no photos found"]);
    case(&[("x.rar", b"Rar!\x1a\x07".to_vec())], "x.rar", &["a RAR archive; unpack it"]);
    case(&[("x.7z", b"7z\xbc\xaf\x27\x1c".to_vec())], "x.7z", &["a 7z archive; unpack it"]);
    case(&[("x.tar.xz", b"\xfd7zXZ\0".to_vec())], "x.tar.xz", &["bzip2, xz or zstd", "tar.gz or zip"]);
    case(&[("x", vec![])], "x", &["an empty file"]);
    let workbook =
        made::zip(&vec![("[Content_Types].xml".to_owned(), vec![1]), ("xl/a.xml".to_owned(), vec![1])]);
    case(&[("x.xlsx", workbook)], "x.xlsx", &["a document of an office program"]);

    // Tables of embeddings.
    case(&[("x.csv", b"1,2,cat\n".to_vec())], "x.csv", &["a text table", "numpy.savez"]);
    case(&[("x.pkl", b"\x80\x04\x95".to_vec())], "x.pkl", &["a pickle", "numpy.savez"]);
    case(&[("x.h5", b"\x89HDF\r\n\x1a\n".to_vec())], "x.h5", &["an HDF5 file", "numpy.savez"]);
    let torch = made::zip(&vec![("archive/data.pkl".to_owned(), vec![1])]);
    case(&[("x.pt", torch)], "x.pt", &["a file of PyTorch", "numpy.savez"]);
    case(&[("x.npy", table())], "x.npy", &["x.npy: no labels beside it", "x_labels.npy, .csv or .txt"]);
    case(
        &[("x.npy", table()), ("x_labels.txt", b"cat\n".to_vec())],
        "x.npy",
        &["there are 2 embeddings but 1 labels", "every row needs one label"],
    );
    case(
        &[("x.npy", table()), ("x_labels.txt", b"cat\n\n".to_vec())],
        "x.npy",
        &["row 1 has an empty label"],
    );
    case(
        &[("x.npy", table()), ("x_labels.csv", b"0,cat\n1,dog\n".to_vec())],
        "x.npy",
        &["x_labels.csv: has 2 columns; one label per line"],
    );
    case(
        &[("x.npz", npz(table(), None))],
        "x.npz",
        &["has no array `labels` or `classes`", "it has embeddings.npy"],
    );
    case(
        &[("x.npz", npz(table(), Some(labels(&["cat"]))))],
        "x.npz",
        &["there are 2 embeddings but 1 labels"],
    );
    let flat = made::npy("<f4", "(4,)", &made::floats(&[1.0; 4]));
    case(
        &[("x.npz", npz(flat, Some(labels(&["cat"]))))],
        "x.npz",
        &["floats of shape [N, D]", "not <f4 of shape [4]"],
    );
    let integers = made::npy("<i8", "(1, 1)", &[1, 0, 0, 0, 0, 0, 0, 0]);
    case(
        &[("x.npz", npz(integers, Some(labels(&["cat"]))))],
        "x.npz",
        &["must be floats", "not <i8", "astype"],
    );
    let objects = made::npy("|O", "(2, 2)", b"\x80\x04");
    case(
        &[("x.npz", npz(objects, Some(labels(&["a", "b"]))))],
        "x.npz",
        &["Python objects", "astype(\"float32\")"],
    );
    case(
        &[("x.npz", npz(table(), Some(made::npy("|O", "(2,)", b"\x80\x04"))))],
        "x.npz",
        &["labels.npy", "Python objects", "astype(str)"],
    );
    let nan = made::npy("<f4", "(2, 2)", &made::floats(&[1.0, 2.0, f32::NAN, 4.0]));
    case(
        &[("x.npz", npz(nan, Some(labels(&["cat", "dog"]))))],
        "x.npz",
        &["x.npz: row 1 (class dog), column 0 is NaN", "mend or remove the row"],
    );
    case(
        &[("x.npz", npz(made::npy("<f4", "(0, 2)", &[]), Some(labels(&[]))))],
        "x.npz",
        &["there are 0 embeddings of 2 numbers"],
    );
    case(&[("x.npy", table()[..70].to_vec())], "x.npy", &["not a readable .npy file"]);
    case(
        &[("x.npy", b"1.0 2.0\n".to_vec())],
        "x.npy",
        &["not a readable .npy file", "the mark of the format"],
    );
    let parquet = made::parquet(&[(vec![1.0], "cat")]);
    let renamed = String::from_utf8_lossy(&parquet).contains("embedding");
    assert!(renamed, "the table names its column");
    let other_column = replaced(&parquet, b"embedding", b"my_vector");
    case(
        &[("x.parquet", other_column)],
        "x.parquet",
        &["there is no column `embedding`", "my_vector, class_name"],
    );
    let unlabelled = replaced(&parquet, b"class_name", b"other_name");
    case(&[("x.parquet", unlabelled)], "x.parquet", &["there is no column `class_name`", "other_name"]);
    case(&[("x.parquet", parquet[..parquet.len() / 2].to_vec())], "x.parquet", &["damaged Parquet file"]);
    cases
}

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for at in 0..=out.len() - old.len() {
        if out[at..].starts_with(old) {
            out[at..at + new.len()].copy_from_slice(new);
        }
    }
    out
}

#[test]
fn every_mistake_is_told_in_words_that_help() {
    let cases = mistakes();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    let mut failed = Vec::new();
    for (number, (files, given, words)) in cases.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        made::directory(folder.path(), files);
        let message = told(folder.path(), given);
        if !words.iter().all(|word| message.contains(word)) {
            failed.push(format!("{number}: {given}: {words:?} in: {message}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_kind_is_guessed_for_what_people_have() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let photos = vec![("a/1.png".to_owned(), made::png([1, 2, 3]))];
    made::directory(&root.join("p:with:colons"), &photos);
    made::directory(&root.join("plain"), &photos);
    made::directory(&root.join("tiny"), &made::tiny_imagenet());
    made::directory(&root.join("cifar"), &made::cifar100());
    made::directory(&root.join("tiered"), &made::tiered_imagenet());
    fs::write(root.join("p.tar"), made::tar(&photos)).unwrap();
    fs::write(root.join("p.zip"), made::zip(&photos)).unwrap();
    fs::write(root.join("p.tgz"), made::gzip(&made::tar(&photos))).unwrap();
    fs::write(root.join("tiny.zip"), made::zip(&made::tiny_imagenet())).unwrap();
    fs::write(root.join("cifar.tar.gz"), made::gzip(&made::tar(&made::cifar100()))).unwrap();
    fs::write(root.join("vectors"), npz(table(), Some(labels(&["a", "b"])))).unwrap();
    fs::write(root.join("t.parquet"), made::parquet(&[(vec![1.0], "cat")])).unwrap();
    for (name, word) in [
        ("p:with:colons", "photos"),
        ("plain", "photos"),
        ("p.tar", "photos"),
        ("p.zip", "photos"),
        ("p.tgz", "photos"),
        ("tiny", "tiny-imagenet"),
        ("tiny/tiny-imagenet-200", "tiny-imagenet"),
        ("tiny.zip", "tiny-imagenet"),
        ("cifar", "cifar100"),
        ("cifar.tar.gz", "cifar100"),
        ("tiered", "tiered-imagenet"),
        ("vectors", "embeddings"),
        ("t.parquet", "embeddings"),
    ] {
        let path = root.join(name);
        let spec: SourceSpec = path.to_str().unwrap().parse().unwrap();
        assert_eq!(spec.kind.word(), word, "{name}");
        assert_eq!(spec.to_string(), format!("{word}:{}", path.display()));
        let source = gpn_data::open(&spec).unwrap();
        assert!(!source.samples().is_empty(), "{name}");
        // What Display writes is read again.
        assert_eq!(spec.to_string().parse::<SourceSpec>().unwrap(), spec);
    }
}
