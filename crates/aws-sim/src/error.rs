//! What AWS refuses, and in which words.

use std::fmt;

use crate::log::Action;
use crate::{InstanceId, PoolKey};

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AwsError {
    /// Too many calls.
    RequestLimitExceeded,
    /// The caller may not do this.
    UnauthorizedOperation {
        /// What.
        action: Action,
    },
    /// Something broke at AWS.
    InternalError,
    /// The answer did not arrive; whether anything was done is not known to the caller.
    RequestTimeout,
    /// The call would have succeeded, had it not been for `DryRun`.
    DryRunOperation,
    /// A client token was used before with other parameters.
    IdempotentParameterMismatch {
        /// The token.
        client_token: String,
    },
    /// Instances that do not exist, or that this part of AWS does not know yet.
    InstancesNotFound {
        /// Their ids.
        ids: Vec<InstanceId>,
    },
    /// A filter that does not exist.
    UnknownFilter {
        /// Its name.
        name: String,
    },
    /// A parameter that is missing.
    MissingParameter {
        /// Its name.
        name: &'static str,
    },
    /// A parameter that makes no sense.
    InvalidParameterValue {
        /// Its name.
        name: &'static str,
        /// What was given.
        value: String,
    },
}

impl AwsError {
    /// The code that the API gives.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RequestLimitExceeded => "RequestLimitExceeded",
            Self::UnauthorizedOperation { .. } => "UnauthorizedOperation",
            Self::InternalError => "InternalError",
            Self::RequestTimeout => "RequestTimeout",
            Self::DryRunOperation => "DryRunOperation",
            Self::IdempotentParameterMismatch { .. } => "IdempotentParameterMismatch",
            Self::InstancesNotFound { .. } => "InvalidInstanceID.NotFound",
            Self::UnknownFilter { .. } | Self::InvalidParameterValue { .. } => "InvalidParameterValue",
            Self::MissingParameter { .. } => "MissingParameter",
        }
    }
}

impl fmt::Display for AwsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.code())?;
        match self {
            Self::RequestLimitExceeded => formatter.write_str("Request limit exceeded."),
            Self::UnauthorizedOperation { action } => {
                write!(formatter, "You are not authorized to perform this operation: ec2:{action}.")
            }
            Self::InternalError => formatter.write_str("An internal error has occurred"),
            Self::RequestTimeout => formatter.write_str("The answer did not arrive in time."),
            Self::DryRunOperation => formatter.write_str("Request would have succeeded, but DryRun flag is set."),
            Self::IdempotentParameterMismatch { client_token } => {
                write!(formatter, "The client token '{client_token}' was used before with other parameters.")
            }
            Self::InstancesNotFound { ids } => {
                let ids: Vec<&str> = ids.iter().map(InstanceId::as_str).collect();
                match ids.as_slice() {
                    [id] => write!(formatter, "The instance ID '{id}' does not exist"),
                    ids => write!(formatter, "The instance IDs '{}' do not exist", ids.join(", ")),
                }
            }
            Self::UnknownFilter { name } => write!(formatter, "The filter '{name}' is invalid"),
            Self::MissingParameter { name } => {
                write!(formatter, "The request must contain the parameter {name}")
            }
            Self::InvalidParameterValue { name, value } => {
                write!(formatter, "Value ({value}) for parameter {name} is invalid.")
            }
        }
    }
}

impl std::error::Error for AwsError {}

/// Why a fleet got nothing from a pool. Such errors come inside an answer that is otherwise a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FleetErrorCode {
    /// The pool is empty.
    InsufficientInstanceCapacity,
    /// The pool cannot serve this request at all.
    UnfulfillableCapacity,
    /// The account has all the spot instances it may have.
    MaxSpotInstanceCountExceeded,
    /// The account has all the virtual processors it may have.
    VcpuLimitExceeded,
    /// The subnet has no address left.
    InsufficientFreeAddressesInSubnet,
    /// The zone does not have the type.
    Unsupported,
    /// The spot price is above what the request pays at most.
    SpotMaxPriceTooLow,
    /// The type, zone or subnet does not exist.
    InvalidParameterValue,
}

impl FleetErrorCode {
    /// The code that the API gives.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InsufficientInstanceCapacity => "InsufficientInstanceCapacity",
            Self::UnfulfillableCapacity => "UnfulfillableCapacity",
            Self::MaxSpotInstanceCountExceeded => "MaxSpotInstanceCountExceeded",
            Self::VcpuLimitExceeded => "VcpuLimitExceeded",
            Self::InsufficientFreeAddressesInSubnet => "InsufficientFreeAddressesInSubnet",
            Self::Unsupported => "Unsupported",
            Self::SpotMaxPriceTooLow => "SpotMaxPriceTooLow",
            Self::InvalidParameterValue => "InvalidParameterValue",
        }
    }
}

impl fmt::Display for FleetErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A pool that a fleet tried in vain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetError {
    /// Why.
    pub code: FleetErrorCode,
    /// The place of the override in the request.
    pub override_index: usize,
    /// The pool.
    pub pool: PoolKey,
}

impl fmt::Display for FleetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, pool: PoolKey { instance_type, zone, .. }, .. } = self;
        write!(formatter, "{code}: ")?;
        match code {
            FleetErrorCode::InsufficientInstanceCapacity => write!(
                formatter,
                "There is no capacity for {instance_type} in the Availability Zone {zone} at the moment."
            ),
            FleetErrorCode::UnfulfillableCapacity => {
                write!(formatter, "The request for {instance_type} in {zone} cannot be fulfilled as it is configured.")
            }
            FleetErrorCode::MaxSpotInstanceCountExceeded => formatter.write_str("Max spot instance count exceeded"),
            FleetErrorCode::VcpuLimitExceeded => write!(
                formatter,
                "{instance_type} would take more vCPU capacity than the limit of this account allows."
            ),
            FleetErrorCode::InsufficientFreeAddressesInSubnet => {
                write!(formatter, "The subnet in {zone} has no free address left.")
            }
            FleetErrorCode::Unsupported => {
                write!(formatter, "The instance type {instance_type} is not supported in {zone}.")
            }
            FleetErrorCode::SpotMaxPriceTooLow => {
                write!(formatter, "The maximum price for {instance_type} is below the spot price in {zone}.")
            }
            FleetErrorCode::InvalidParameterValue => {
                write!(formatter, "{instance_type} in {zone} does not exist in this region.")
            }
        }
    }
}
