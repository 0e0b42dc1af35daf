//! An API server that knows the custom resources of one flavour.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use http::{Method, Request};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::Value;

/// How long the API server may take to serve a new definition: one second is usual, ten on a busy machine.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);
/// The collection of the definitions themselves.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What the API server said.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It took the object; this is how it sees it.
    Accepted(Value),
    /// It found the object wrong, and says why.
    Rejected(String),
    /// It would have refused any object.
    Failed(String),
}

/// Whether a write stays.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Write {
    Real,
    /// Everything happens but the storing.
    Dry,
}

impl Write {
    /// Unknown fields are errors, or a misspelt one would be dropped and the case would prove nothing.
    fn query(self) -> &'static str {
        match self {
            Self::Real => "fieldValidation=Strict",
            Self::Dry => "fieldValidation=Strict&dryRun=All",
        }
    }
}

/// A connection to the API server, and where each kind lives on it.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
    /// By API version and kind.
    resources: BTreeMap<(String, String), Resource>,
}

#[derive(Clone)]
struct Resource {
    plural: String,
    namespaced: bool,
}

impl Server {
    /// Installs the definitions in these files and returns when all of them are served.
    pub(crate) async fn install(client: Client, files: &[PathBuf]) -> Result<Self> {
        let mut server = Self { client, resources: BTreeMap::new() };
        let mut names = Vec::new();
        for file in files {
            names.push(server.define(file).await.with_context(|| format!("install `{}`", file.display()))?);
        }
        for name in names {
            let definitions: Api<CustomResourceDefinition> = Api::all(server.client.clone());
            let established = await_condition(definitions, &name, conditions::is_crd_established());
            in_time(&name, established).await?;
        }
        let namespaces: Api<Namespace> = Api::all(server.client.clone());
        let exists = |namespace: Option<&Namespace>| namespace.is_some();
        // The API server makes it shortly after it is ready; until then it refuses objects in it.
        in_time("default", await_condition(namespaces, "default", exists)).await?;
        Ok(server)
    }

    /// Creates one definition from its file and returns its name.
    async fn define(&mut self, path: &Path) -> Result<String> {
        let text = fs::read_to_string(path)?;
        let manifest: Value = serde_yaml_ng::from_str(&text)?;
        let definition = CustomResourceDefinition::deserialize(&manifest)?;
        let uri = format!("{DEFINITIONS}?{}", Write::Real.query());
        self.client.request::<Value>(request(Method::POST, &uri, Some(&manifest))?).await?;
        let spec = definition.spec;
        for version in spec.versions {
            let key = (format!("{}/{}", spec.group, version.name), spec.names.kind.clone());
            let resource = Resource { plural: spec.names.plural.clone(), namespaced: spec.scope == "Namespaced" };
            self.resources.insert(key, resource);
        }
        definition.metadata.name.context("a definition has a name")
    }

    /// The path of all objects of this one's kind, in its namespace if it has one.
    pub(crate) fn collection(&self, object: &Value) -> Result<String> {
        let api_version = text(object, "/apiVersion")?;
        let kind = text(object, "/kind")?;
        let resource = self
            .resources
            .get(&(api_version.to_owned(), kind.to_owned()))
            .with_context(|| format!("no definition of `{kind}` in `{api_version}` is installed"))?;
        let Resource { plural, namespaced } = resource;
        Ok(if *namespaced {
            format!("/apis/{api_version}/namespaces/{}/{plural}", text(object, "/metadata/namespace")?)
        } else {
            format!("/apis/{api_version}/{plural}")
        })
    }

    /// The path of this object.
    pub(crate) fn path(&self, object: &Value) -> Result<String> {
        Ok(format!("{}/{}", self.collection(object)?, text(object, "/metadata/name")?))
    }

    pub(crate) async fn create(&self, object: &Value, write: Write) -> Result<Answer> {
        self.send(Method::POST, &format!("{}?{}", self.collection(object)?, write.query()), Some(object)).await
    }

    /// Replaces what is at `path`.
    pub(crate) async fn replace(&self, path: &str, object: &Value, write: Write) -> Result<Answer> {
        self.send(Method::PUT, &format!("{path}?{}", write.query()), Some(object)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Answer> {
        self.send(Method::DELETE, path, None).await
    }

    /// What `kubectl get` asks for: the objects of a collection as the server would print them.
    pub(crate) async fn table(&self, collection: &str) -> Result<Value> {
        let mut request = request(Method::GET, collection, None)?;
        request.headers_mut().insert(http::header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io".parse()?);
        Ok(self.client.request(request).await?)
    }

    /// Anything that can be read.
    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        Ok(self.client.request(request(Method::GET, path, None)?).await?)
    }

    async fn send(&self, method: Method, uri: &str, body: Option<&Value>) -> Result<Answer> {
        match self.client.request(request(method, uri, body)?).await {
            Ok(object) => Ok(Answer::Accepted(object)),
            Err(kube::Error::Api(status)) => Ok(match status.code {
                // The decoder, and the validation after it.
                400 | 422 => Answer::Rejected(status.message),
                code => Answer::Failed(format!("status {code}: {}", status.message)),
            }),
            Err(error) => Err(error.into()),
        }
    }
}

fn request(method: Method, uri: &str, body: Option<&Value>) -> Result<Request<Vec<u8>>> {
    let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    Ok(Request::builder().method(method).uri(uri).header(http::header::CONTENT_TYPE, "application/json").body(bytes)?)
}

/// The text at a pointer of a manifest.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> Result<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("the object has no text at `{pointer}`"))
}

async fn in_time<T>(name: &str, condition: impl Future<Output = Result<T, kube::runtime::wait::Error>>) -> Result<()> {
    tokio::time::timeout(SERVED_TIMEOUT, condition)
        .await
        .with_context(|| format!("`{name}` was not there after {} s", SERVED_TIMEOUT.as_secs()))?
        .with_context(|| format!("wait for `{name}`"))?;
    Ok(())
}
