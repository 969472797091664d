//! `model_card.md`: what a model is, for whoever finds the file.

use std::fmt::Write as _;

use gpn_data::benchmark::{Benchmark, Split};

use crate::evaluate::INTERVAL;
use crate::learn::validation::LAMBDAS;
use crate::model::file::ModelInfo;

/// The card of a model trained on `benchmark`, as Markdown; `last` is the model after the last episode of its run.
pub fn model_card(info: &ModelInfo, last: &ModelInfo, benchmark: &Benchmark) -> String {
    let config = &last.config;
    let episodes = config.train.episodes;
    let trained = match info.episode {
        Some(best) if best < episodes => {
            format!("{best} of {episodes} episodes (the best on validation tasks)")
        }
        _ => format!("{episodes} episodes"),
    };
    let count = |split| benchmark.classes().iter().filter(|class| class.split == split).count();
    let input = match info.input {
        gpn_model::InputShape::Image { height, width } => format!("images, {height} x {width} pixels"),
        gpn_model::InputShape::Embedding { len } => format!("embeddings of {len} numbers"),
    };
    let kind = info.method();
    let method = format!("{}: {}; backbone {}", kind.title, kind.about, config.model.backbone);
    let source = &benchmark.manifest().source;
    let mut text = format!(
        "# Model card\n\n\
         A few-shot classifier: it tells classes apart by the prototypes of a few samples each, and improves these by what \
         it knows of related classes.\n\n\
         | | |\n|---|---|\n\
         | made by | {} |\n\
         | method | {method} |\n\
         | input | {input} |\n\
         | trained for | {}-way {}-shot tasks, {trained}, seed {} |\n\
         | trained on | {source}, {} classes |\n\
         | benchmark | fingerprint {} |\n",
        info.built_by,
        config.task.way,
        config.task.shot,
        config.train.seed,
        info.classes.len(),
        info.benchmark,
    );
    text.push_str("\n## How good it is\n");
    match &info.validation {
        Some(result) => {
            let (tasks, lambda) = (config.validation.tasks, info.lambda());
            // invariant: writing to a string does not fail.
            writeln!(
                text,
                "On {tasks} validation tasks ({}-way {}-shot; training classes, samples never trained on; {INTERVAL}):\n\n\
                 | lambda (weight of the prototype before propagation) | accuracy, % |\n|---|---|",
                config.task.way, config.task.shot
            )
            .unwrap();
            for (tried, estimate) in LAMBDAS.iter().zip(&result.by_lambda) {
                let mark = if (tried - lambda).abs() < 1e-6 { " (best, used by default)" } else { "" };
                // invariant: writing to a string does not fail.
                writeln!(text, "| {tried}{mark} | {estimate} |").unwrap();
            }
            if let Some(of_last) = last.validation.as_ref().filter(|_| info.episode != last.episode) {
                let (reached, lambda) = (of_last.reached(last.method()), last.lambda());
                // invariant: writing to a string does not fail.
                writeln!(
                    text,
                    "\nThis is the best model of its run, after episode {}. `last.safetensors` beside it is the one after the \
                     last episode, {episodes}: {reached} with lambda {lambda} on the same tasks.",
                    info.episode.unwrap_or(episodes)
                )
                .unwrap();
            }
        }
        None => {
            text.push_str("No validation tasks were evaluated; this is the model after the last episode.\n");
        }
    }
    // invariant: writing to a string does not fail.
    writeln!(
        text,
        "\nThe benchmark has {} Close and {} Far test classes; `gpn eval` measures on those. Classes seen in training are \
         easier than new ones: expect less there than above.\n\n\
         ## Use\n\
         `gpn teach` adds classes by a few samples, `gpn predict` classifies, `gpn classes` lists what it knows.\n\n\
         ## Limits\n\
         Every query is given to one of the classes asked for, also where it belongs to none. Probabilities are softmax \
         values of distances and are not calibrated. What the model knows of relations comes from the taxonomy it was \
         trained with; samples unlike the training data are embedded poorly, and then the prototypes are poor too.",
        count(Split::Close),
        count(Split::Far),
    )
    .unwrap();
    text
}
