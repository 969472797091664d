//! Prototypes of several tasks before and after propagation.

use super::prototype_map::View;
use crate::ReportError;
use crate::axes::LABEL_SIZE;
use crate::colour::Colour;
use crate::figure::Figure;
use crate::labels::Area;
use crate::legend::{self, Entry};
use crate::marker::Marker;
use crate::scene::{Anchor, Path, Scene, Shape, Stroke, Text};

/// Several tasks on one map.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskMap {
    /// Title.
    pub title: String,
    /// The tasks; each has a marker.
    pub tasks: Vec<TaskPrototypes>,
}

/// The prototypes of one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPrototypes {
    /// Name of the task.
    pub name: String,
    /// Its classes.
    pub classes: Vec<TaskClass>,
}

/// The prototype of a class in one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskClass {
    /// Name of the class; classes of the same name in several tasks are shared.
    pub class: String,
    /// Place before propagation.
    pub before: [f32; 2],
    /// Place after propagation.
    pub after: [f32; 2],
}

const PANEL: f32 = 344.0;
const MARGIN: f32 = 16.0;
const INSET: f32 = 20.0;

impl TaskMap {
    /// Draws two panels of the same scale: before and after. Classes shared by tasks are coloured and joined to
    /// their middle, so that their spread is seen; the others are grey.
    pub fn figure(&self) -> Result<Figure, ReportError> {
        for task in &self.tasks {
            let odd = task.classes.iter().find(|c| !c.before.iter().chain(&c.after).all(|x| x.is_finite()));
            if let Some(odd) = odd {
                let what =
                    format!("task \"{}\", class \"{}\": a position is no number", task.name, odd.class);
                return Err(ReportError::Figure { figure: self.title.clone(), what });
            }
        }
        let shared = self.shared();
        let colour =
            |class: &str| shared.iter().position(|&s| s == class).map_or(Colour::Faint, Colour::Series);
        let width = 2.0 * PANEL + 3.0 * MARGIN;
        let tasks: Vec<Entry> = self
            .tasks
            .iter()
            .enumerate()
            .map(|(t, task)| {
                Entry::new(12.0, task.name.clone(), move |at| {
                    vec![Marker::of(t).draw(at, 5.0, Colour::Muted)]
                })
            })
            .collect();
        let classes: Vec<Entry> = shared
            .iter()
            .map(|&class| {
                let paint = colour(class);
                Entry::new(14.0, class.to_owned(), move |[x, y]| {
                    let path = Path::rectangle(x - 7.0, y - 5.0, 14.0, 10.0, 3.0);
                    vec![crate::scene::Drawn::Shape(Shape { path, fill: Some(paint.into()), stroke: None })]
                })
            })
            .chain(std::iter::once(Entry::new(14.0, "other classes", |[x, y]| {
                let path = Path::rectangle(x - 7.0, y - 5.0, 14.0, 10.0, 3.0);
                vec![crate::scene::Drawn::Shape(Shape {
                    path,
                    fill: Some(Colour::Faint.into()),
                    stroke: None,
                })]
            })))
            .collect();
        let mut scene = Scene::new(width, 0.0);
        let mut top = 10.0;
        top += legend::draw(&mut scene, &tasks, MARGIN, width - MARGIN, top);
        top += legend::draw(&mut scene, &classes, MARGIN, width - MARGIN, top) + 28.0;

        // Both panels in one frame of reference, placed together and then moved apart.
        let area = Area { left: INSET, top: INSET, right: PANEL - INSET, bottom: PANEL - INSET };
        let all: Vec<[f32; 2]> =
            self.tasks.iter().flat_map(|t| &t.classes).flat_map(|c| [c.before, c.after]).collect();
        let view = View::of(&all, area);
        let places: Vec<[f32; 2]> = all.iter().map(|&p| view.place(p)).collect();
        for (panel, heading) in ["Before propagation", "After propagation"].into_iter().enumerate() {
            let left = MARGIN + panel as f32 * (PANEL + MARGIN);
            let text = Text::new(heading, [left + PANEL / 2.0, top - 9.0], LABEL_SIZE).bold();
            scene.text(text.anchor(Anchor::Middle));
            let border = Path::rectangle(left, top, PANEL, PANEL, 6.0);
            scene.stroke(border, Stroke::new(Colour::Grid, 1.2));
            let at = |i: usize| [places[2 * i + panel][0] + left, places[2 * i + panel][1] + top];
            self.draw_panel(&mut scene, &shared, &at, &colour);
        }
        scene.height = top + PANEL + MARGIN;
        Ok(Figure {
            title: self.title.clone(),
            caption: "Prototypes of several tasks before and after propagation. The marker tells the task; \
                      classes shared by tasks are coloured, and lines lead to the middle of the class: the \
                      shorter they are, the more the tasks agree."
                .to_owned(),
            scene,
        })
    }

