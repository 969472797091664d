//! `model_card.md`: what a model is, for whoever finds the file.

use std::fmt::Write as _;

use gpn_data::benchmark::{Benchmark, Split};

use crate::model_file::ModelInfo;
use crate::statistics::INTERVAL;
use crate::validation::LAMBDAS;

/// The card of a model trained on `benchmark`, as Markdown.
pub fn model_card(info: &ModelInfo, benchmark: &Benchmark) -> String {
    let config = &info.config;
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
         | trained for | {}-way {}-shot tasks, {} episodes, seed {} |\n\
         | trained on | {source}, {} classes |\n\
         | benchmark | fingerprint {} |\n",
        info.built_by,
        config.task.way,
        config.task.shot,
        config.train.episodes,
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
        }
        None => text.push_str("No validation tasks were evaluated.\n"),
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
