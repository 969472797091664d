//! Draws every figure, table and a sample report from made-up data:
//! `cargo run -p gpn-report --example gallery -- FOLDER`.
//!
//! The numbers have no meaning; they exercise the drawing.

use gpn_report::{
    AccuracyByDistance, Answer, Block, Card, Cell, Column, Curve, DistancePoint, DistanceSeries, Figure,
    GraphNode, LearningCurves, Message, MessageGraph, Picture, PictureGroup, PictureStrip, PrototypeMap,
    Report, ReportError, Table, TaskClass, TaskMap, TaskPrototypes, TsneSettings, Verdict, published,
    to_markdown, tsne, write_file,
};
use std::path::PathBuf;

/// Noise from a fixed rule.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    /// About normal: mean 0, deviation 1.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }
}

const TREE: [(&str, &[&str]); 13] = [
    ("animal", &["mammal", "bird", "reptile", "insect", "fish"]),
    ("mammal", &["dog, domestic dog, Canis familiaris", "cat, true cat", "ungulate", "rodent", "primate"]),
    (
        "dog, domestic dog, Canis familiaris",
        &["Siberian husky", "golden retriever", "beagle", "poodle", "Great Dane", "Chihuahua"],
    ),
    ("cat, true cat", &["tabby", "Persian cat", "Siamese cat", "Egyptian cat"]),
    ("ungulate", &["zebra", "ox", "bighorn", "hartebeest", "llama"]),
    ("rodent", &["hamster", "porcupine", "fox squirrel", "marmot"]),
    ("primate", &["orangutan", "gorilla", "gibbon", "macaque", "baboon"]),
    ("bird", &["songbird", "bird of prey", "waterfowl"]),
    ("songbird", &["robin", "goldfinch", "junco", "indigo bunting"]),
    ("bird of prey", &["kite", "bald eagle", "vulture", "great grey owl"]),
    ("waterfowl", &["goose", "black swan", "drake"]),
    ("reptile", &["green iguana", "agama", "box turtle", "mud turtle", "king snake"]),
    ("insect", &["ladybug", "monarch", "dragonfly", "mantis", "cicada"]),
];

fn prototype_map(noise: &mut Noise, subtree: Option<&str>) -> Result<Figure, ReportError> {
    const DIM: usize = 24;
    let mut names = vec!["animal".to_owned()];
    let mut points: Vec<Vec<f32>> = vec![vec![0.0; DIM]];
    let mut edges = Vec::new();
    for (depth, (parent, children)) in TREE.iter().enumerate() {
        let p = names.iter().position(|n| n == parent).unwrap_or(0);
        for child in *children {
            edges.push((p, names.len()));
            names.push((*child).to_owned());
            let reach = if depth == 0 { 1.0 } else { 0.9 };
            let point = points[p].iter().map(|v| v + reach * noise.normal()).collect();
            points.push(point);
        }
    }
    for group in 0..6 {
        let centre: Vec<f32> = (0..DIM).map(|_| 1.1 * noise.normal()).collect();
        let first = names.len();
        for i in 0..16 {
            names.push(format!("artefact {group}-{i}"));
            points.push(centre.iter().map(|v| v + noise.normal()).collect());
            if i > 0 {
                edges.push((first, first + i));
            }
        }
    }
    let flat: Vec<f32> = points.concat();
    let positions = tsne(&flat, DIM, &TsneSettings { perplexity: 20.0, ..TsneSettings::default() })?;
    let subtree = subtree.and_then(|name| names.iter().position(|n| n == name));
    PrototypeMap { title: "Training prototypes".to_owned(), names, positions, edges, subtree }.figure()
}

