//! Measures made-up answers and writes the page of the test: `cargo run --release -p gpn --example test_page -- FILE.html`.
//!
//! The answers have no meaning; they exercise the measures and the page, with drawings in place of photos.

use gpn::measure::{
    Answered, AnsweredSample, HedgeCurve, HedgeMeasure, accuracy_by_samples, confused_pairs, measure,
    mistakes_of, suspicious_labels, test_page, worst_classes,
};
use gpn::taxonomy::{Node, Taxonomy, TaxonomyBuilder, leaves_below};
use gpn_report::{AccuracyBySamples, AlikePair, Answer, Comparison, Picture, SuspiciousLabel, Verdict};

const KINDS: [(&str, &[&str]); 13] = [
    ("groceries", &["Fruit", "Packages", "Vegetables"]),
    ("Fruit", &["Apple", "Melon", "Pear", "Citrus", "Banana", "Kiwi", "Mango"]),
    ("Apple", &["Golden-Delicious", "Granny-Smith", "Pink-Lady", "Red-Delicious", "Royal-Gala"]),
    ("Melon", &["Cantaloupe", "Galia-Melon", "Honeydew-Melon", "Watermelon"]),
    ("Pear", &["Anjou", "Conference", "Kaiser"]),
    ("Citrus", &["Lemon", "Lime", "Orange", "Red-Grapefruit", "Satsumas"]),
    ("Packages", &["Juice", "Milk", "Yoghurt", "Oatghurt"]),
    (
        "Juice",
        &["Apple-Juice", "Mandarin-Morning", "Ruby-Red-Grapefruit", "Tropicana <no pulp> & \"calcium\""],
    ),
    ("Milk", &["Medium-Fat-Milk", "Eco-Fresh-Milk", "Standard-Milk"]),
    ("Yoghurt", &["Natural-Yoghurt", "Strawberry-Yoghurt", "Vanilla-Yoghurt"]),
    ("Vegetables", &["Pepper", "Tomato", "Asparagus", "Cabbage", "Carrots", "Cucumber", "Ginger", "Leek"]),
    ("Pepper", &["Green-Bell-Pepper", "Orange-Bell-Pepper", "Red-Bell-Pepper", "Yellow-Bell-Pepper"]),
    ("Tomato", &["Beef-Tomato", "Regular-Tomato", "Vine-Tomato"]),
];

/// Noise from a fixed rule.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    /// About normal: mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: test_page FILE.html")?;
    let graph = groceries()?;
    let leaves: Vec<Node> = graph.leaves().collect();
    let mut noise = Noise(14);
    let learned: Vec<usize> =
        leaves.iter().map(|_| (1.0 + 60.0 * noise.uniform().powi(3)) as usize).collect();
    let answered = Answered { graph: &graph, samples: samples(&graph, &leaves, &learned, &mut noise) };
    let unknown: Vec<f64> = (0..180).map(|_| 0.62 + 0.14 * noise.normal()).collect();
    let result = measure(&answered)?.with_unknown(&answered, &unknown)?;

    let mut page = test_page(&result, &graph);
    page.title = "Groceries".into();
    page.lead = format!(
        "How `groceries.safetensors` answers {} photos of {} classes that it did not learn from. Made-up data.",
        result.samples,
        leaves.len()
    );
    page.comparisons.insert(0, Comparison { name: "Nearest mean".into(), accuracy: result.accuracy - 0.083 });
    page.by_samples = Some(AccuracyBySamples {
        title: "Accuracy by number of samples".into(),
        groups: accuracy_by_samples(&result, |id| {
            let leaf = leaves.iter().position(|&leaf| graph.id(leaf) == id)?;
            Some(learned[leaf])
        }),
    });
    for (class, shown) in worst_classes(&result, 8).into_iter().zip(&mut page.worst) {
        let node = graph.find(&class.id).ok_or("a class of the graph")?;
        for place in mistakes_of(&answered, node, 6)? {
            let sample = &answered.samples[place];
            let (answer, probability) = sample.ranked[0];
            let text = format!("{} {:.0}%", graph.name(answer), 100.0 * probability);
            shown.pictures.push(Picture {
                bytes: drawing(sample.truth, place)?,
                name: sample.name.clone(),
                answers: vec![Answer { label: String::new(), text, verdict: Verdict::Wrong }],
            });
        }
    }
    for pair in confused_pairs(&result, 6) {
        let nodes = graph.find_all(&pair.classes)?;
        let [there, back] = pair.counts;
        page.alike.push(AlikePair {
            pictures: [Some(drawing(nodes[0], 0)?), Some(drawing(nodes[1], 1)?)],
            names: pair.classes,
            note: format!("taken for one another {} times", there + back),
        });
    }
    for place in suspicious_labels(&answered, 0.6, 8)? {
        let sample = &answered.samples[place];
        let (answer, probability) = sample.ranked[0];
        page.suspicious.push(SuspiciousLabel {
            sample: sample.name.clone(),
            picture: Some(drawing(answer, place)?),
            label: graph.name(sample.truth).into(),
            answer: graph.name(answer).into(),
            probability,
        });
    }
    page.hedge = Some(hedge_curve(&answered)?.figure("As deep as sure"));
    page.environment = vec![
        ("Program".into(), format!("gpn {}", env!("CARGO_PKG_VERSION"))),
        ("Command".into(), "`gpn test groceries.safetensors photos --report page.html`".into()),
    ];
    page.report()?.write(&file)?;
    Ok(())
}

