//! A served model: its versions, its database, and how it changes.

mod change;
mod gather;
mod kept;
mod search;
mod store;
mod version;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gpn::train::Placement;
use gpn::{ClassKind, Classifier, Device, IfTaught, NewClass, Parents, Sample, Taught, Watch};

pub(crate) use self::change::HistoryEntry;
use self::change::{Change, ClassChange, What};
pub(crate) use self::gather::Arriving;
use self::gather::Gather;
use self::kept::{Kept, Samples, States, materialise};
use self::store::Store;
pub(crate) use self::store::{KeptSample, NewSample, kind as store_kind};
pub(crate) use self::version::Version;
use crate::clock;
use crate::error::ServeError;
use crate::http::metrics::Metrics;
use crate::http::problem::Problem;
use crate::limits::Limits;

/// Older versions that are kept to be asked.
const OLD_VERSIONS: usize = 4;
/// Bytes of a model card; longer ones are left out.
const LONGEST_CARD: usize = 1 << 20;
/// Changes that are read from the database at a time.
const PAGE: usize = 64;

/// A model that is served.
pub(crate) struct Model {
    /// Its name in addresses.
    pub(crate) name: String,
    /// Embeds samples.
    pub(crate) gather: Gather,
    /// Digest of the model file.
    pub(crate) digest: String,
    /// Numbers of an embedding.
    pub(crate) dim: usize,
    /// The model card beside the model file.
    pub(crate) card: Option<String>,
    /// The model as its file has it.
    base: Classifier,
    /// Ids of the classes that the graph of the model file has, apart from those that it was taught.
    in_graph: HashSet<String>,
    store: Store,
    current: RwLock<Arc<Version>>,
    /// Versions before the current one that were asked for, the last used at the end.
    old: Mutex<Vec<Arc<Version>>>,
    /// Held while a version is made from the one before, and committed.
    changing: Mutex<()>,
}

/// A class to be taught with samples that are embedded already.
pub(crate) struct TeachClass {
    pub(crate) class: String,
    pub(crate) parents: Parents,
    pub(crate) samples: Vec<NewSample>,
}

/// What came of a change.
pub(crate) struct Changed {
    /// The version before.
    pub(crate) before: Arc<Version>,
    /// The version with the change.
    pub(crate) after: Arc<Version>,
}

/// The database of a model file.
fn store_path(name: &str, file: &Path, state: Option<&Path>) -> PathBuf {
    if let Some(folder) = state {
        return folder.join(format!("{name}.redb"));
    }
    let mut path = file.as_os_str().to_owned();
    path.push(".redb");
    path.into()
}

/// A model with everything its database has, and what else is known of it.
struct Opened {
    digest: String,
    card: Option<String>,
    base: Classifier,
    store: Store,
    version: Version,
}

fn open(name: &str, path: &Path, state: Option<&Path>, device: &Device) -> Result<Opened, ServeError> {
    let file = gpn::train::model_file(path).map_err(gpn::Error::from)?;
    let bytes = std::fs::read(&file).map_err(|source| gpn::Error::Io {
        action: "read",
        path: file.clone(),
        source,
    })?;
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let base = Classifier::from_bytes(&bytes, &file.display().to_string(), device)?;
    drop(bytes);
    let store = Store::open(&store_path(name, &file, state), &digest)?;
    let failed = |error: redb::Error| store.failed(&error);
    let (number, states) = (store.last().map_err(failed)?, store.states().map_err(failed)?);
    let mut embeddings = store.embeddings().map_err(failed)?;
    let known = in_graph(&base);
    let classifier =
        materialise(&base, &states, |id| known.contains(id), |number| embeddings(number).map_err(failed))?;
    let version = Version::new(number, classifier);
    let card = std::fs::read_to_string(file.with_file_name("model_card.md")).ok();
    Ok(Opened { digest, card: card.filter(|card| card.len() < LONGEST_CARD), base, store, version })
}

/// Ids of the classes that the graph of a model has, apart from those that it was taught.
fn in_graph(base: &Classifier) -> HashSet<String> {
    let info = base.info();
    info.classes.iter().chain(&info.held_out).map(|class| class.id.clone()).collect()
}