fn tasks(noise: &mut Noise) -> Result<Figure, ReportError> {
    let classes = ["otter", "seal", "walrus", "owl", "kite", "robin", "beagle", "tabby", "zebra", "gorilla"];
    let centres: Vec<[f32; 2]> =
        classes.iter().map(|_| [noise.normal() * 6.0, noise.normal() * 6.0]).collect();
    let picks = [[0, 1, 2, 3, 6], [1, 2, 4, 3, 7], [0, 2, 3, 5, 8], [1, 0, 3, 9, 4]];
    let tasks = picks
        .iter()
        .enumerate()
        .map(|(t, picks)| TaskPrototypes {
            name: format!("task {}", t + 1),
            classes: picks
                .iter()
                .map(|&c| {
                    let mut near = |reach: f32| {
                        [centres[c][0] + reach * noise.normal(), centres[c][1] + reach * noise.normal()]
                    };
                    TaskClass { class: classes[c].to_owned(), before: near(4.0), after: near(0.9) }
                })
                .collect(),
        })
        .collect();
    TaskMap { title: "Prototypes before and after propagation".to_owned(), tasks }.figure()
}

fn by_distance(noise: &mut Noise) -> Figure {
    let methods =
        [("GPN+", 54.0, 2.0), ("GPN", 52.0, 2.2), ("Prototypical Net", 46.0, 0.8), ("PPN", 45.0, 1.4)];
    let series = methods
        .iter()
        .map(|&(name, start, fall)| DistanceSeries {
            name: name.to_owned(),
            points: (1..=7)
                .map(|d| DistancePoint {
                    distance: d as f32,
                    accuracy: start - fall * (d as f32 - 1.0) + noise.normal() * 0.5,
                    half_width: 0.7 + 0.12 * (d * d) as f32 * 0.5,
                })
                .collect(),
        })
        .collect();
    AccuracyByDistance { title: "Accuracy by distance to the training classes".to_owned(), series }.figure()
}

fn messages(noise: &mut Noise) -> Result<Figure, ReportError> {
    let names = [
        "animal",
        "carnivore",
        "bird",
        "canine",
        "feline",
        "bird of prey",
        "pet",
        "Siberian husky",
        "beagle",
        "tabby",
        "snow leopard",
        "great grey owl, great gray owl, Strix nebulosa",
        "kite",
    ];
    let edges = vec![
        (0, 1),
        (0, 2),
        (1, 3),
        (1, 4),
        (2, 5),
        (3, 7),
        (3, 8),
        (4, 9),
        (4, 10),
        (5, 11),
        (5, 12),
        (0, 6),
        (6, 8),
        (6, 9),
    ];
    let nodes = names
        .iter()
        .enumerate()
        .map(|(i, name)| GraphNode {
            name: (*name).to_owned(),
            target: [7, 8, 9, 10, 11].contains(&i),
            gate: Some(0.27 + 0.46 * noise.uniform()),
        })
        .collect();
    let mut messages = Vec::new();
    for to in 0..names.len() {
        let near: Vec<usize> = edges
            .iter()
            .filter_map(|&(a, b)| if a == to { Some(b) } else { (b == to).then_some(a) })
            .collect();
        let scores: Vec<f32> = near.iter().map(|_| (noise.normal() * 0.9).exp()).collect();
        let sum: f32 = scores.iter().sum();
        messages.extend(near.iter().zip(&scores).map(|(&from, s)| Message { from, to, attention: s / sum }));
    }
    MessageGraph { title: "Who told whom how much".to_owned(), nodes, edges, messages }.figure()
}

fn curves(noise: &mut Noise) -> Figure {
    let runs = [("GPN+", 56.0, 5000.0), ("GPN", 53.0, 6000.0), ("Prototypical Net", 48.0, 4000.0)];
    let curves = runs
        .iter()
        .map(|&(name, best, pace)| Curve {
            name: name.to_owned(),
            points: (0..300)
                .map(|i| {
                    let step = i as f32 * 100.0;
                    (step, best - (best - 20.0) * (-step / pace).exp() + noise.normal() * 1.6)
                })
                .collect(),
        })
        .collect();
    LearningCurves {
        title: "Learning curves".to_owned(),
        x_label: "Episodes".to_owned(),
        y_label: "Validation accuracy (%)".to_owned(),
        curves,
        window: 25,
    }
    .figure()
}

