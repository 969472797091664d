//! The noun hierarchy of WordNet.

use std::path::{Path, PathBuf};

use super::{malformed, some_class};
use crate::builder::TaxonomyBuilder;
use crate::error::TaxonomyError;
use crate::graph::{Checked, Node};

/// Folders where systems keep WordNet.
const INSTALLED: [&str; 3] =
    ["/usr/share/wordnet", "/usr/local/WordNet-3.0/dict", "/usr/share/wordnet-3.0/dict"];

/// The folder of an installed WordNet: what the environment variable `GPN_WORDNET_DIR` names, else the first
/// usual folder that exists.
pub fn find_wordnet() -> Result<PathBuf, TaxonomyError> {
    if let Some(dir) = std::env::var_os("GPN_WORDNET_DIR") {
        return Ok(dir.into());
    }
    INSTALLED.iter().map(PathBuf::from).find(|dir| dir.join("data.noun").is_file()).ok_or_else(|| {
        TaxonomyError::Spec {
            given: "wordnet".to_owned(),
            message: "WordNet is not installed in a usual place; name its folder with wordnet:DIR or GPN_WORDNET_DIR \
                      (Debian: package wordnet-base)"
                .to_owned(),
        }
    })
}

/// Reads the nouns of WordNet from its dictionary folder (the one with `data.noun`), or from that file.
///
/// A class is a synset; its id is `n` and the eight digits of its offset, as in ImageNet: `n00001740` is
/// entity. Parents are hypernyms (`@`) and the classes of an instance (`@i`). The name is the first word,
/// with blanks for underscores, and the description is the gloss. O(size of the file).
pub fn read_wordnet(path: &Path) -> Result<Checked, TaxonomyError> {
    let file = if path.is_dir() { path.join("data.noun") } else { path.to_path_buf() };
    // Words and glosses are ASCII in WordNet itself; other editions may hold Latin-1 in a gloss.
    let bytes = std::fs::read(&file).map_err(|source| TaxonomyError::Read { path: file.clone(), source })?;
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes));
    let mut graph = TaxonomyBuilder::for_file(&file);
    let mut defined: Vec<bool> = Vec::new();
    let mut pointers: Vec<(Node, Node, u64)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        // The licence at the top is indented.
        if line.starts_with(' ') || line.is_empty() {
            continue;
        }
        let fail = |message: &str| malformed(&file, Some(number), message);
        let synset = Synset::parse(line)
            .map_err(|what| fail(&format!("is not a line of data.noun ({what}); is the file complete?")))?;
        let class = graph.add_class(&synset_id(synset.offset));
        if defined.get(class as usize).copied().unwrap_or(false) {
            return Err(fail("the synset is defined a second time"));
        }
        graph.set_name(class, &synset.word.replace('_', " "));
        graph.set_description(class, synset.gloss);
        for hypernym in synset.hypernyms {
            pointers.push((graph.add_class(&synset_id(hypernym)), class, number));
        }
        defined.resize(graph.len(), false);
        defined[class as usize] = true;
    }
    if let Some((parent, _, line)) = pointers.iter().find(|(parent, ..)| !defined[*parent as usize]) {
        let message = format!(
            "names the hypernym {}, which the file does not define; is it complete?",
            graph.id(*parent)
        );
        return Err(malformed(&file, Some(*line), message));
    }
    for (parent, child, line) in pointers {
        graph.add_edge(parent, child, Some(line));
    }
    some_class(graph.build()?, &file)
}

fn synset_id(offset: &str) -> String {
    format!("n{offset}")
}

/// What is used of a line of `data.noun`:
/// `offset file type word-count word id ... pointer-count symbol offset type source/target ... | gloss`.
struct Synset<'a> {
    offset: &'a str,
    word: &'a str,
    hypernyms: Vec<&'a str>,
    gloss: &'a str,
}

impl<'a> Synset<'a> {
    fn parse(line: &'a str) -> Result<Self, &'static str> {
        let (data, gloss) = line.split_once(" | ").ok_or("no gloss after |")?;
        let mut fields = data.split_ascii_whitespace();
        let mut next = |what: &'static str| fields.next().ok_or(what);
        let offset = offset(next("no offset")?)?;
        next("no file number")?;
        if next("no synset type")? != "n" {
            return Err("the synset type is not n");
        }
        let words =
            u16::from_str_radix(next("no word count")?, 16).map_err(|_| "word count is not hexadecimal")?;
        let word = next("no word")?;
        for _ in 1..2 * u32::from(words) {
            next("fewer words than announced")?;
        }
        let count: u16 = next("no pointer count")?.parse().map_err(|_| "pointer count is not a number")?;
        let mut hypernyms = Vec::new();
        for _ in 0..count {
            let symbol = next("fewer pointers than announced")?;
            let target = next("a pointer without target")?;
            let part_of_speech = next("a pointer without type")?;
            next("a pointer without source and target")?;
            if matches!(symbol, "@" | "@i") && part_of_speech == "n" {
                hypernyms.push(self::offset(target)?);
            }
        }
        Ok(Self { offset, word, hypernyms, gloss: gloss.trim() })
    }
}

fn offset(text: &str) -> Result<&str, &'static str> {
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text)
    } else {
        Err("an offset is not of eight digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "  1 This software and database\n\
        00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived\n\
        00001930 03 n 02 physical_entity 0 thing 1 002 @ 00001740 n 0000 + 00692347 v 0101 | an entity  \n\
        00002000 03 n 01 Everest 0 001 @i 00001930 n 0000 | a mountain | high\n";

    fn read(text: &str) -> Result<Checked, TaxonomyError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data.noun"), text).unwrap();
        read_wordnet(folder.path())
    }

    #[test]
    fn a_word_count_beyond_the_line_is_refused() {
        let text = SMALL.replace("n 01 Everest", "n 8000 Everest");
        let message = read(&text).unwrap_err().to_string();
        assert!(message.contains(":4: ") && message.contains("fewer words than announced"), "{message}");
    }

    #[test]
    fn hypernyms_names_and_glosses_are_read() {
        let graph = read(SMALL).unwrap().taxonomy;
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        assert_eq!((graph.id(0), graph.name(1)), ("n00001740", "physical entity"));
        assert_eq!(graph.description(1), Some("an entity"));
        assert_eq!(graph.description(2), Some("a mountain | high"));
    }

    #[test]
    fn a_cut_file_is_an_error_with_its_line() {
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert!(message(&SMALL[..SMALL.len() - 60]).contains("data.noun:4: is not a line of data.noun"));
        let without_first = SMALL.replace("00001740 03 n 01 entity", "00001741 03 n 01 entity");
        assert!(message(&without_first).contains("data.noun:3: names the hypernym n00001740"));
        assert!(message("  1 licence only\n").contains("holds no class"));
    }
}