impl Model {
    /// Opens a model file with everything its database has.
    pub(crate) fn open(
        name: &str,
        path: &Path,
        state: Option<&Path>,
        device: &Device,
        limits: &Limits,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, ServeError> {
        let Opened { digest, card, base, store, version } = open(name, path, state, device)?;
        let gather = Gather::start(base.fork(), limits, Arc::clone(metrics))
            .map_err(|source| ServeError::System { action: "start a thread", source })?;
        Ok(Self {
            name: name.to_owned(),
            gather,
            digest,
            dim: base.embedding_len(),
            card,
            in_graph: in_graph(&base),
            base,
            store,
            current: RwLock::new(Arc::new(version)),
            old: Mutex::default(),
            changing: Mutex::default(),
        })
    }

    /// Writes a model file with everything its database has; the file must not be there.
    pub(crate) fn export(
        name: &str,
        path: &Path,
        state: Option<&Path>,
        device: &Device,
        out: &Path,
    ) -> Result<(), ServeError> {
        Ok(open(name, path, state, device)?.version.classifier.save(out)?)
    }

    /// The current version.
    pub(crate) fn version(&self) -> Arc<Version> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The version after the change of this number.
    pub(crate) fn version_at(&self, number: u64) -> Result<Arc<Version>, Problem> {
        let current = self.version();
        if number == current.number {
            return Ok(current);
        }
        let kept = || self.old.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().iter().find(|version| version.number == number) {
            return Ok(Arc::clone(found));
        }
        if number > current.number {
            return Err(Problem::not_found(&format!(
                "there is no version {number}; the current one is {}",
                current.number
            )));
        }
        let version = Arc::new(Version::new(number, self.materialise(&self.states_at(number)?)?));
        let mut kept = kept();
        kept.push(Arc::clone(&version));
        if kept.len() > OLD_VERSIONS {
            kept.remove(0);
        }
        Ok(version)
    }

    /// What was kept of classes after the change of this number.
    fn states_at(&self, number: u64) -> Result<States, Problem> {
        // No change may come between reading what is kept and how it came to be.
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = self.store.states()?;
        let mut before = u64::MAX;
        'pages: loop {
            let page = self.store.history(None, before, PAGE)?;
            let Some(last) = page.last() else { break };
            before = last.number;
            for change in page {
                if change.number <= number {
                    break 'pages;
                }
                for class in change.classes {
                    match class.before {
                        Some(kept) => states.insert(class.id, kept),
                        None => states.remove(&class.id),
                    };
                }
            }
        }
        Ok(states)
    }

    fn materialise(&self, states: &States) -> Result<Classifier, Problem> {
        let mut embeddings = self.store.embeddings()?;
        materialise(&self.base, states, |id| self.in_graph.contains(id), |number| Ok(embeddings(number)?))
    }

    /// Teaches classes: all of them, or none.
    pub(crate) fn teach(
        &self,
        who: &str,
        classes: Vec<TeachClass>,
        if_taught: IfTaught,
    ) -> Result<(Vec<Taught>, Changed), Problem> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.version();
        let classifier = before.classifier.fork();
        let embedded = |sample: &NewSample| Sample::embedded(&sample.about.name, sample.embedding.clone());
        let new: Vec<NewClass> = classes
            .iter()
            .map(|class| NewClass {
                class: class.class.clone(),
                parents: class.parents.clone(),
                samples: class.samples.iter().map(embedded).collect(),
            })
            .collect();
        let taught = classifier.teach(&new, if_taught, &Watch::default())?;

