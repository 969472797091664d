//! What people give as a taxonomy by mistake, and what they are told: each input with the words that its message must have.

use gpn_taxonomy::{TaxonomySpec, check_fit, find_wordnet, read};

/// What a file is called, what it holds, the labels of the samples, and the words of the error or warning.
type Case = (&'static str, Vec<u8>, &'static [&'static str], &'static [&'static str]);

fn text(name: &'static str, content: &str, words: &'static [&'static str]) -> Case {
    (name, content.as_bytes().to_vec(), &[], words)
}

fn labelled(content: &str, labels: &'static [&'static str], words: &'static [&'static str]) -> Case {
    ("kinds.csv", content.as_bytes().to_vec(), labels, words)
}

const ANIMALS: &str = "child,parent\nmammal,animal\nbird,animal\ncat,mammal\ndog,mammal\ncrow,bird\n";
const CRANES: &str = "id,parent,name,description\nn1,animal,crane,a wading bird\nn2,machine,crane,lifts heavy things\n\
                      n3,animal,cat,purrs\n";

fn mistakes() -> Vec<Case> {
    vec![
        // Tables that are none.
        text("kinds.csv", "", &["kinds.csv: holds no class", "is it the right file"]),
        text("kinds.csv", "# only a comment\n\n", &["holds no class"]),
        text("kinds.csv", "child,parent\n", &["holds no class"]),
        text(
            "kinds.csv",
            "cat\ndog\n",
            &["kinds.csv:1: expected two columns", "found 1: cat", "a comma, a semicolon or a tab"],
        ),
        text("kinds.csv", "cat -> animal\n", &["found 3: cat -> animal", "instead of `->`"]),
        text("kinds.csv", "cat:animal\n", &["found 1: cat:animal", "instead of `:`"]),
        text(
            "kinds.csv",
            "golden delicious apple\n",
            &["found 3: golden delicious apple", "a comma, a semicolon or a tab"],
        ),
        text(
            "kinds.csv",
            "cat,animal,4 legs\n",
            &["expected two columns", "found 3", "name the columns in a header"],
        ),
        text(
            "kinds.csv",
            "child,parent\ncat,animal\ndog,animal,pet\n",
            &["kinds.csv:3: expected 2 columns but found 3: dog animal pet"],
        ),
        text(
            "kinds.csv",
            "child;parent\ncat;animal\ndog\n",
            &["kinds.csv:3: expected 2 columns but found 1: dog"],
        ),
        text("kinds.csv", "child,parent\n,animal\n", &["kinds.csv:2: the child is empty"]),
        text(
            "kinds.csv",
            "child,parent\ncat,\"animal\ndog,animal\n",
            &["a quote (\") is opened but not closed"],
        ),
        text("kinds.csv", "child,parent\n\"cat\"x,animal\n", &["kinds.csv:2: text after a closing quote: x"]),
        // Graphs that are none.
        text(
            "kinds.csv",
            "child,parent\ncat,cat\n",
            &["kinds.csv:2: class `cat` is its own parent; remove this edge"],
        ),
        text(
            "kinds.csv",
            "child,parent\na,b\nb,c\nc,a\n",
            &["has a cycle", "(lines", "remove one of these edges"],
        ),
        text(
            "kinds.csv",
            "child,parent\ncat,animal\ncat,animal\n",
            &["kinds.csv:3: edge animal -> cat is stated again; it counts once"],
        ),
        text("kinds.csv", "label,path\n,Fruit > Apple\n", &["kinds.csv:2: the class is empty"]),
        text(
            "kinds.csv",
            "label,path\na_b,X > A B\na-b,X > A B\n",
            &["kinds.csv:3: the path X/A B is that of `a_b` (line 2)"],
        ),
        // Files of another kind.
        (
            "kinds.csv",
            b"PK\x03\x04....[Content_Types].xml....xl/workbook.xml".to_vec(),
            &[],
            &["kinds.csv: is an Excel workbook; save it as CSV"],
        ),
        (
            "kinds.xlsx",
            b"PK\x03\x04....xl/workbook.xml".to_vec(),
            &[],
            &["is an Excel workbook; save it as CSV"],
        ),
        (
            "kinds.ods",
            b"PK\x03\x04mimetypeapplication/vnd.oasis.opendocument.spreadsheet".to_vec(),
            &[],
            &["OpenDocument spreadsheet; save it as CSV"],
        ),
        ("kinds.xls", b"\xd0\xcf\x11\xe0\xa1\xb1".to_vec(), &[], &["an old Office; save it as CSV"]),
        ("kinds.csv.gz", b"\x1f\x8b\x08".to_vec(), &[], &["compressed with gzip; unpack it"]),
        ("kinds.zip", b"PK\x03\x04kinds.csv".to_vec(), &[], &["is a zip archive; unpack it"]),
        ("kinds.csv", b"%PDF-1.4".to_vec(), &[], &["is a PDF"]),
        ("kinds.parquet", b"PAR1".to_vec(), &[], &["is a Parquet table; save it as CSV"]),
        (
            "kinds.csv",
            b"child,parent\nK\xe4se,Milch\n".to_vec(),
            &[],
            &["kinds.csv:2: is not UTF-8; convert the file to UTF-8", "save as CSV UTF-8"],
        ),
        (
            "kinds.csv",
            "child,parent\n".encode_utf16().flat_map(u16::to_le_bytes).collect(),
            &[],
            &["kinds.csv:1: holds a zero byte", "UTF-16 without its mark"],
        ),
        ("kinds.csv", b"\xff\xfec\0a".to_vec(), &[], &["begins like UTF-16 but is not"]),
        text("kinds.json", "{\"cat\": [\"animal\"", &["kinds.json:1: is not a taxonomy in JSON", "EOF"]),
        text("kinds.json", "child,parent\ncat,animal\n", &["kinds.json:1: is not a taxonomy in JSON"]),
        text("kinds.json", "{\"cat\": 3}", &["`cat` is to be a list of the ids of its parents"]),
        text("kinds.json", "[{\"colour\": \"red\"}]", &["neither `id` nor `name`"]),
        text("kinds.xml", "<html><body>404</body></html>", &["kinds.xml: holds no class"]),
        text("go.obo", "hello\n", &["go.obo"]),
        text("data.noun", "hello\n", &["data.noun:1: is not a line of data.noun"]),
        // Taxonomies that do not fit the samples.
        labelled(
            "child,parent\nanimal,cat\nanimal,dog\nbird,crow\n",
            &["cat", "dog", "crow"],
            &["child and parent seem to be exchanged", "`cat` above `animal`", "exchange them"],
        ),
        labelled(
            "parent;child\nmammal;animal\ncat;mammal\ndog;mammal\n",
            &["cat", "dog"],
            &["child and parent seem to be exchanged"],
        ),
        labelled(ANIMALS, &["cat", "dgo"], &["unknown class: `dgo` (did you mean `dog`?)"]),
        labelled(ANIMALS, &["cat", "tractor"], &["unknown class: `tractor`"]),
        labelled(ANIMALS, &["Cat", "dog"], &["`Cat` for `cat`", "spelled otherwise"]),
        labelled(
            "label,parent\nGolden-Delicious,apple\npear,fruit\n",
            &["golden_delicious", "pear"],
            &["`golden_delicious` for `Golden-Delicious`"],
        ),
        labelled(
            CRANES,
            &["crane", "cat"],
            &["`crane` names 2 classes: n1 (a wading bird), n2 (lifts heavy things)", "use the id"],
        ),
        labelled("a,b\nA,b\n", &["A ", "a"], &["`A ` names 2 classes: a, A"]),
    ]
}

/// The error of reading or fitting, or else the warnings.
fn told(file: &str, labels: &[&str]) -> Vec<String> {
    let checked = match file.parse::<TaxonomySpec>().and_then(|spec| read(&spec)) {
        Ok(checked) => checked,
        Err(error) => return vec![error.to_string()],
    };
    let mut messages: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
    let fit = check_fit(&checked.taxonomy, labels);
    messages.extend(fit.warnings().map(ToString::to_string));
    messages.extend(fit.into_nodes().err().map(|error| error.to_string()));
    messages
}

#[test]
fn every_mistake_is_told_in_words_that_help() {
    let cases = mistakes();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    let mut failed = Vec::new();
    for (number, (name, content, labels, words)) in cases.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let message = told(file.to_str().unwrap(), labels).join("\n");
        if !words.iter().all(|word| message.contains(word)) {
            failed.push(format!("{number}: {name}: {words:?} in: {message}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn names_that_are_wrong_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (given, words) in [
        (inside("kinds.csv"), ["there is no such file", "KIND:PATH"]),
        (inside(""), ["a folder without WordNet's data.noun", "name the file"]),
        (format!("edges:{}", inside("")), ["is a folder", "name the file"]),
        (format!("edges:{}", inside("kinds.csv")), ["kinds.csv: cannot read", "No such file"]),
        (format!("edgs:{}", inside("kinds.csv")), ["unknown kind `edgs`", "did you mean `edges`?"]),
        (format!("wordnet:{}", inside("dict")), ["dict: cannot read", "No such file"]),
    ] {
        let message = told(&given, &[]).join("\n");
        assert!(words.iter().all(|word| message.contains(word)), "{given}: {words:?} in: {message}");
    }
}

#[test]
fn what_spreadsheets_write_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kinds.csv");
    let wide = |text: &str| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    for bytes in [
        wide("Child\tParent\r\ncat\tanimal\r\ndog\tanimal\r\n"),
        "\u{feff}Label;Category\r\ncat;animal\r\ndog;animal\r\n".into(),
        "sep=;\r\nchild;parent\r\n\"cat\";\"animal\"\r\ndog;animal\r\n".into(),
        "label,path\ncat,animal > Cat\ndog,animal/\n".into(),
    ] {
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(
            told(file.to_str().unwrap(), &["cat", "dog"]),
            [""; 0],
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
}

/// Needs WordNet; says so where it is absent.
#[test]
fn published_senses_of_a_crane_are_listed() {
    let folder = match find_wordnet() {
        Ok(folder) => folder,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    let taxonomy = gpn_taxonomy::read_wordnet(&folder).unwrap().taxonomy;
    let message = check_fit(&taxonomy, &["crane", "n02084071"]).into_nodes().unwrap_err().to_string();
    for words in [
        "`crane` names ",
        "n02012849 (large long-necked wading bird",
        "n03126707 (lifts and moves heavy",
        "use the id",
    ] {
        assert!(message.contains(words), "{words} in: {message}");
    }
}
