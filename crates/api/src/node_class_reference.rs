//! The reference from a pool or claim to the cloud's own settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::cel;

/// Points at the object that holds the settings of the cloud provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassReference {
    /// API group of the referent, without a version.
    #[schemars(
        regex(pattern = "^[^/]*$"),
        extend("x-kubernetes-validations" = [cel("self != ''", "group may not be empty")])
    )]
    pub group: String,
    /// Kind of the referent.
    #[schemars(extend("x-kubernetes-validations" = [cel("self != ''", "kind may not be empty")]))]
    pub kind: String,
    /// Name of the referent.
    #[schemars(extend("x-kubernetes-validations" = [cel("self != ''", "name may not be empty")]))]
    pub name: String,
}
