//! Many samples, shard by shard.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpn::encode::EncoderConfig;
use gpn::{ErrorKind, SampleEncoder, Shard, ShardDone, ShardRequest, StopHandle, Watch, encode_shard};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpn-encode/tests/fixtures").join(name)
}

fn encoder() -> SampleEncoder {
    SampleEncoder::open(&fixture("conv.onnx"), &EncoderConfig::default(), None).unwrap()
}

/// A folder with `photos/0.png ...`, one of them broken, and `list.txt` of all.
fn photos(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("photos")).unwrap();
    let mut list = String::new();
    for number in 0..count {
        let name = format!("photos/{number}.png");
        if number == 4 {
            fs::write(folder.path().join(&name), "no photo").unwrap();
        } else {
            fs::copy(fixture(&format!("photo_{}.png", number % 4)), folder.path().join(&name)).unwrap();
        }
        list.extend([name.as_str(), if number % 3 == 0 { "\n\n" } else { "\n" }]);
    }
    fs::write(folder.path().join("list.txt"), list).unwrap();
    folder
}

fn run(inputs: &[PathBuf], shard: &str, out: &Path) -> gpn::Result<ShardDone> {
    let request = ShardRequest { inputs, shard: shard.parse().unwrap(), out, replace: false };
    encode_shard(&encoder(), &request, &Watch::default())
}

/// The rows of all files in a folder as text, in the order of the files.
fn rows(folder: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let open = |path: PathBuf| SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let read = |path| open(path).into_iter().map(|row| row.unwrap().to_string()).collect::<Vec<_>>();
    files.into_iter().flat_map(read).collect()
}

