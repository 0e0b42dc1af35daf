//! Small clusters made up by chance, as text, the same for the same seed everywhere.

use fastrand::Rng;

/// How large a made-up cluster is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The fewest pods.
    pub(crate) pods_min: usize,
    /// The most.
    pub(crate) pods_max: usize,
    /// Whether pools may have limits.
    pub(crate) limits: bool,
    /// Whether pods may have volumes.
    pub(crate) volumes: bool,
}

/// The cluster of a seed.
pub(crate) fn cluster(seed: u64, size: Size) -> String {
    let mut chance = Chance(Rng::with_seed(seed));
    let mut lines = chance.types();
    lines.extend(chance.pools(size.limits));
    lines.extend(chance.nodes());
    lines.extend(chance.pods(size));
    lines.join("\n")
}

/// A cluster whose first pool is dear and has limits now and then, so that plans have to pay for the order of pools.
pub(crate) fn cluster_with_preference(seed: u64) -> String {
    let mut chance = Chance(Rng::with_seed(seed));
    let mut lines: Vec<String> = (0..chance.0.usize(1..=3)).map(|index| chance.small_type(index)).collect();
    let limit = chance.perhaps(85, &["limit.cpu=4", "limit.cpu=6", "limit.cpu=8", "limit.mem=12Gi", "limit.nodes=2"]);
    let also =
        chance.perhaps(10, &["limit.mem=16Gi", "used.cpu=1", "require=arch:In:amd64", "taint=hard=1:NoSchedule"]);
    lines.push(format!("pool dear weight=9 require=capacity:In:on-demand{limit}{also}"));
    if chance.percent(25) {
        let limit = chance.perhaps(50, &["limit.cpu=3", "limit.cpu=5"]);
        lines.push(format!("pool middle weight=5 require=zone:In:a{limit}"));
    }
    let last = chance.perhaps(15, &["require=arch:In:amd64", "require=zone:In:b", "limit.cpu=20"]);
    lines.push(format!("pool cheap{last}"));
    if chance.percent(15) {
        lines.push("node n0 cpu=2 mem=8Gi label=zone=a".to_owned());
    }
    let mut left = chance.0.usize(3..=7);
    while left > 0 {
        let count = chance.0.usize(1..=left.min(5));
        left -= count;
        let mut pod = format!("pod app{left}*{count} cpu={}", chance.pick(&["500m", "900m", "1", "1500m", "1900m"]));
        pod += &chance.perhaps(60, &["mem=1Gi", "mem=2Gi", "mem=4Gi"]);
        let demands =
            ["select=zone=a", "select=arch=amd64", "select=arch=arm64", "select=capacity=on-demand", "tolerate=hard"];
        pod += &chance.perhaps(35, &demands);
        pod += &chance.perhaps(10, &["spread=zone/1", "away=host", "port=80"]);
        lines.push(pod);
    }
    lines.join("\n")
}

struct Chance(Rng);

