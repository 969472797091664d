//! Every figure as a file: SVG that any XML reader takes, PNG of the right size, the same bytes each time.

use gpn_report::{
    AccuracyByDistance, AccuracyBySamples, Answer, Block, ConfusionClass, ConfusionMatrix, Curve,
    DistancePoint, DistanceSeries, Figure, GraphNode, HedgeFigure, HedgeFigurePoint, LearningCurves, Message,
    MessageGraph, Picture, PictureGroup, PictureStrip, PrototypeMap, Report, SampleGroup, ScoreFigure,
    TaskClass, TaskMap, TaskPrototypes, Verdict,
};
use quick_xml::events::Event;

/// A name with everything that could break a file.
const NAME: &str = "cat & <dog> \"owl\" 'x' 犬 \u{7}";

fn figures() -> Vec<Figure> {
    let name = |i: usize| if i == 1 { NAME.to_owned() } else { format!("class {i}") };
    let place = |i: usize| [(i * 7 % 11) as f32, (i * 5 % 13) as f32];
    let map = |subtree| PrototypeMap {
        title: NAME.to_owned(),
        names: (0..30).map(name).collect(),
        positions: (0..30).map(place).collect(),
        edges: (1..30).map(|i| ((i - 1) / 3, i)).collect(),
        subtree,
    };
    let tasks = TaskMap {
        title: NAME.to_owned(),
        tasks: (0..8)
            .map(|t| TaskPrototypes {
                name: name(t),
                classes: (0..5)
                    .map(|c| TaskClass { class: name(t + c), before: place(t * c), after: place(t + c) })
                    .collect(),
            })
            .collect(),
    };
    let distances = AccuracyByDistance {
        title: NAME.to_owned(),
        series: (0..9)
            .map(|s| DistanceSeries {
                name: name(s),
                points: (1..5)
                    .map(|d| DistancePoint {
                        distance: d as f32,
                        accuracy: if d == s { f32::NAN } else { (50 - s * d) as f32 },
                        half_width: 1.0,
                    })
                    .collect(),
            })
            .collect(),
    };
    let messages = MessageGraph {
        title: NAME.to_owned(),
        nodes: (0..12)
            .map(|i| GraphNode { name: name(i), target: i > 6, gate: (i > 0).then_some(i as f32 / 12.0) })
            .collect(),
        edges: (1..12).map(|i| (i / 2, i)).chain([(0, 9)]).filter(|(a, b)| a != b).collect(),
        messages: (2..12).map(|i| Message { from: i / 2, to: i, attention: 0.1 * i as f32 - 0.3 }).collect(),
    };
    let curves = LearningCurves {
        title: NAME.to_owned(),
        x_label: "Episodes".to_owned(),
        y_label: NAME.to_owned(),
        curves: (0..3)
            .map(|c| Curve {
                name: name(c),
                points: (0..500).map(|i| (i as f32, (i * c % 17) as f32)).collect(),
            })
            .collect(),
        window: 9,
    };
    let by_samples = AccuracyBySamples {
        title: NAME.to_owned(),
        groups: (0..7)
            .map(|i| SampleGroup {
                label: name(i),
                classes: i,
                tested: 10 * i,
                accuracy: if i == 3 { f64::NAN } else { 1.0 - 0.1 * i as f64 },
                interval: [0.2, 1.0],
            })
            .collect(),
    };
    let confusion = ConfusionMatrix {
        title: NAME.to_owned(),
        classes: (0..30)
            .map(|i| ConfusionClass { name: name(i), group: name(i / 4), samples: 9, elsewhere: i % 3 })
            .collect(),
        counts: (0..90).map(|i| (i % 30, i * 7 % 30, i * 37)).collect(),
        selection: NAME.to_owned(),
    };
    let point = |confidence: f64| HedgeFigurePoint {
        confidence,
        accuracy: if confidence > 0.9 { f64::NAN } else { 1.0 },
        information: 1.0 - confidence,
        leaf_share: 0.0,
    };
    let hedge = HedgeFigure {
        title: NAME.to_owned(),
        points: (0..=10).map(|i| point(f64::from(i) / 10.0)).collect(),
    };
    let scores = |threshold| ScoreFigure {
        title: NAME.to_owned(),
        low: -2.0,
        high: 3.0,
        known: vec![3, 5, 9, 4, 0, 0, 1],
        unknown: vec![0, 0, 1, 2, 5, 3, 2],
        threshold: Some(threshold),
    };
    vec![
        by_samples.figure(),
        confusion.figure().unwrap(),
        hedge.figure(),
        scores(-1.0).figure(),
        scores(2.5).figure(),
        map(None).figure().unwrap(),
        map(Some(2)).figure().unwrap(),
        tasks.figure().unwrap(),
        distances.figure(),
        messages.figure().unwrap(),
        curves.figure(),
    ]
}

