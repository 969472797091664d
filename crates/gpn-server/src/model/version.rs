//! One version of a model: immutable, shared by all who read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gpn::taxonomy::Node;
use gpn::{Classifier, PredictRequest, Predictor};

use super::search::SearchIndex;
use crate::http::problem::Problem;

/// Predictors that are kept for requests of the same kind.
const KEPT: usize = 8;

/// One version of a model.
pub(crate) struct Version {
    /// The number of the change that made it; 0 is the model file.
    pub(crate) number: u64,
    /// What answers. It is never taught again.
    pub(crate) classifier: Classifier,
    /// Its classes by name.
    pub(crate) index: SearchIndex,
    /// Predictors by request, the last used at the end.
    predictors: Mutex<VecDeque<(String, Arc<Predictor>)>>,
    unplaced: OnceLock<Vec<(Node, Vec<String>)>>,
}

impl Version {
    pub(crate) fn new(number: u64, classifier: Classifier) -> Self {
        let index = SearchIndex::new(&classifier.graph());
        Self { number, classifier, index, predictors: Mutex::default(), unplaced: OnceLock::new() }
    }

    /// The predictor for a request: the classes to choose from with their prototypes, made once for all requests alike.
    pub(crate) fn predictor(&self, request: &PredictRequest) -> Result<Arc<Predictor>, Problem> {
        // invariant: a request is plain data, which always serialises.
        let key = serde_json::to_string(request).unwrap();
        let kept = || self.predictors.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = kept();
            let place = kept.iter().position(|(other, _)| *other == key);
            if let Some(found) = place.and_then(|place| kept.remove(place)) {
                let predictor = Arc::clone(&found.1);
                kept.push_back(found);
                return Ok(predictor);
            }
        }
        // Made without the lock, which others need meanwhile.
        let predictor = Arc::new(self.classifier.predictor(request)?);
        let mut kept = kept();
        kept.push_back((key, Arc::clone(&predictor)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(predictor)
    }

    /// The taught classes of unknown place, with the ids of the training classes that they are linked to.
    pub(crate) fn unplaced(&self) -> &[(Node, Vec<String>)] {
        self.unplaced.get_or_init(|| {
            let graph = self.classifier.graph();
            let kinds = self.classifier.kinds();
            let taught = graph.nodes().filter(|&node| kinds(node) == gpn::ClassKind::Taught);
            let taught: Vec<Node> = taught.collect();
            let entries = self.classifier.entries(taught.iter().copied());
            let linked = taught.into_iter().zip(entries).filter(|(_, entry)| !entry.nearest.is_empty());
            linked.map(|(node, entry)| (node, entry.nearest)).collect()
        })
    }
}