impl Chance {
    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.0.usize(..words.len())]
    }

    /// True so many times in a hundred.
    fn percent(&mut self, percent: u8) -> bool {
        self.0.u8(..100) < percent
    }

    /// A word now and then.
    fn perhaps(&mut self, percent: u8, words: &[&str]) -> String {
        if self.percent(percent) { format!(" {}", self.pick(words)) } else { String::new() }
    }

    fn types(&mut self) -> Vec<String> {
        (0..self.0.usize(1..=6)).map(|index| self.one_type(index)).collect()
    }

    fn one_type(&mut self, index: usize) -> String {
        let (cpu, ratio) = (self.0.u32(1..=9), self.0.u32(2..=6));
        let per_core = 0.03 + f64::from(self.0.u32(..40)) / 1000.0;
        let price = f64::from(cpu) * per_core + f64::from(self.0.u32(..30)) / 1000.0;
        let mut line = format!("type t{index} cpu={cpu} mem={}Gi", cpu * ratio);
        line += &self.perhaps(15, &["arch=arm64"]);
        line += &self.perhaps(10, &["pods=3", "pods=4"]);
        line += &self.perhaps(15, &["overhead.cpu=150m", "overhead.mem=300Mi"]);
        let mut zones: Vec<&str> = ["a", "b", "c"].into_iter().filter(|_| self.percent(65)).collect();
        if zones.is_empty() {
            zones.push("a");
        }
        for zone in zones {
            let here = price * (1.0 + f64::from(self.0.u32(..3)) / 20.0);
            let sold_out = if self.percent(6) { "!" } else { "" };
            line += &format!(" {sold_out}{zone}:{here:.4}");
            if self.percent(30) {
                line += &format!(" spot:{zone}:{:.4}", here * (0.3 + f64::from(self.0.u32(..40)) / 100.0));
            }
        }
        line
    }

    /// Two or three cores are sold in any number, and cheaper on spot.
    fn small_type(&mut self, index: usize) -> String {
        let (cpu, ratio) = (self.0.u32(1..=3), self.0.u32(2..=5));
        let price = f64::from(cpu) * (0.04 + f64::from(self.0.u32(..20)) / 1000.0);
        let spot = price * (0.3 + f64::from(self.0.u32(..30)) / 100.0);
        let arch = self.perhaps(25, &["arch=arm64"]);

        format!("type t{index} cpu={cpu} mem={}Gi{arch} a:{price:.4} spot:a:{spot:.4}", cpu * ratio)
    }

    fn pools(&mut self, limits: bool) -> Vec<String> {
        let count = if self.percent(60) { 1 } else { 2 };
        let one = |index: usize, chance: &mut Self| {
            let mut line = format!("pool pool{index}");
            line += &chance.perhaps(40, &["weight=5", "weight=9"]);
            line +=
                &chance.perhaps(15, &["require=zone:In:a|b", "require=zone:In:c|b", "require=capacity:In:on-demand"]);
            line += &chance.perhaps(15, &["label=team=x", "require=arch:In:amd64"]);
            line += &chance.perhaps(12, &["taint=hard=1:NoSchedule"]);
            if limits {
                line += &chance
                    .perhaps(30, &["limit.cpu=6", "limit.cpu=11", "limit.nodes=1", "limit.nodes=2", "limit.mem=20Gi"]);
                line += &chance.perhaps(10, &["used.cpu=2 used.nodes=1"]);
            }
            line
        };
        (0..count).map(|index| one(index, self)).collect()
    }

    fn nodes(&mut self) -> Vec<String> {
        let count = self.0.usize(..=2);
        let mut lines = Vec::new();
        for index in 0..count {
            let stage = if self.percent(25) { "joining" } else { "node" };
            let size =
                self.pick(&["cpu=2 mem=4Gi", "cpu=4 mem=8Gi used.cpu=1500m", "cpu=4 mem=16Gi pods=3", "cpu=1 mem=2Gi"]);
            let zone = self.pick(&["a", "b", "c"]);
            let labels = self.perhaps(20, &["label=team=x", "label=arch=amd64"]);
            let taint = self.perhaps(15, &["taint=hard=1:NoSchedule"]);
            lines.push(format!("{stage} n{index} {size} label=zone={zone}{labels}{taint}"));
            if self.percent(40) {
                let app = self.pick(&["app0", "app1", "app2"]);
                let away = self.perhaps(15, &["away=host:app=app0", "away=zone:app=app1"]);
                lines.push(format!("on n{index}: {app}*{}{away}", self.0.u32(1..=2)));
            }
        }
        lines
    }

    fn pods(&mut self, size: Size) -> Vec<String> {
        let mut left = self.0.usize(size.pods_min..=size.pods_max);
        let mut lines = Vec::new();
        while left > 0 {
            let count = self.0.usize(1..=left.min(5));
            left -= count;
            let name = format!("app{}", lines.len());
            lines.push(format!("pod {name}*{count} {}", self.demands(size.volumes)));
        }
        lines
    }

    fn demands(&mut self, volumes: bool) -> String {
        let cpu = self.pick(&["300m", "500m", "700m", "1", "1300m", "1900m", "2500m", "3100m"]);
        let mut line = format!("cpu={cpu}");
        line += &self.perhaps(60, &["mem=500Mi", "mem=1Gi", "mem=3Gi", "mem=5Gi"]);
        line += &self.perhaps(20, &["priority=5", "priority=-1"]);
        line += &self.perhaps(15, &["tolerate=hard"]);
        let selections = [
            "select=zone=a",
            "affinity=zone:In:b|c",
            "select=arch=amd64",
            "select=team=x",
            "select=capacity=on-demand",
        ];
        line += &self.perhaps(20, &selections);
        line += &self.perhaps(5, &["port=80"]);
        if volumes {
            line += &self.perhaps(5, &["volume=zone:a", "volume=zone:b|c"]);
        }
        line += &self
            .perhaps(20, &["spread=zone/1", "spread=zone/2", "spread=host/1", "spread=host/2", "spread=zone/1/min=3"]);
        line += &self.perhaps(15, &["away=host", "away=zone", "away=host:app=app0"]);
        line += &self.perhaps(12, &["near=zone", "near=zone:app=app0", "near=host", "near=zone:app=app1"]);
        line
    }
}
