//! A control plane with load on it, and the controller that is measured.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use control_plane::{ControlPlane, Launch, NodeLeases, Options, Process, Toolbox, free_ports};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::audit::{self, Requests};
use crate::floor;
use crate::manifests::Story;
use crate::observer::{Arrivals, Observer};
use crate::processes::{Usage, own_seconds, usage};

/// The name under which the controller is known to the API server. It may do everything, so that no role is measured.
const USER: &str = "load:controller";
const GROUPS: [&str; 1] = ["system:masters"];

/// Until the kube-scheduler has looked at every pod.
const PENDING_TIMEOUT: Duration = Duration::from_secs(300);
/// Until all pods run. The slowest controller known takes four minutes.
const RUNNING_TIMEOUT: Duration = Duration::from_secs(1200);

/// The histogram of the time that solves take, which every controller of this family has.
const SOLVE_SECONDS: &str = "karpenter_scheduler_scheduling_duration_seconds_sum";

/// A controller.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, program) = text.split_once('=').ok_or("expected NAME=PROGRAM")?;
        Ok(Self { name: name.to_owned(), program: PathBuf::from(program) })
    }
}

/// What one controller made of one story. Times are seconds since its start unless said otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) claims: usize,
    pub(crate) first_claim: f64,
    pub(crate) last_claim: f64,
    /// From the start of the solve to the last claim.
    pub(crate) solve_to_last_claim: f64,
    pub(crate) all_nodes_ready: f64,
    pub(crate) all_bound: f64,
    pub(crate) all_running: f64,
    pub(crate) usage: Usage,
    /// Processor seconds of the control plane's programs and of this one meanwhile.
    pub(crate) others: Vec<(String, f64)>,
    pub(crate) requests: Requests,
}

/// A control plane for one story.
pub(crate) struct Bed {
    control_plane: ControlPlane,
    audit_log: PathBuf,
    client: Client,
    _folder: Folder,
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Bed {
    /// Tells a story to one controller, from an empty cluster to pods that run; and the nodes that it made.
    pub(crate) async fn tell(contender: &Contender, story: Story, definitions: &Path) -> Result<(Figures, Vec<Node>)> {
        let (bed, observer) = Self::prepare(story, definitions).await?;
        let before = bed.others()?;
        let [metrics, health] = free_ports()?;
        let begin = Instant::now();
        let controller = bed.launch(contender, metrics, health)?;
        observer.until("a claim", RUNNING_TIMEOUT, |seen| seen.claims.count() > 0).await?;
        let solve_seconds = sample(&scrape(metrics).await?, SOLVE_SECONDS).unwrap_or(0.0);
        bed.until_running(&observer, story).await?;
        let mut figures = bed.figures(&observer, begin, &before)?;
        figures.usage = usage(controller.group())?;
        figures.solve_to_last_claim = figures.last_claim - figures.first_claim + solve_seconds;
        let nodes = floor::made(bed.nodes().list(&kube::api::ListParams::default()).await?.items);
        controller.stop()?;
        bed.control_plane.stop()?;
        Ok((figures, nodes))
    }

    /// The same with nodes that are all there at once: what no controller could undercut.
    pub(crate) async fn tell_floor(nodes: &[Node], story: Story, definitions: &Path) -> Result<Figures> {
        let (bed, observer) = Self::prepare(story, definitions).await?;
        let before = bed.others()?;
        let begin = Instant::now();
        let (api, parameters) = (bed.nodes(), PostParams::default());
        let created = stream::iter(nodes).map(|node| api.create(&parameters, node)).buffer_unordered(floor::AT_ONCE);
        created.try_for_each(|_| async { Ok(()) }).await.context("create the nodes")?;
        bed.until_running(&observer, story).await?;
        let figures = bed.figures(&observer, begin, &before)?;
        bed.control_plane.stop()?;
        Ok(figures)
    }

    /// A control plane on which the story's pods wait.
    async fn prepare(story: Story, definitions: &Path) -> Result<(Self, Observer)> {
        let bed = Self::start(definitions).await?;
        let observer = Observer::start(&bed.client);
        bed.create(&story.pools())?;
        bed.create(&story.deployments())?;
        let pods = story.pods() as usize;
        observer.until("pods that wait", PENDING_TIMEOUT, |seen| seen.unschedulable.count() >= pods).await?;
        Ok((bed, observer))
    }

    async fn until_running(&self, observer: &Observer, story: Story) -> Result<()> {
        let pods = story.pods() as usize;
        observer.until("pods that run", RUNNING_TIMEOUT, |seen| seen.running.count() >= pods).await
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// What was seen since the beginning, by whomever the nodes were made.
    fn figures(&self, observer: &Observer, begin: Instant, before: &[(String, f64)]) -> Result<Figures> {
        let others = self.others()?.into_iter().zip(before).map(|((name, after), (_, before))| (name, after - before));
        let seen = observer.seen();
        let since = |arrivals: Option<Instant>| arrivals.map_or(0.0, |at| at.duration_since(begin).as_secs_f64());
        let last = |arrivals: &Arrivals| since(arrivals.last);
        Ok(Figures {
            claims: seen.claims.count(),
            first_claim: since(seen.claims.first),
            last_claim: last(&seen.claims),
            solve_to_last_claim: 0.0,
            all_nodes_ready: last(&seen.ready),
            all_bound: last(&seen.bound),
            all_running: last(&seen.running),
            usage: Usage::default(),
            others: others.collect(),
            requests: audit::read(&self.audit_log)?,
        })
    }

    async fn start(definitions: &Path) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("karpenter-load-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("create `{}`", path.display()))?;
        let folder = Folder(path.clone());
        let (policy, audit_log) = (path.join("audit-policy.json"), path.join("audit.log"));
        std::fs::write(&policy, audit::policy(USER).to_string()).context("write the audit policy")?;
        let api_server_flags = vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", audit_log.display()),
        ];
        let options = Options { api_server_flags, node_leases: NodeLeases::Kept, ..Options::default() };
        let control_plane = ControlPlane::start(&Toolbox::ensure()?, &options)?;
        control_plane.run_kubectl(["create", "-f", &definitions.to_string_lossy()])?;
        control_plane.run_kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
        let kubeconfig = Kubeconfig::read_from(control_plane.admin_kubeconfig()).context("read the kubeconfig")?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Self { control_plane, audit_log, client: Client::try_from(config)?, _folder: folder })
    }

