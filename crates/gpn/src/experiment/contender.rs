//! The rows of a table of results: methods with their settings.

use gpn_model::methods::MethodKind;
use gpn_train::Hierarchy;

/// The one that others are compared with, task by task.
pub(crate) const BASELINE: &str = "protonet";

/// A row of a table.
pub(crate) struct Contender {
    /// Its name in the table.
    pub(crate) title: String,
    /// The folder of its runs, without the shape of tasks.
    pub(crate) run: &'static str,
    pub(crate) method: &'static str,
    pub(crate) settings: &'static [&'static str],
    /// Whether it sees the place of test classes in the graph.
    pub(crate) hierarchy: Hierarchy,
    /// Its name in the published tables.
    pub(crate) published: Option<&'static str>,
}

impl Contender {
    fn new(kind: &MethodKind, published: Option<&'static str>) -> Self {
        Self {
            title: kind.title.into(),
            run: kind.name,
            method: kind.name,
            settings: &[],
            hierarchy: Hierarchy::Known,
            published,
        }
    }
}

/// Every method, in the order of the published tables; those not published come first.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut contenders = Vec::new();
    for kind in MethodKind::all() {
        match kind.name {
            "gpn" => {
                contenders
                    .push(Contender { hierarchy: Hierarchy::Unknown, ..Contender::new(kind, Some("GPN")) });
                contenders.push(Contender { title: "GPN+".into(), ..Contender::new(kind, Some("GPN+")) });
            }
            "protonet" => {
                contenders.push(Contender {
                    title: format!("{}, no auxiliary task", kind.title),
                    run: "protonet-tasks",
                    settings: &["schedule.auxiliary=false"],
                    ..Contender::new(kind, None)
                });
                contenders.push(Contender::new(kind, Some("Prototypical Net")));
            }
            "gnn" => contenders.push(Contender::new(kind, Some("GNN"))),
            "baseline++" => contenders.push(Contender::new(kind, Some("Closer Look"))),
            "ppn" => contenders.push(Contender::new(kind, Some("PPN"))),
            _ => contenders.push(Contender::new(kind, None)),
        }
    }
    contenders
}
