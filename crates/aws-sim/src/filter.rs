//! Filters of describe calls.

use crate::{AwsError, Instance};

/// A filter: one of the values must match. `*` and `?` in a value stand for any text and any character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// Name, as the API spells it.
    pub name: String,
    /// Values.
    pub values: Vec<String>,
}

impl Filter {
    /// A filter with some values.
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Into::into).collect() }
    }

    /// Instances with this value of a tag.
    pub fn tag(key: &str, value: impl Into<String>) -> Self {
        Self::new(format!("tag:{key}"), [value])
    }

    /// What the filter looks at; a filter that does not exist is an error.
    pub(crate) fn subject(&self) -> Result<Subject<'_>, AwsError> {
        Ok(match self.name.as_str() {
            "tag-key" => Subject::TagKeys,
            "instance-state-name" => Subject::State,
            "instance-id" => Subject::Id,
            "instance-type" => Subject::InstanceType,
            "availability-zone" => Subject::Zone,
            "client-token" => Subject::ClientToken,
            "private-dns-name" => Subject::PrivateDnsName,
            "subnet-id" => Subject::SubnetId,
            name => match name.strip_prefix("tag:") {
                Some(key) => Subject::Tag(key),
                None => return Err(AwsError::UnknownFilter { name: name.to_owned() }),
            },
        })
    }

    /// Whether one of the values matches what the filter looks at.
    pub(crate) fn admits(&self, subject: Subject<'_>, instance: &Instance) -> bool {
        let matches = |text: &str| self.values.iter().any(|pattern| glob(pattern.as_bytes(), text.as_bytes()));
        match subject {
            Subject::TagKeys => instance.tags.keys().any(|key| matches(key)),
            Subject::Tag(key) => instance.tags.get(key).is_some_and(|value| matches(value)),
            Subject::State => matches(instance.state.as_str()),
            Subject::Id => matches(instance.id.as_str()),
            Subject::InstanceType => matches(&instance.instance_type),
            Subject::Zone => matches(&instance.zone),
            Subject::ClientToken => instance.client_token.as_ref().is_some_and(|token| matches(token)),
            Subject::PrivateDnsName => matches(&instance.private_dns_name),
            Subject::SubnetId => matches(&instance.subnet_id),
        }
    }
}

/// What a filter looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    TagKeys,
    Tag(&'a str),
    State,
    Id,
    InstanceType,
    Zone,
    ClientToken,
    PrivateDnsName,
    SubnetId,
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            glob(rest, text) || text.split_first().is_some_and(|(_, text_rest)| glob(pattern, text_rest))
        }
        (Some((b'?', rest)), Some((_, text_rest))) => glob(rest, text_rest),
        (Some((expected, rest)), Some((found, text_rest))) => expected == found && glob(rest, text_rest),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        let table = [
            ("m5.large", "m5.large", true),
            ("m5.*", "m5.large", true),
            ("*", "", true),
            ("*large", "m5.xlarge", true),
            ("m?.large", "m5.large", true),
            ("m?.large", "m55.large", false),
            ("", "x", false),
            ("a*b*c", "axxbyyc", true),
        ];
        for (pattern, text, matches) in table {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), matches, "{pattern} {text}");
        }
    }
}