fn results_table(noise: &mut Noise) -> Result<Table, ReportError> {
    let mut columns = Vec::new();
    for (way, shot) in published::TASKS {
        let group = format!("{way}-way {shot}-shot");
        columns.push(Column::new("ours").under(&group).higher_is_better());
        columns.push(Column::new("published").under(&group));
    }
    let mut table = Table::new("Accuracy (%) on Close, random tasks", "Method", columns);
    for (method, accuracies) in published::RESULTS[0].rows {
        let mut cells = Vec::new();
        for (i, a) in accuracies.iter().enumerate() {
            let ours = a.mean - 3.0 + f64::from(noise.normal()) * 0.4;
            cells.push(Cell::estimate(ours, 0.8).linked(format!("runs/{method}/{i}/report.html")));
            cells.push(Cell::estimate(a.mean, a.half_width));
        }
        table.row(method, cells)?;
        if method == "GPN" {
            table.rule();
        }
    }
    table.mark_best();
    table.note("600 tasks for each number; each of ours links to its run.");
    Ok(table)
}

fn demo_table() -> Result<Table, ReportError> {
    let columns = vec![
        Column::new("Close").under("Accuracy (%)").higher_is_better(),
        Column::new("Far").under("Accuracy (%)").higher_is_better(),
        Column::new("Close").under("Gain over no propagation").signed(),
        Column::new("Far").under("Gain over no propagation").signed(),
        Column::new("uses the graph"),
    ];
    let mut table = Table::new("Four ways to answer the same 600 tasks", "Method", columns);
    let rows = [
        ("Nearest prototype on pixels", [31.4, 33.0], None, "no"),
        ("Network without propagation", [48.9, 47.2], None, "no"),
        ("GPN", [55.1, 50.3], Some([6.21, 3.12]), "training classes"),
        ("GPN+", [57.3, 50.1], Some([8.44, 2.93]), "all classes"),
    ];
    for (name, accuracy, gain, graph) in rows {
        let mut cells: Vec<Cell> = accuracy.iter().map(|&a| Cell::estimate(a, 0.91)).collect();
        match gain {
            Some(gain) => cells.extend(gain.map(|g| Cell::estimate(g, 0.42))),
            None => cells.extend([Cell::empty(), Cell::empty()]),
        }
        cells.push(Cell::text(graph));
        table.row(name, cells)?;
    }
    table.mark_best();
    Ok(table)
}

/// A small picture: a coloured shape on a ground.
fn picture(noise: &mut Noise, kind: usize) -> Result<Vec<u8>, png::EncodingError> {
    const SIDE: usize = 32;
    let grounds = [[222, 210, 180], [180, 205, 225], [190, 215, 185], [215, 190, 210], [200, 200, 200]];
    let inks = [[150, 70, 40], [40, 80, 140], [50, 110, 60], [120, 50, 110], [70, 70, 70]];
    let (cx, cy) = (12.0 + 8.0 * noise.uniform(), 12.0 + 8.0 * noise.uniform());
    let mut pixels = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (dx, dy) = (x as f32 - cx, y as f32 - cy);
            let inside = match kind {
                0 => dx * dx + dy * dy < 80.0,
                1 => dx.abs() < 8.0 && dy.abs() < 8.0,
                2 => dx.abs() + dy.abs() < 11.0,
                3 => dy.abs() < 4.0 || dx.abs() < 4.0,
                _ => dy > -8.0 && dy < 8.0 && dx.abs() < (dy + 8.0) * 0.6,
            };
            let base = if inside { inks[kind] } else { grounds[kind] };
            pixels.extend(base.map(|v: i32| (v + (noise.normal() * 9.0) as i32).clamp(0, 255) as u8));
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(bytes)
}

