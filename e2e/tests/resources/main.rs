//! The custom resources on an API server: every case of `fixtures/resources` is sent there and must go as written,
//! and what `kubectl` shows of each kind is what users of the reference know.

mod case;
mod server;
mod shown;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kube::Client;

use crate::case::{Flavour, read_cases};
use crate::server::Server;

e2e::api_server_tests! {
    eks_resources_behave_as_written,
    kwok_resources_behave_as_written,
    kubectl_sees_names_and_columns_as_written,
}

/// The rows that each case proves stand in its file.
async fn eks_resources_behave_as_written(client: Client) -> Result<()> {
    resources_behave_as_written(client, Flavour::Eks).await
}

/// The rows that each case proves stand in its file.
async fn kwok_resources_behave_as_written(client: Client) -> Result<()> {
    resources_behave_as_written(client, Flavour::Kwok).await
}

async fn resources_behave_as_written(client: Client, flavour: Flavour) -> Result<()> {
    let mut cases = read_cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/resources"))?;
    cases.retain(|case| case.flavour == flavour);
    ensure!(!cases.is_empty(), "there is no case for {flavour:?}");
    let server = Server::install(client, &definitions(flavour)?).await?;
    trial::await_rules(&server, &cases).await?;
    let failures = trial::run(&server, &cases).await;
    assert!(failures.is_empty(), "{}", trial::report(&failures, cases.len()));
    Ok(())
}

/// API-01, API-02, API-03, API-04, API-05, API-06, AWS-NC-01
async fn kubectl_sees_names_and_columns_as_written(client: Client) -> Result<()> {
    let mut files = definitions(Flavour::Kwok)?;
    // The kinds that both charts ship differ only in the rules, so that one of each is enough here.
    files.extend(definitions(Flavour::Eks)?.into_iter().filter(|file| file.ends_with(EC2_NODE_CLASSES)));
    let server = Server::install(client, &files).await?;
    let mut differences = Vec::new();
    for kind in &shown::KINDS {
        differences.extend(shown::differences(&server, kind).await?);
    }
    for (object, printed) in [shown::printed_pool(), shown::printed_claim()] {
        differences.extend(shown::cell_differences(&server, &object, &printed).await?);
    }
    assert!(differences.is_empty(), "not as written:\n{}\n", differences.join("\n"));
    Ok(())
}

/// The one file that only the chart for EKS has.
const EC2_NODE_CLASSES: &str = "karpenter.k8s.aws_ec2nodeclasses.yaml";

/// The files with the definitions that a flavour's chart ships.
fn definitions(flavour: Flavour) -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts").join(flavour.chart()).join("crds");
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list `{}`", folder.display()))? {
        files.push(entry.with_context(|| format!("list `{}`", folder.display()))?.path());
    }
    ensure!(!files.is_empty(), "there is no definition in `{}`", folder.display());
    files.sort();
    Ok(files)
}
