//! The end of an instance, at a pace that the provider can bear.

use std::time::Duration;

use api::NodeClaim;
use cloud::{CloudError, Termination};
use model::ClaimName;

use super::{believed, left_of};
use crate::context::Context;
use crate::work::Next;

/// How often the provider is asked whether the instance is gone, whatever else happens meanwhile.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Asks the provider to end the claim's instance; answers when to ask again, or nothing once there is none.
pub(crate) async fn end(context: &Context, name: &ClaimName, claim: &NodeClaim) -> Result<Option<Next>, CloudError> {
    let now = context.now();
    let asked = context.notes().ends_asked.get(name).and_then(|asked| believed(*asked, now));
    if let Some(left) = asked.and_then(|asked| left_of(ASK_AGAIN, asked, now)) {
        return Ok(Some(Next::After(left)));
    }
    let answer = context.provider.terminate(claim).await;
    let mut notes = context.notes();
    match answer? {
        Termination::Requested => {
            notes.ends_asked.insert(name.clone(), now);
            Ok(Some(Next::After(ASK_AGAIN)))
        }
        Termination::Gone => {
            notes.ends_asked.remove(name);
            Ok(None)
        }
    }
}