fn groceries() -> Result<Taxonomy, gpn::taxonomy::TaxonomyError> {
    let mut graph = TaxonomyBuilder::new();
    for (parent, children) in KINDS {
        let parent = graph.add_class(parent);
        for child in children {
            let child = graph.add_class(child);
            graph.add_edge(parent, child, None);
        }
    }
    Ok(graph.build()?.taxonomy)
}

/// Scores of leaves are higher for relatives of the truth, the more samples the surer.
fn samples(graph: &Taxonomy, leaves: &[Node], learned: &[usize], noise: &mut Noise) -> Vec<AnsweredSample> {
    let mut samples = Vec::new();
    for (&truth, &learned) in leaves.iter().zip(learned) {
        for number in 0..5 + (18.0 * noise.uniform()) as usize {
            let score = |leaf: Node, noise: &mut Noise| {
                let related =
                    graph.parents(leaf) == graph.parents(truth) && !graph.children(truth).contains(&leaf);
                let own = if leaf == truth { 1.6 + 0.45 * (learned as f64).ln() } else { 0.0 };
                5.0 * (own + f64::from(u8::from(related)) + 0.85 * noise.normal())
            };
            let scores: Vec<f64> = leaves.iter().map(|&leaf| score(leaf, noise)).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            let mut ranked: Vec<(Node, f64)> = leaves
                .iter()
                .zip(&scores)
                .map(|(&leaf, score)| (leaf, (score - most).exp() / total))
                .collect();
            ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
            samples.push(AnsweredSample {
                name: format!("{}/{number:03}.jpg", graph.id(truth)),
                truth,
                ranked,
                is_new: learned < 3,
                unknown_score: Some(0.3 + 0.13 * noise.normal()),
                ..AnsweredSample::default()
            });
        }
    }
    samples
}

/// Answers with the deepest class whose leaves have the confidence together.
fn hedge_curve(answered: &Answered<'_>) -> gpn::Result<HedgeCurve> {
    let graph = answered.graph;
    let below: Vec<Vec<Node>> = graph.nodes().map(|n| leaves_below(graph, n)).collect();
    let truths: Vec<Node> = answered.samples.iter().map(|sample| sample.truth).collect();
    let measure = HedgeMeasure::new(graph);
    let point = |step: u32| {
        let confidence = f64::from(step) / 20.0;
        let answer = |sample: &AnsweredSample| {
            let mut probability = vec![0.0; graph.len()];
            for &(leaf, of_leaf) in &sample.ranked {
                probability[leaf as usize] = of_leaf;
            }
            let sum = |n: Node| below[n as usize].iter().map(|&leaf| probability[leaf as usize]).sum::<f64>();
            let sure = graph.nodes().filter(|&n| sum(n) >= confidence - 1e-9);
            let key = |n: Node| (below[n as usize].len(), sum(n));
            sure.min_by(|&a, &b| key(a).0.cmp(&key(b).0).then(key(b).1.total_cmp(&key(a).1))).unwrap_or(0)
        };
        measure.point(confidence, &truths, &answered.samples.iter().map(answer).collect::<Vec<_>>())
    };
    Ok(HedgeCurve { points: (4..=20).map(point).collect::<gpn::Result<_>>()? })
}

/// A disc of the colour of a class, lit from the upper left.
fn drawing(class: Node, number: usize) -> Result<Vec<u8>, png::EncodingError> {
    const SIZE: usize = 96;
    let mut noise = Noise(u64::from(class) * 77 + 5);
    let colour = [0, 1, 2].map(|_| 60.0 + 190.0 * noise.uniform());
    let mut place = Noise(number as u64 * 31 + 1);
    let (x, y) = (40.0 + 16.0 * place.uniform(), 40.0 + 16.0 * place.uniform());
    let radius = 24.0 + 12.0 * place.uniform();
    let mut pixels = Vec::with_capacity(SIZE * SIZE * 3);
    for row in 0..SIZE {
        for column in 0..SIZE {
            let (dx, dy) = (column as f64 - x, row as f64 - y);
            let inside = dx * dx + dy * dy < radius * radius;
            let light = if inside { 0.9 - 0.35 * (dx + dy) / (2.0 * radius) } else { 1.0 };
            let ground = 225.0 - 0.3 * row as f64;
            pixels.extend(
                colour.map(|value| (if inside { value * light } else { ground }).clamp(0.0, 255.0) as u8),
            );
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIZE as u32, SIZE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(bytes)
}