    fn draw_panel(
        &self,
        scene: &mut Scene,
        shared: &[&str],
        at: &dyn Fn(usize) -> [f32; 2],
        colour: &dyn Fn(&str) -> Colour,
    ) {
        let flat: Vec<(usize, &TaskClass)> = self
            .tasks
            .iter()
            .enumerate()
            .flat_map(|(t, task)| task.classes.iter().map(move |class| (t, class)))
            .collect();
        for &class in shared {
            let own: Vec<[f32; 2]> = (0..flat.len()).filter(|&i| flat[i].1.class == class).map(at).collect();
            let n = own.len() as f32;
            let middle =
                [own.iter().map(|p| p[0]).sum::<f32>() / n, own.iter().map(|p| p[1]).sum::<f32>() / n];
            for &p in &own {
                scene.stroke(Path::line(&[middle, p]), Stroke::new(colour(class).at(0.5), 1.4));
            }
        }
        let draw = |scene: &mut Scene, grey: bool| {
            for (i, &(t, class)) in flat.iter().enumerate() {
                let paint = colour(&class.class);
                if (paint == Colour::Faint) == grey {
                    let tip = format!("{} in {}", class.class, self.tasks[t].name);
                    scene.tipped(tip, vec![Marker::of(t).draw(at(i), 5.4, paint)]);
                }
            }
        };
        draw(scene, true);
        draw(scene, false);
    }

    /// The classes of more than one task that get a colour: those of most tasks first, then by first sight.
    fn shared(&self) -> Vec<&str> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for class in self.tasks.iter().flat_map(|t| &t.classes) {
            match counts.iter_mut().find(|(name, _)| *name == class.class) {
                Some((_, count)) => *count += 1,
                None => counts.push((&class.class, 1)),
            }
        }
        counts.retain(|&(_, count)| count > 1);
        counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        counts.truncate(Colour::SERIES);
        counts.into_iter().map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_several_tasks_are_shared() {
        let class = |name: &str| TaskClass { class: name.to_owned(), before: [0.0, 1.0], after: [1.0, 0.5] };
        let task = |name: &str, classes: &[&str]| TaskPrototypes {
            name: name.to_owned(),
            classes: classes.iter().map(|c| class(c)).collect(),
        };
        let mut tasks = TaskMap {
            title: "Tasks".to_owned(),
            tasks: vec![
                task("one", &["cat", "dog"]),
                task("two", &["dog", "owl"]),
                task("three", &["owl", "dog"]),
            ],
        };
        assert_eq!(tasks.shared(), ["dog", "owl"]);
        assert!(tasks.figure().unwrap().to_svg().contains("<title>owl in three</title>"));
        tasks.tasks[1].classes[0].after[0] = f32::INFINITY;
        let message = tasks.figure().unwrap_err().to_string();
        assert!(message.contains("task \"two\", class \"dog\""), "{message}");
    }
}
