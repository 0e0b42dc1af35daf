//! Subnets and their addresses.

use std::collections::BTreeSet;

/// The subnet of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Id, for example `subnet-0123456789abcdef0`.
    pub id: String,
    /// Zone.
    pub zone: String,
    /// Addresses that are left.
    pub free_addresses: u32,
}

/// Addresses in a subnet, with the first four and the last left out as AWS does.
const ADDRESSES: u32 = 8192;
const RESERVED_AT_START: u32 = 4;

/// Hands out the addresses of one subnet, each anew only after all others.
#[derive(Clone, Debug)]
pub(crate) struct SubnetState {
    pub(crate) id: String,
    pub(crate) zone: String,
    index: u32,
    next: u32,
    used: BTreeSet<u32>,
    limit: u32,
}

impl SubnetState {
    pub(crate) fn new(id: String, zone: String, index: u32, addresses: u32) -> Self {
        let usable = ADDRESSES - RESERVED_AT_START - 1;
        Self { id, zone, index, next: 0, used: BTreeSet::new(), limit: addresses.min(usable) }
    }

    pub(crate) fn view(&self) -> Subnet {
        Subnet { id: self.id.clone(), zone: self.zone.clone(), free_addresses: self.free() }
    }

    pub(crate) fn free(&self) -> u32 {
        self.limit.saturating_sub(u32::try_from(self.used.len()).unwrap_or(u32::MAX))
    }

    /// Takes an address; `None` when there is none left.
    pub(crate) fn take(&mut self) -> Option<String> {
        if self.free() == 0 {
            return None;
        }
        let turn = (0..self.limit).map(|step| (self.next + step) % self.limit);
        let host = turn.into_iter().find(|host| !self.used.contains(host))?;
        self.used.insert(host);
        self.next = (host + 1) % self.limit;
        Some(self.address(host))
    }

    pub(crate) fn give_back(&mut self, address: &str) {
        let host = self.used.iter().copied().find(|host| self.address(*host) == address);
        if let Some(host) = host {
            self.used.remove(&host);
        }
    }

    /// `10.0.0.0/16` holds eight subnets, `10.1.0.0/16` the next eight.
    fn address(&self, host: u32) -> String {
        let host = host + RESERVED_AT_START;
        let (second, third) = (self.index / 8, self.index % 8 * 32 + host / 256);
        format!("10.{second}.{third}.{}", host % 256)
    }
}

/// The name under which the private DNS knows an address.
pub(crate) fn private_dns_name(region: &str, address: &str) -> String {
    let dashed = address.replace('.', "-");
    if region == "us-east-1" {
        format!("ip-{dashed}.ec2.internal")
    } else {
        format!("ip-{dashed}.{region}.compute.internal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_used_again_last_of_all() {
        let mut subnet = SubnetState::new("subnet-1".to_owned(), "a".to_owned(), 1, 3);
        let taken: Vec<String> = std::iter::from_fn(|| subnet.take()).collect();
        assert_eq!(taken, ["10.0.32.4", "10.0.32.5", "10.0.32.6"]);
        subnet.give_back("10.0.32.5");
        assert_eq!(subnet.free(), 1);
        assert_eq!(subnet.take().as_deref(), Some("10.0.32.5"));
        assert_eq!(subnet.take(), None);
    }

    #[test]
    fn names_follow_the_region() {
        assert_eq!(private_dns_name("us-east-1", "10.0.0.4"), "ip-10-0-0-4.ec2.internal");
        assert_eq!(private_dns_name("eu-west-1", "10.0.0.4"), "ip-10-0-0-4.eu-west-1.compute.internal");
    }
}