fn strip(noise: &mut Noise) -> Result<PictureStrip, png::EncodingError> {
    let names = ["otter", "Siberian husky", "great grey owl", "kite", "tabby"];
    let mut support = Vec::new();
    let mut queries = Vec::new();
    for (kind, name) in names.iter().enumerate() {
        let bytes = picture(noise, kind)?;
        support.push(Picture { bytes, name: (*name).to_owned(), answers: vec![] });
    }
    for i in 0..8 {
        let kind = i % 5;
        let answer = |label: &str, right: bool| Answer {
            label: label.to_owned(),
            text: names[if right { kind } else { (kind + 2) % 5 }].to_owned(),
            verdict: if right { Verdict::Right } else { Verdict::Wrong },
        };
        let answers = vec![answer("before", i % 3 == 0), answer("after", i != 5)];
        queries.push(Picture { bytes: picture(noise, kind)?, name: names[kind].to_owned(), answers });
    }
    Ok(PictureStrip {
        groups: vec![
            PictureGroup { title: "Support: one picture of each class".to_owned(), pictures: support },
            PictureGroup { title: "Queries, and what was answered".to_owned(), pictures: queries },
        ],
        caption: "One 5-way 1-shot task. Before: nearest prototype without propagation. After: GPN+."
            .to_owned(),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("usage: gallery FOLDER")?.into();
    let mut noise = Noise(7);
    let map = prototype_map(&mut noise, Some("mammal"))?;
    let whole_map = prototype_map(&mut noise, None)?;
    let tasks = tasks(&mut noise)?;
    let by_distance = by_distance(&mut noise);
    let messages = messages(&mut noise)?;
    let curves = curves(&mut noise);
    let figures = [
        ("prototype-map", &map),
        ("prototype-map-whole", &whole_map),
        ("task-prototypes", &tasks),
        ("accuracy-by-distance", &by_distance),
        ("messages", &messages),
        ("learning-curves", &curves),
    ];
    for (name, figure) in figures {
        figure.write(&folder, name)?;
    }
    let results = results_table(&mut noise)?;
    write_file(folder.join("results.md"), to_markdown(&results))?;

    let mut report = Report::new(
        "Classes that know their relatives",
        "A network trained in four minutes on the built-in data, asked about classes it has never seen, with and \
         without messages between related classes. All numbers on this sample page are made up.",
    );
    report
        .card(Card::new("GPN+ on Close", "57.3 %").detail("± 0.9 over 600 tasks").accent())
        .card(Card::new("without propagation", "48.9 %").detail("same network, same tasks"))
        .card(Card::new("gain per task", "+8.4 points").detail("± 0.4, paired"))
        .card(Card::new("training time", "3 min 41 s").detail("2 cores, 6,000 episodes"));
    report
        .section(
            "What propagation brings",
            vec![
                Block::Text(
                    "Every method answers the same tasks. Close test classes have relatives among the training \
                     classes, Far ones hardly any; `GPN+` also hears from classes of the task itself."
                        .to_owned(),
                ),
                Block::Table(demo_table()?),
                Block::Note(
                    "Intervals are for the mean over tasks of one trained network; another seed of the training \
                     can move all numbers by about a point."
                        .to_owned(),
                ),
            ],
        )
        .section("One task", vec![Block::Pictures(strip(&mut noise)?), Block::Figure(messages)])
        .section("Training", vec![Block::Figure(curves)])
        .section("Beside the published numbers", vec![Block::Table(results), Block::Figure(by_distance)])
        .section(
            "The map of classes",
            vec![
                Block::Figure(map),
                Block::Figure(whole_map),
                Block::Figure(tasks),
                Block::Details {
                    summary: "How to make this page again".to_owned(),
                    blocks: vec![
                        Block::Text("Same seed, same bits.".to_owned()),
                        Block::Code("gpn demo --seed 7 --out demo\ngpn eval demo/run --data demo/data".to_owned()),
                    ],
                },
            ],
        )
        .environment("Version", "gpn 0.1.0")
        .environment("Seed", "7")
        .environment("Command", "`gpn demo --seed 7 --out demo`")
        .environment("Machine", "2 cores, AVX-512");
    report.write(folder.join("report.html"))?;
    println!("{}", folder.join("report.html").display());
    Ok(())
}