#[test]
fn every_svg_is_well_formed() {
    for figure in figures() {
        let svg = figure.to_svg();
        assert!(!svg.contains("NaN"), "{}", figure.title);
        let mut reader = quick_xml::Reader::from_str(&svg);
        let mut marks = 0;
        loop {
            match reader.read_event().unwrap() {
                Event::Start(tag) | Event::Empty(tag) => {
                    for attribute in tag.attributes() {
                        // Words may hold these letters, places may not.
                        let attribute = attribute.unwrap();
                        let is_word = attribute.key.as_ref() == "aria-label";
                        let value = &attribute.value;
                        assert!(is_word || !value.contains("inf"), "{}: {value}", figure.title);
                    }
                    marks += 1;
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert!(marks > 20, "{marks}");
    }
}

#[test]
fn drawings_stay_on_their_paper() {
    use gpn_report::scene::{Drawn, Step};
    for figure in figures() {
        let scene = &figure.scene;
        for mark in scene.items.iter().flat_map(|item| &item.marks) {
            let points: Vec<[f32; 2]> = match mark {
                Drawn::Shape(shape) => shape
                    .path
                    .0
                    .iter()
                    .flat_map(|step| match *step {
                        Step::Move(p) | Step::Line(p) => vec![p],
                        Step::Curve(a, b, c) => vec![a, b, c],
                        Step::Close => vec![],
                    })
                    .collect(),
                Drawn::Text(text) => vec![text.at],
            };
            for [x, y] in points {
                let on = (0.0..=scene.width).contains(&x) && (0.0..=scene.height).contains(&y);
                assert!(on, "{x} {y} of {} {}: {mark:?}", scene.width, scene.height);
            }
        }
    }
}

#[test]
fn pictures_have_their_size_and_the_same_bytes_each_time() {
    for (first, second) in figures().iter().zip(&figures()) {
        let bytes = first.to_png(1.5).unwrap();
        assert_eq!(bytes, second.to_png(1.5).unwrap());
        assert_eq!(first.to_svg(), second.to_svg());
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.width, (first.scene.width * 1.5).ceil() as u32);
        let coloured = pixels.chunks(3).filter(|p| *p != [255, 255, 255]).count();
        assert!(coloured > pixels.len() / 3 / 200, "{}: {coloured}", first.title);
    }
}

#[test]
fn a_picture_too_large_is_refused() {
    let message = figures()[0].to_png(1000.0).unwrap_err().to_string();
    assert!(message.contains("choose a smaller scale"), "{message}");
}

#[test]
fn figures_without_data_can_be_drawn() {
    let none = String::new;
    let figures = [
        AccuracyByDistance { title: none(), series: vec![] }.figure(),
        AccuracyBySamples::default().figure(),
        ConfusionMatrix::default().figure().unwrap(),
        HedgeFigure::default().figure(),
        ScoreFigure::default().figure(),
        LearningCurves { title: none(), x_label: none(), y_label: none(), curves: vec![], window: 0 }
            .figure(),
        MessageGraph { title: none(), nodes: vec![], edges: vec![], messages: vec![] }.figure().unwrap(),
        TaskMap { title: none(), tasks: vec![] }.figure().unwrap(),
    ];
    for figure in figures {
        assert!(!figure.to_svg().contains("NaN"));
        figure.to_png(1.0).unwrap();
    }
}

#[test]
fn a_report_holds_everything_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let figures = figures();
    let figure = &figures[8];
    let picture = Picture {
        bytes: figure.to_png(0.1).unwrap(),
        name: NAME.to_owned(),
        answers: vec![Answer { label: "after".to_owned(), text: NAME.to_owned(), verdict: Verdict::Right }],
    };
    let strip = PictureStrip {
        groups: vec![PictureGroup { title: "Support".to_owned(), pictures: vec![picture] }],
        caption: String::new(),
    };
    let mut report = Report::new("Title", "Lead");
    report.section("One", vec![Block::Figure(figure.clone()), Block::Pictures(strip)]);
    let path = folder.path().join("report.html");
    report.write(&path).unwrap();
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains("data:image/png;base64,iVBOR"));
    // Addresses of other places would make the page need them; that of the SVG name space is only a name.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(!page.contains("<dog>") && !page.contains("<script"));
}
