//! Somebody who does not admit what we write, which only a real API server can have.

use std::net::TcpListener;

use anyhow::{Context, Result, ensure};
use e2e::{Bed, Controller, ControllerProcess, RealBed, wait_for, wait_until};

use crate::scene::{all_run, alone, ask_for_pods, check_claims, set};

/// Rejects new claims, in words.
const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: frozen
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [karpenter.sh]
      apiVersions: [\"*\"]
      operations: [CREATE]
      resources: [nodeclaims]
  validations:
  - expression: \"false\"
    message: no new machines during the freeze
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: frozen
spec:
  policyName: frozen
  validationActions: [Deny]
";

/// A claim that nothing but the policy objects to.
const TRIAL: &str = "apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: trial
spec:
  nodeClassRef:
    group: karpenter.kwok.sh
    kind: KWOKNodeClass
    name: default
  requirements: []
";

/// Somebody who must be asked about every change of a claim, and takes calls without ever answering.
fn webhook(port: u16) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: silent
webhooks:
- name: silent.example.com
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 1
  clientConfig:
    url: https://127.0.0.1:{port}/judge
  rules:
  - apiGroups: [karpenter.sh]
    apiVersions: [\"*\"]
    operations: [UPDATE]
    resources: [nodeclaims, nodeclaims/status]
"
    )
}

fn log_of(controller: &ControllerProcess) -> Result<String> {
    controller.log().context("a process has a log")
}

/// First no claim may be created, then none may be changed: the machines come, and that cannot be written down. The log
/// says who objects, nothing is launched twice, and when nobody objects any more all pods run.
#[test]
fn who_does_not_admit_our_writes_is_named() -> Result<()> {
    RealBed::run(async |bed| {
        let outside = set(bed).await?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        bed.apply(&[POLICY, &webhook(listener.local_addr()?.port())].join("---\n")).await?;
        std::fs::write(bed.control_plane.log_dir().join("trial.yaml"), TRIAL)?;
        let trial = bed.control_plane.log_dir().join("trial.yaml").to_string_lossy().into_owned();
        let is_frozen = async || bed.kubectl(&["create", "--dry-run=server", "-f", &trial]).is_err().then_some(());
        wait_until("the policy to count", is_frozen).await?;
        ask_for_pods(bed, 5).await?;
        let controller = bed.start_controller("controller", &alone()).await?;
        let tells = async |words: &str| log_of(&controller).ok()?.contains(words).then_some(());
        wait_until("the log to say who objects", async || tells("no new machines during the freeze").await).await?;
        check_claims(&outside, 0).await?;

        bed.kubectl(&["delete", "validatingadmissionpolicybinding", "frozen"])?;
        wait_for(bed.claims(), "two claims", |claims| claims.len() == 2).await?;
        wait_until("the log to say who is silent", async || tells("silent.example.com").await).await?;
        ensure!(log_of(&controller)?.contains("failed calling webhook"), "the log does not say why");
        bed.kubectl(&["delete", "validatingwebhookconfiguration", "silent"])?;
        all_run(bed, 5).await?;
        check_claims(&outside, 2).await?;
        drop(listener);
        controller.stop().await
    })
}
