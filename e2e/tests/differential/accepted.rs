//! Differences that stay, each with its reason. Everything else fails the test.

use crate::compare::Difference;

/// A difference that stays.
struct Accepted {
    /// Requests in which it occurs: those whose text contains this.
    request: &'static str,
    /// Where: places that contain this.
    place: &'static str,
    /// What the embedded server says there: a text that contains this.
    embedded: &'static str,
    /// Why it stays; for whoever wonders, nobody prints it.
    #[expect(dead_code, reason = "the reason is written for the reader of this file")]
    reason: &'static str,
}

const ACCEPTED: &[Accepted] = &[
    Accepted {
        request: "/pods",
        place: "/spec/serviceAccount",
        embedded: "default",
        reason: "nobody makes service accounts beside the bare API server, so its admission of them is switched off",
    },
    Accepted {
        request: "/nodepools",
        place: "/message",
        embedded: "Error executing function 'int'",
        reason: "what a CEL function says about its argument is up to the library",
    },
    Accepted {
        request: "/nodepools",
        place: "/details/causes",
        embedded: "Error executing function 'int'",
        reason: "what a CEL function says about its argument is up to the library",
    },
    Accepted {
        request: "{\"op\":\"replace\",\"path\":\"/spec\",\"value\":5}",
        place: "/message",
        embedded: "spec in body must be of type object",
        reason: "the real server also says that there are no replicas in a number",
    },
    Accepted {
        request: "{\"op\":\"replace\",\"path\":\"/spec\",\"value\":5}",
        place: "/details/causes",
        embedded: "",
        reason: "the real server also says that there are no replicas in a number",
    },
    Accepted {
        request: "continue=nonsense",
        place: "/message",
        embedded: "invalid continue token",
        reason: "a token is nobody's business but the server's, and so is what is wrong with one",
    },
    Accepted {
        request: "fieldValidation=Ignore",
        place: "/message",
        embedded: "error decoding patch",
        reason: "with this mode the real server decodes patches by another library, with other words",
    },
];

/// Whether this difference is one of those that stay.
pub(crate) fn is_accepted(request: &str, difference: &Difference) -> bool {
    let embedded = difference.embedded.to_string();
    ACCEPTED.iter().any(|accepted| {
        request.contains(accepted.request)
            && difference.place.contains(accepted.place)
            && embedded.contains(accepted.embedded)
    })
}
