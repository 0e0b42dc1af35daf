//! The wire format of protobuf: numbered fields that are numbers or bytes.

/// One field as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) number: u32,
    pub(super) value: Value<'a>,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Negative numbers are wrapped around.
    Number(u64),
    /// A text, bytes, or another message.
    Bytes(&'a [u8]),
}

/// Reads fields one after the other; `None` inside means that the bytes make no sense.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        // Ten groups of seven bits hold every number.
        for group in 0..10 {
            let (first, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(first & 0x7f) << (7 * group);
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    fn field(&mut self) -> Option<Field<'a>> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => Value::Bytes(self.bytes(8)?),
            2 => {
                let length = self.number()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => Value::Bytes(self.bytes(4)?),
            _ => return None,
        };
        Some(Field { number: u32::try_from(tag >> 3).ok()?, value })
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Option<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field)
    }
}