    fn create(&self, objects: &[Value]) -> Result<()> {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let file = self.control_plane.log_dir().join("load.json");
        std::fs::write(&file, list.to_string()).context("write the manifests")?;
        self.control_plane.run_kubectl(["create", "-f", &file.to_string_lossy()])?;
        Ok(())
    }

    fn launch(&self, contender: &Contender, metrics: u16, health: u16) -> Result<Process> {
        let log = self.control_plane.log_dir().join(format!("{}.log", contender.name));
        let launch = Launch::new(&contender.name, &contender.program, log)
            .environment("KUBECONFIG", self.control_plane.kubeconfig(USER, &GROUPS)?)
            .environment("SYSTEM_NAMESPACE", "kube-system")
            .environment("DISABLE_LEADER_ELECTION", "true")
            .environment("METRICS_PORT", metrics.to_string())
            .environment("HEALTH_PROBE_PORT", health.to_string());
        Process::start(&launch)
    }

    /// Processor seconds of each program of the control plane, and of this one, which watches.
    fn others(&self) -> Result<Vec<(String, f64)>> {
        let groups = self.control_plane.process_groups();
        let control_plane = groups.into_iter().map(|(name, group)| Ok((name, usage(group)?.cpu_seconds)));
        control_plane.chain([own_seconds().map(|seconds| ("load".to_owned(), seconds))]).collect()
    }
}

async fn scrape(port: u16) -> Result<String> {
    let mut connection = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.context("connect to the metrics")?;
    connection.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    ensure!(answer.split_whitespace().nth(1) == Some("200"), "the metrics endpoint refuses");
    Ok(answer)
}

/// The sum over all label sets of a metric.
fn sample(text: &str, name: &str) -> Option<f64> {
    let lines = text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    lines.map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_over_labels_and_not_over_names() {
        let text = "# TYPE a_sum x\na_sum{controller=\"p\"} 1.5\na_sum 2\na_sum_total 9\n";
        assert_eq!(sample(text, "a_sum"), Some(3.5));
    }

    #[test]
    fn contenders_are_named() {
        let found: Contender = "ours=/bin/true".parse().unwrap();
        assert_eq!((found.name.as_str(), found.program), ("ours", PathBuf::from("/bin/true")));
        assert!("ours".parse::<Contender>().is_err());
    }
}