/// Writes a table of one column of bytes or text, and reads nothing back.
fn table(path: &Path, column: &str, values: &[Option<Vec<u8>>], group: usize) {
    let schema = parse_message_type(&format!("message table {{ {column} }}")).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    for values in values.chunks(group) {
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<ByteArray> = values.iter().flatten().map(|value| value.clone().into()).collect();
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn shards_hold_every_row_once_in_order_however_many_there_are() {
    let folder = photos(11);
    let inputs = [folder.path().join("list.txt")];
    let whole = run(&inputs, "0/1", &folder.path().join("1")).unwrap();
    assert_eq!((whole.rows, whole.failed, whole.was_done), (11, 1, false));
    assert!(whole.first_error.unwrap().contains("photos/4.png"));
    let expected = rows(&folder.path().join("1"));
    assert_eq!(expected.len(), 11);
    for (number, row) in expected.iter().enumerate() {
        assert!(
            row.starts_with(&format!("{{row: {number}, file: \"photos/{number}.png\", embedding: ")),
            "{row}"
        );
        assert_eq!(row.contains("embedding: null"), number == 4, "{row}");
    }
    for count in [2, 4, 11, 13] {
        let out = folder.path().join(count.to_string());
        // The order in which shards are done does not matter.
        for index in (0..count).rev() {
            run(&inputs, &format!("{index}/{count}"), &out).unwrap();
        }
        assert_eq!(rows(&out), expected, "{count}");
    }
}

#[test]
fn a_finished_shard_is_left_alone_and_another_is_refused() {
    let folder = photos(6);
    let (inputs, out) = ([folder.path().join("list.txt")], folder.path().join("out"));
    let done = run(&inputs, "1/2", &out).unwrap();
    let bytes = fs::read(&done.file).unwrap();
    let before = fs::metadata(&done.file).unwrap().modified().unwrap();
    let again = run(&inputs, "1/2", &out).unwrap();
    assert!(again.was_done && again.rows == 3 && again.failed == done.failed);
    assert_eq!(fs::metadata(&done.file).unwrap().modified().unwrap(), before);
    // What a killed process leaves is in nobody's way.
    fs::write(out.join(".part-00000-of-00002.parquet.x.partial"), "half").unwrap();
    fs::remove_file(&done.file).unwrap();
    run(&inputs, "1/2", &out).unwrap();
    assert_eq!(fs::read(&done.file).unwrap(), bytes, "the same rows give the same bytes");
    // Another list, another division, a damaged file.
    let text = fs::read_to_string(&inputs[0]).unwrap();
    fs::write(&inputs[0], text.replace("photos/5.png", "photos/0.png")).unwrap();
    let message = run(&inputs, "1/2", &out).unwrap_err().to_string();
    assert!(message.contains("part-00001-of-00002.parquet: it was made from another model"), "{message}");
    let replace = ShardRequest { inputs: &inputs, shard: "1/2".parse().unwrap(), out: &out, replace: true };
    assert!(!encode_shard(&encoder(), &replace, &Watch::default()).unwrap().was_done);
    let message = run(&inputs, "1/3", &out).unwrap_err().to_string();
    assert!(message.contains("of a division into 2 shards and not 3"), "{message}");
    fs::write(&done.file, &bytes[..bytes.len() / 2]).unwrap();
    let message = run(&inputs, "1/2", &out).unwrap_err().to_string();
    assert!(message.contains("it is in the way and is no finished shard"), "{message}");
}

#[test]
fn tables_of_images_and_of_paths_and_folders_give_the_same_embeddings() {
    let folder = photos(9);
    let path = |name: &str| folder.path().join(name);
    let files: Vec<Vec<u8>> =
        (0..9).map(|number| fs::read(path(&format!("photos/{number}.png"))).unwrap()).collect();
    let images: Vec<Option<Vec<u8>>> = files.into_iter().map(Some).collect();
    table(&path("images.parquet"), "optional binary image;", &images, 4);
    let hugging = "optional group image { optional binary bytes; }";
    // The group is there for every row, so that a value has level 2; written by hand for one group.
    let schema = parse_message_type(&format!("message table {{ {hugging} }}")).unwrap();
    let file = fs::File::create(path("hub.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<ByteArray> = images.iter().flatten().map(|value| value.clone().into()).collect();
    column.typed::<ByteArrayType>().write_batch(&values, Some(&[2; 9]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let names: Vec<Option<Vec<u8>>> =
        (0..9).map(|number| Some(format!("photos/{number}.png").into_bytes())).collect();
    table(&path("paths.parquet"), "optional binary path (STRING);", &names, 5);
    let embedding =
        |row: &String| row.split_once("embedding: ").unwrap().1.split_once(", error").unwrap().0.to_owned();
    let found: Vec<Vec<String>> = ["list.txt", "images.parquet", "hub.parquet", "paths.parquet", "photos"]
        .iter()
        .enumerate()
        .map(|(number, input)| {
            let out = path(&format!("out{number}"));
            for shard in ["0/2", "1/2"] {
                run(&[path(input)], shard, &out).unwrap();
            }
            rows(&out).iter().map(embedding).collect()
        })
        .collect();
    assert_eq!(found[0].len(), 9);
    assert!(found[0][4] == "null" && found[0][3] != "null");
    assert!(found.iter().all(|embeddings| *embeddings == found[0]));
    // Several inputs count on from each other, and a value that is missing is an error of its row alone.
    table(&path("holes.parquet"), "optional binary image;", &[images[0].clone(), None], 9);
    let done = run(&[path("list.txt"), path("holes.parquet")], "1/2", &path("both")).unwrap();
    assert_eq!((done.rows, done.failed), (6, 1));
    let both = rows(&path("both"));
    assert!(
        both[4].starts_with("{row: 9, file: \"holes.parquet: row 0\"")
            && both[5].contains("the image is missing")
    );
    table(&path("no_path.parquet"), "optional binary path (STRING);", &[None], 1);
    run(&[path("no_path.parquet")], "0/1", &path("missing")).unwrap();
    assert!(rows(&path("missing"))[0].contains("the path is missing"));
}

#[test]
fn folders_of_equal_names_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (file, photo) in [
        ("one/x/0.png", "photo_0.png"),
        ("other_content/x/0.png", "photo_1.png"),
        ("other_name/y/0.png", "photo_0.png"),
        ("copy/x/0.png", "photo_0.png"),
    ] {
        fs::create_dir_all(path(file).parent().unwrap()).unwrap();
        fs::copy(fixture(photo), path(file)).unwrap();
    }
    let out = path("out");
    run(&[path("one")], "0/1", &out).unwrap();
    assert!(run(&[path("copy")], "0/1", &out).unwrap().was_done);
    for other in ["other_content", "other_name"] {
        let message = run(&[path(other)], "0/1", &out).unwrap_err().to_string();
        assert!(message.contains("it was made from another model, other inputs"), "{other}: {message}");
    }
}

#[test]
fn shards_of_other_inputs_are_not_written_side_by_side() {
    let folder = photos(6);
    let path = |name: &str| folder.path().join(name);
    fs::write(path("other.txt"), "photos/0.png\nphotos/1.png\n").unwrap();
    let (own, other, out) = ([path("list.txt")], [path("other.txt")], path("out"));
    let first = run(&own, "0/3", &out).unwrap();
    run(&own, "1/3", &out).unwrap();
    let error = run(&other, "2/3", &out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let message = error.to_string();
    assert!(message.contains("part-00000-of-00003.parquet: it was made from another model"), "{message}");
    // A file that is no shard says nothing, the next one does.
    fs::write(&first.file, "no table").unwrap();
    let message = run(&other, "2/3", &out).unwrap_err().to_string();
    assert!(message.contains("part-00001-of-00003.parquet: it was made from another model"), "{message}");
    assert!(!out.join("part-00002-of-00003.parquet").exists());
    run(&own, "2/3", &out).unwrap();
}

#[test]
fn tables_are_not_written_into_a_folder_that_is_read() {
    let folder = photos(5);
    let (inputs, out) = ([folder.path().join("photos")], folder.path().join("out"));
    for inside in ["", "out", "out/deep", "../photos/out"] {
        let message = run(&inputs, "0/1", &inputs[0].join(inside)).unwrap_err().to_string();
        assert!(message.contains("which is read; name a folder outside of it"), "{inside}: {message}");
    }
    assert!(!inputs[0].join("out").exists());
    run(&inputs, "0/1", &out).unwrap();
}

#[test]
fn wrong_inputs_are_told() {
    let folder = photos(5);
    let path = |name: &str| folder.path().join(name);
    table(&path("other.parquet"), "optional binary picture;", &[None], 1);
    fs::write(path("torn.parquet"), "PAR1 no table PAR1").unwrap();
    fs::write(path("empty.txt"), "\n\n").unwrap();
    fs::write(path("latin.txt"), b"photos/\xe9.png\n").unwrap();
    fs::write(path("table.csv"), "a,b\n").unwrap();
    fs::create_dir(path("nothing")).unwrap();
    for (input, expected) in [
        ("other.parquet", "there is no column `image`, `path`, `file`; there are picture"),
        ("torn.parquet", "torn.parquet"),
        ("empty.txt", "there are no rows in it"),
        ("latin.txt", "save the list as UTF-8"),
        ("table.csv", "this is not read in shards; for this model, Parquet tables, lists of image files"),
        ("nothing", "there are no images or Parquet tables in it"),
        ("absent.txt", "absent.txt"),
    ] {
        let message = run(&[path(input)], "0/1", &path("out")).unwrap_err().to_string();
        assert!(message.contains(expected), "{input}: {message}");
        assert!(!path("out").exists(), "{input} left something");
    }
    let stop = StopHandle::default();
    stop.stop();
    let inputs = [path("list.txt")];
    let request = ShardRequest { inputs: &inputs, shard: Shard::WHOLE, out: &path("out"), replace: false };
    encode_shard(&encoder(), &request, &Watch::default().with_stop(stop)).unwrap_err();
    assert_eq!(fs::read_dir(path("out")).unwrap().count(), 0, "a stopped shard leaves nothing");
}

#[test]
fn a_list_of_floats_is_read_from_any_row_on() {
    use gpn::data::source::{ParquetRows, RowColumn, RowValue};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.parquet");
    let list = "required group embedding (LIST) { repeated group list { required float element; } }";
    let schema = parse_message_type(&format!("message table {{ {list} }}")).unwrap();
    let mut writer =
        SerializedFileWriter::new(fs::File::create(&path).unwrap(), Arc::new(schema), Arc::default())
            .unwrap();
    for group in 0..3 {
        let values: Vec<f32> = (0..20).map(|value| (group * 20 + value) as f32).collect();
        let repetition: Vec<i16> = (0..20).map(|place| i16::from(place % 2 != 0)).collect();
        let mut writer = writer.next_row_group().unwrap();
        let mut column = writer.next_column().unwrap().unwrap();
        column.typed::<FloatType>().write_batch(&values, Some(&[1; 20]), Some(&repetition)).unwrap();
        column.close().unwrap();
        writer.close().unwrap();
    }
    writer.close().unwrap();
    let table = ParquetRows::open(&path, &[RowColumn::Image, RowColumn::Embedding]).unwrap();
    assert_eq!((table.rows(), table.column()), (30, RowColumn::Embedding));
    for start in [0, 1, 9, 10, 15, 29, 30] {
        let mut reader = table.from_row(start);
        let mut found = Vec::new();
        loop {
            let read = reader.read(7).unwrap();
            if read.is_empty() {
                break;
            }
            found.extend(read);
        }
        let expected: Vec<RowValue> = (start..30)
            .map(|row| RowValue::Embedding(vec![2.0 * row as f32, 2.0 * row as f32 + 1.0]))
            .collect();
        assert_eq!(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), expected, "{start}");
    }
}