        let mut next = self.store.next_sample()?;
        let mut samples = Vec::new();
        let mut changes = Vec::new();
        for (taught, class) in taught.iter().zip(classes) {
            let kept = self.store.kept(&taught.id)?;
            let was = before.classifier.class(&taught.id).map(|entry| entry.kind);
            let joins =
                if_taught == IfTaught::Add && matches!(was, Ok(ClassKind::Taught | ClassKind::Training));
            let mut after = kept.clone().unwrap_or_default();
            let mut numbers = if joins { after.numbers().to_vec() } else { Vec::new() };
            let mut digests: Vec<String> =
                self.store.samples(&numbers)?.into_iter().map(|sample| sample.digest).collect();
            for sample in class.samples {
                if !digests.contains(&sample.about.digest) {
                    digests.push(sample.about.digest.clone());
                    numbers.push(next);
                    samples.push((next, sample));
                    next += 1;
                }
            }
            if joins {
                after.samples = match after.samples {
                    Samples::Own { place, .. } => Samples::Own { place, samples: numbers },
                    _ => Samples::Added { samples: numbers },
                };
            } else {
                self.lose_place(&taught.id, &mut after);
                after.samples = Samples::Own { place: taught.place.clone(), samples: numbers };
            }
            changes.push(ClassChange {
                id: taught.id.clone(),
                name: taught.name.clone(),
                before: kept,
                after: after.worth_keeping(),
            });
        }
        changes.retain(|change| change.before != change.after);
        let changed = self.commit(who, What::Teach { if_taught }, changes, &samples, before, classifier)?;
        Ok((taught, changed))
    }

    /// A class that loses the samples of the model file loses the place that it had by them.
    fn lose_place(&self, id: &str, kept: &mut Kept) {
        if matches!(kept.samples, Samples::AsInFile | Samples::Added { .. }) {
            let in_file = self.base.class(id);
            let by_samples = |class: gpn::ClassEntry| {
                class.kind == ClassKind::Taught && (!class.nearest.is_empty() || !self.in_graph.contains(id))
            };
            if in_file.is_ok_and(by_samples) {
                kept.moved = None;
            }
        }
    }

    /// Changes what is kept of one class. `change` is made on a copy first, which tells whether it can be; the version is then
    /// made anew from all that is kept, so that it is the one that a restart gives.
    fn change_class(
        &self,
        who: &str,
        class: &str,
        what: What,
        change: impl FnOnce(&Classifier, &str) -> gpn::Result<()>,
        keep: impl FnOnce(&Classifier, &str, &mut Kept) -> Result<(), Problem>,
    ) -> Result<Changed, Problem> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.version();
        let entry = before.classifier.class(class)?;
        let tried = before.classifier.fork();
        change(&tried, &entry.id)?;
        let mut states = self.store.states()?;
        let kept = states.get(&entry.id).cloned();
        let mut after = kept.clone().unwrap_or_default();
        keep(&tried, &entry.id, &mut after)?;
        let after = after.worth_keeping();
        match &after {
            Some(after) => states.insert(entry.id.clone(), after.clone()),
            None => states.remove(&entry.id),
        };
        let classifier = self.materialise(&states).map_err(|problem| {
            if problem.is_callers() {
                Problem::conflict(&format!(
                    "class `{}`: others depend on it as it is ({})",
                    entry.id, problem.detail
                ))
            } else {
                problem
            }
        })?;
        let name = tried.class(&entry.id).map_or(entry.name, |class| class.name);
        let change = ClassChange { before: kept, after, id: entry.id, name };
        let changes = if change.before == change.after { Vec::new() } else { vec![change] };
        self.commit(who, what, changes, &[], before, classifier)
    }

    /// Forgets the samples of a class.
    pub(crate) fn forget(&self, who: &str, class: &str) -> Result<Changed, Problem> {
        self.change_class(who, class, What::Forget, Classifier::forget, |tried, id, kept| {
            self.lose_place(id, kept);
            let in_file = self.base.class(id).is_ok_and(|class| class.kind != ClassKind::Untaught);
            kept.samples = if in_file { Samples::Forgotten } else { Samples::AsInFile };
            if tried.class(id).is_err() {
                (kept.moved, kept.renamed) = (None, None);
            }
            Ok(())
        })
    }

    /// Moves a class below others.
    pub(crate) fn move_class(&self, who: &str, class: &str, parents: &[String]) -> Result<Changed, Problem> {
        let change = |tried: &Classifier, id: &str| tried.move_class(id, parents);
        self.change_class(who, class, What::Move, change, |tried, id, kept| {
            let mut parents = tried.class(id)?.parents;
            parents.sort();
            match &mut kept.samples {
                Samples::Own { place, .. } if *place != Placement::InGraph => {
                    *place = Placement::Below(parents);
                }
                _ => kept.moved = Some(parents),
            }
            Ok(())
        })
    }

    /// Gives a class another name.
    pub(crate) fn rename(&self, who: &str, class: &str, name: &str) -> Result<Changed, Problem> {
        let change = |tried: &Classifier, id: &str| tried.rename(id, name);
        self.change_class(who, class, What::Rename, change, |_, _, kept| {
            kept.renamed = Some(name.trim().to_owned());
            Ok(())
        })
    }

    /// Undoes a change: that of this number, or the last one that stands, of a class or of all.
    pub(crate) fn undo(
        &self,
        who: &str,
        class: Option<&str>,
        number: Option<u64>,
    ) -> Result<(HistoryEntry, Changed), Problem> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let change = match number {
            Some(number) => {
                let mut found = self.store.history(class, number.saturating_add(1), 1)?;
                found.pop().filter(|change| change.number == number)
            }
            None => self.last_standing(class)?,
        };
        let Some(change) = change else {
            return Err(Problem::not_found(match (number, class) {
                (Some(_), _) => "there is no such change",
                (None, Some(_)) => "nothing of this class was changed, or all of it is undone",
                (None, None) => "nothing was changed, or all of it is undone",
            }));
        };
        if !change.stands() {
            return Err(Problem::conflict(&format!(
                "change {} is undone already, or an undo itself",
                change.number
            )));
        }
        let mut states = self.store.states()?;
        for class in &change.classes {
            if states.get(&class.id) != class.after.as_ref() {
                return Err(Problem::conflict(&format!(
                    "class `{}` was changed since change {}; undo the later change first",
                    class.id, change.number
                )));
            }
            match &class.before {
                Some(kept) => states.insert(class.id.clone(), kept.clone()),
                None => states.remove(&class.id),
            };
        }
        let before = self.version();
        let classifier = self.materialise(&states).map_err(|problem| {
            if problem.is_callers() {
                Problem::conflict(&format!(
                    "change {} cannot be undone now: {}",
                    change.number, problem.detail
                ))
            } else {
                problem
            }
        })?;
        let undone = change.classes.iter().map(|class| ClassChange {
            id: class.id.clone(),
            name: class.name.clone(),
            before: class.after.clone(),
            after: class.before.clone(),
        });
        let what = What::Undo { undone: change.number };
        let changed = self.commit(who, what, undone.collect(), &[], before, classifier)?;
        Ok((change.entry(), changed))
    }

    /// The last change that can be undone.
    fn last_standing(&self, class: Option<&str>) -> Result<Option<Change>, Problem> {
        let mut before = u64::MAX;
        loop {
            let page = self.store.history(class, before, PAGE)?;
            let Some(last) = page.last() else { return Ok(None) };
            before = last.number;
            if let Some(found) = page.into_iter().find(Change::stands) {
                return Ok(Some(found));
            }
        }
    }

    /// Commits a change to the disk, then makes its version the current one. The caller holds `changing`.
    fn commit(
        &self,
        who: &str,
        what: What,
        classes: Vec<ClassChange>,
        samples: &[(u64, NewSample)],
        before: Arc<Version>,
        classifier: Classifier,
    ) -> Result<Changed, Problem> {
        if classes.is_empty() {
            return Ok(Changed { after: Arc::clone(&before), before });
        }
        let change =
            Change { number: 0, at: clock::now(), who: who.to_owned(), what, classes, undone_by: None };
        let change = self.store.commit(change, samples)?;
        let after = Arc::new(Version::new(change.number, classifier));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&after);
        Ok(Changed { before, after })
    }

    /// Changes before a number, the newest first.
    pub(crate) fn history(
        &self,
        class: Option<&str>,
        before: u64,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, Problem> {
        Ok(self.store.history(class, before, limit)?.iter().map(Change::entry).collect())
    }

    /// The samples that are kept of a class, with their numbers.
    pub(crate) fn samples(&self, id: &str) -> Result<Vec<(u64, KeptSample)>, Problem> {
        let kept = self.store.kept(id)?;
        let numbers = kept.as_ref().map_or(&[][..], Kept::numbers);
        Ok(numbers.iter().copied().zip(self.store.samples(numbers)?).collect())
    }

    /// The image of a sample of a class, where it is kept.
    pub(crate) fn image(&self, id: &str, number: u64) -> Result<Option<Vec<u8>>, Problem> {
        let kept = self.store.kept(id)?;
        if !kept.is_some_and(|kept| kept.numbers().contains(&number)) {
            return Ok(None);
        }
        Ok(self.store.image(number)?)
    }

    /// The kept samples of a class nearest to an embedding, with squared distances, the nearest first.
    pub(crate) fn nearest_samples(
        &self,
        id: &str,
        embedding: &[f32],
        limit: usize,
    ) -> Result<Vec<(u64, KeptSample, f32)>, Problem> {
        let samples = self.samples(id)?;
        let mut embeddings = self.store.embeddings()?;
        let mut found = Vec::with_capacity(samples.len());
        for (number, sample) in samples {
            let distance = gpn::model::squared_distance(&embeddings(number)?, embedding);
            found.push((number, sample, distance));
        }
        found.sort_by(|a, b| a.2.total_cmp(&b.2));
        found.truncate(limit);
        Ok(found)
    }
}
