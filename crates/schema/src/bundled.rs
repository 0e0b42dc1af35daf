//! The documents of built-in groups that are part of this crate. Each is opened when it is first needed.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::typed::Arena;

/// One group in one version.
pub(crate) struct Bundle {
    /// The path of the group version, without the slash before it: `api/v1`, `apis/apps/v1`.
    pub(crate) path: &'static str,
    compressed: &'static [u8],
    arena: OnceLock<Arena>,
}

macro_rules! bundle {
    ($path:literal, $file:literal) => {
        Bundle {
            path: $path,
            compressed: include_bytes!(concat!("../openapi/", $file, ".json.gz")),
            arena: OnceLock::new(),
        }
    };
}

/// All groups, in the order of their paths.
pub(crate) static BUNDLES: [Bundle; 12] = [
    bundle!("api/v1", "api_v1"),
    bundle!("apis/apiextensions.k8s.io/v1", "apis_apiextensions.k8s.io_v1"),
    bundle!("apis/apps/v1", "apis_apps_v1"),
    bundle!("apis/batch/v1", "apis_batch_v1"),
    bundle!("apis/coordination.k8s.io/v1", "apis_coordination.k8s.io_v1"),
    bundle!("apis/discovery.k8s.io/v1", "apis_discovery.k8s.io_v1"),
    bundle!("apis/node.k8s.io/v1", "apis_node.k8s.io_v1"),
    bundle!("apis/policy/v1", "apis_policy_v1"),
    bundle!("apis/rbac.authorization.k8s.io/v1", "apis_rbac.authorization.k8s.io_v1"),
    bundle!("apis/resource.k8s.io/v1", "apis_resource.k8s.io_v1"),
    bundle!("apis/scheduling.k8s.io/v1", "apis_scheduling.k8s.io_v1"),
    bundle!("apis/storage.k8s.io/v1", "apis_storage.k8s.io_v1"),
];

impl Bundle {
    /// The bundle at a path.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        BUNDLES.iter().find(|bundle| bundle.path == path)
    }

    /// The OpenAPI document as text.
    pub(crate) fn text(&self) -> Vec<u8> {
        unpack(self.compressed)
    }

    /// A number that changes with the document.
    pub(crate) fn fingerprint(&self) -> u64 {
        fingerprint(self.compressed)
    }

    /// The schemas of the document.
    pub(crate) fn arena(&self) -> &Arena {
        self.arena.get_or_init(|| {
            #[derive(Deserialize, Default)]
            struct OpenApi {
                components: Components,
            }
            #[derive(Deserialize, Default)]
            struct Components {
                schemas: Map<String, Value>,
            }
            let document: OpenApi = read(&self.text());
            Arena::read(&document.components.schemas)
        })
    }
}

/// The discovery of the built-in groups by path, and under `version` the version of the server they came from.
pub(crate) fn discovery() -> &'static BTreeMap<String, Value> {
    static DISCOVERY: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    DISCOVERY.get_or_init(|| read(&unpack(include_bytes!("../openapi/discovery.json.gz"))))
}

/// What cannot be unpacked or read would be a mistake in this crate's own files, which its tests open one by one.
fn unpack(compressed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let outcome = GzDecoder::new(compressed).read_to_end(&mut text);
    debug_assert!(outcome.is_ok(), "a bundled document is damaged");
    text
}

fn read<T: for<'a> Deserialize<'a> + Default>(text: &[u8]) -> T {
    let read = serde_json::from_slice(text);
    debug_assert!(read.is_ok(), "a bundled document is not what it should be");
    read.unwrap_or_default()
}

/// FNV-1a: small, and the same everywhere.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
