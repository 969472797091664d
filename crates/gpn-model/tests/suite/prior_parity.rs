//! The graph prior against dense linear algebra in another program.

use gpn_golden::{Case, assert_close_relative, npz_cases};
use gpn_model::prior::{
    ClassPrior, ClassStatistics, GraphPrior, KnownClasses, Metric, MetricConfig, Posterior,
    StatisticsBuilder, TextConfig, TextPrior, TextRows,
};
use gpn_taxonomy::{Taxonomy, TaxonomyBuilder};

const TOLERANCE: f32 = 1e-4;

struct Data {
    graph: Taxonomy,
    statistics: ClassStatistics,
    /// Samples of each class.
    classes: Vec<Vec<f32>>,
    rounds: Vec<Vec<u32>>,
    dim: usize,
}

fn data(case: &Case) -> Data {
    let dim = case.array("x").shape[1];
    let classes_count = case.array("texts").shape[0];
    let mut builder = TaxonomyBuilder::new();
    for class in 0..classes_count {
        builder.add_class(&class.to_string());
    }
    for edge in case.array("edges").whole().chunks_exact(2) {
        builder.add_edge(edge[0], edge[1], None);
    }
    let mut classes = vec![Vec::new(); classes_count];
    for (row, label) in case.values("x").chunks_exact(dim).zip(case.array("labels").whole()) {
        classes[label as usize].extend_from_slice(row);
    }
    let mut statistics = StatisticsBuilder::new(dim, classes_count).unwrap();
    for (class, rows) in classes.iter().enumerate() {
        statistics.add(class as u32, rows).unwrap();
    }
    Data {
        graph: builder.build().unwrap().taxonomy,
        statistics: statistics.finish().unwrap(),
        classes,
        rounds: (0..3).map(|round| case.array(&format!("hidden{round}")).whole()).collect(),
        dim,
    }
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn check(case: &Case, name: &str, got: &[f32]) {
    assert_close_relative(&format!("{} {name}", case.name), got, case.values(name), TOLERANCE);
}

fn check_priors(case: &Case, name: &str, priors: &[ClassPrior], of: impl Fn(&ClassPrior) -> &[f64]) {
    check(case, name, &priors.iter().flat_map(|prior| single(of(prior))).collect::<Vec<_>>());
}

#[test]
fn prior_parity() {
    for case in npz_cases("i_prior") {
        let Data { graph, statistics, rounds, .. } = data(&case);
        let fitted = GraphPrior::fit_hiding(&graph, &statistics, rounds.clone(), usize::MAX).unwrap();
        check(&case, "within", &single(fitted.within()));
        check(&case, "between", &single(fitted.between()));
        check(&case, "slope", &single(fitted.slope()));
        check(&case, "weight", &[fitted.weight() as f32]);
        let known = KnownClasses::new(&graph, &statistics);
        let new = case.array("new").whole();
        let priors: Vec<ClassPrior> = new.iter().map(|&class| fitted.of(&known, class)).collect();
        check_priors(&case, "prior_mean", &priors, |prior| &prior.mean);
        check_priors(&case, "prior_variance", &priors, |prior| &prior.variance);

        let scaled = fitted.with_scale(1.5).unwrap();
        let samples = case.values("samples");
        for shots in 0..4 {
            let given = &samples[..shots * statistics.dim()];
            let posterior = scaled.posterior(&priors[2], given).unwrap();
            check(&case, &format!("prototype{shots}"), &posterior.prototype);
            check(&case, &format!("variance{shots}"), &posterior.variance);
        }

        let task = case.array("task").whole();
        let classes: Vec<u32> = task.iter().copied().step_by(2).collect();
        let mut rest = case.values("task_samples");
        let mut of_class = Vec::new();
        for &shots in task.iter().skip(1).step_by(2) {
            let (own, others) = rest.split_at(shots as usize * statistics.dim());
            of_class.push(own);
            rest = others;
        }
        let joint = scaled.of_all(&known, &classes).unwrap();
        let posteriors = scaled.posteriors(&joint, &of_class).unwrap();
        let all = |of: fn(&Posterior) -> &[f32]| posteriors.iter().flat_map(of).copied().collect::<Vec<_>>();
        check(&case, "task_prototypes", &all(|posterior| &posterior.prototype));
        check(&case, "task_variances", &all(|posterior| &posterior.variance));

        let texts = TextRows::new(3, case.values("texts")).unwrap();
        let config = TextConfig { nearest: 3, sharpness: 10.0 };
        let by_text = TextPrior::fit_hiding(&texts, &statistics, config, rounds, usize::MAX).unwrap();
        check(&case, "text_weight", &[by_text.weight() as f32]);
        check(&case, "text_variance", &single(by_text.variance()));
        let text_of = |&class: &u32| {
            by_text.of(&texts, &statistics, &case.values("texts")[class as usize * 3..][..3]).unwrap()
        };
        let text_priors: Vec<ClassPrior> = new.iter().map(text_of).collect();
        check_priors(&case, "text_mean", &text_priors, |prior| &prior.mean);
        let joined = priors[2].join(&text_priors[2]).unwrap();
        check(&case, "joined_mean", &single(&joined.mean));
        check(&case, "joined_variance", &single(&joined.variance));
    }
}

#[test]
fn metric_parity() {
    for case in npz_cases("i_prior") {
        let Data { classes, dim, .. } = data(&case);
        let known = classes.iter().map(|rows| &rows[..]).filter(|rows| !rows.is_empty());
        let metric = Metric::fit(MetricConfig::unit_whitened(0.5), dim, known.clone()).unwrap();
        let rows = metric.apply(&case.values("x")[..8 * dim]).unwrap();
        let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let pairs = rows.chunks_exact(dim).flat_map(|a| rows.chunks_exact(dim).map(move |b| distance(a, b)));
        check(&case, "distances", &pairs.collect::<Vec<_>>());

        // The dimensions are those along which classes differ, widest first.
        let mut spectrum = vec![0.0_f64; dim];
        for rows in known.clone() {
            let after = metric.apply(rows).unwrap();
            let n = (rows.len() / dim) as f64;
            for (d, sum) in spectrum.iter_mut().enumerate() {
                let mean = after.iter().skip(d).step_by(dim).map(|&x| f64::from(x)).sum::<f64>() / n;
                *sum += mean * mean;
            }
        }
        let count = known.count() as f64;
        check(&case, "spectrum", &spectrum.iter().map(|sum| (sum / count) as f32).collect::<Vec<_>>());
    }
}
