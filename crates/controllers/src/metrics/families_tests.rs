use expect_test::expect;

use super::*;
use crate::metrics::table::Source;

fn row(name: &'static str, kind: Kind, labels: &'static [&'static str]) -> Row {
    Row { name, kind, labels, help: "Told in a test", source: Source::Counted }
}

fn registry() -> Registry {
    Registry::new(Naming { node_class: "class".to_owned(), well_known: Vec::new() })
}

fn told(registry: Registry) -> String {
    let mut page = Page::default();
    registry.finish().1.iter().for_each(|family| family.write(&mut page));
    page.into_text()
}

/// Numbers are spelt as in the reference's scrape; bounds of histograms are part of a series' name.
#[test]
fn numbers_are_spelt_as_go_spells_them() {
    let table = [
        (0.0, "0"),
        (1.0, "1"),
        (-3.0, "-3"),
        (0.005, "0.005"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (10e-9, "1e-08"),
        (999_999.0, "999999"),
        (864_000.0, "864000"),
        (1_000_000.0, "1e+06"),
        (2_592_000.0, "2.592e+06"),
        (1_700_000_123.5, "1.7000001235e+09"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (f64::NAN, "NaN"),
    ];
    for (value, spelt) in table {
        assert_eq!(number(value), spelt);
    }
}

/// Every kind of family in one scrape: sorted by labels, escaped, and nothing of families without values.
#[test]
fn families_are_told() {
    let mut registry = registry();
    let counter: Counter<2> = registry.family(&row("things_total", Kind::Counter, &["b", "a"]));
    let gauge: Gauge<0> = registry.family(&row("level", Kind::Gauge, &[]));
    let _silent: Gauge<0> = registry.family(&row("silent", Kind::Gauge, &[]));
    let histogram: Histogram<1> = registry.family(&row("sizes", Kind::Histogram(&[1.0, 2.5]), &["{NodeClass}"]));
    let summary: Summary<0> = registry.family(&row("waits", Kind::Summary, &[]));
    counter.inc(["y", "quote \" slash \\ line\n"]);
    counter.add(["x", ""], 2.0);
    gauge.set([], 0.5);
    gauge.change([], -1.0);
    for size in [0.5, 1.0, 2.0, 99.0] {
        histogram.observe(["k"], size);
    }
    (1..=10).for_each(|wait| summary.observe([], f64::from(wait)));
    expect![[r#"
        # HELP things_total Told in a test
        # TYPE things_total counter
        things_total{b="x",a=""} 2
        things_total{b="y",a="quote \" slash \\ line\n"} 1
        # HELP level Told in a test
        # TYPE level gauge
        level -0.5
        # HELP sizes Told in a test
        # TYPE sizes histogram
        sizes_bucket{class="k",le="1"} 2
        sizes_bucket{class="k",le="2.5"} 3
        sizes_bucket{class="k",le="+Inf"} 4
        sizes_sum{class="k"} 102.5
        sizes_count{class="k"} 4
        # HELP waits Told in a test
        # TYPE waits summary
        waits{quantile="0"} 1
        waits{quantile="0.5"} 5
        waits{quantile="0.9"} 9
        waits{quantile="0.99"} 10
        waits{quantile="1"} 10
        waits_sum 55
        waits_count 10
    "#]]
    .assert_eq(&told(registry));
}

/// What is no more is no longer told.
#[test]
fn gauges_forget() {
    let mut registry = registry();
    let gauge: Gauge<1> = registry.family(&row("level", Kind::Gauge, &["of"]));
    gauge.set(["a"], 1.0);
    gauge.replace([(["b".to_owned()], 2.0), (["c".to_owned()], 3.0)]);
    gauge.forget(["b"]);
    let text = told(registry);
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(), [r#"level{of="c"} 3"#]);
}

/// Quantiles are about the newest values; sum and count about all.
#[test]
fn summaries_forget_the_oldest() {
    let mut registry = registry();
    let summary: Summary<0> = registry.family(&row("waits", Kind::Summary, &[]));
    (0..SUMMARY_VALUES_MAX).for_each(|_| summary.observe([], 1000.0));
    (0..SUMMARY_VALUES_MAX).for_each(|_| summary.observe([], 1.0));
    let text = told(registry);
    assert!(text.contains("waits{quantile=\"1\"} 1\n") && text.contains("waits_count 2048\n"), "{text}");
}
