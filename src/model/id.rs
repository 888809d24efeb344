//! Identifiers, offsets and epochs as newtypes, so that signatures say which number they mean.

use std::fmt;
use std::sync::Arc;

use crate::Uuid;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}
pub(crate) use text;

number!(
    /// A node of the cluster: `node.id`. -1 is nobody.
    NodeId(i32)
);
number!(
    /// The position of a record in its partition.
    Offset(i64)
);
number!(
    /// Grows with each change of a partition's leader; written into every batch. -1 is unknown.
    LeaderEpoch(i32)
);
number!(
    /// Grows with each change of a partition's state. -1 is unknown.
    PartitionEpoch(i32)
);
number!(
    /// One registration of a broker: the offset of its record in the metadata log. -1 is unknown.
    BrokerEpoch(i64)
);
number!(
    /// An idempotent or transactional producer. -1 is none.
    ProducerId(i64)
);
number!(
    /// Fences older instances of a producer. -1 is none.
    ProducerEpoch(i16)
);
number!(
    /// The number of a record in its producer's stream to one partition; after `i32::MAX` comes 0. -1 is none.
    Sequence(i32)
);

impl NodeId {
    /// Nobody.
    pub const NONE: Self = Self(-1);
}

impl LeaderEpoch {
    /// Not known, or not asked for.
    pub const NONE: Self = Self(-1);
}

impl ProducerId {
    /// The batch has no producer id.
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    /// The batch has no producer epoch.
    pub const NONE: Self = Self(-1);
}

impl Sequence {
    /// The batch has no sequence.
    pub const NONE: Self = Self(-1);

    /// The number `count` records further in the stream; none stays none.
    #[must_use]
    pub fn plus(self, count: i32) -> Self {
        if self == Self::NONE {
            return self;
        }
        let sum = i64::from(self.0) + i64::from(count);
        Self(sum.rem_euclid(1 << 31) as i32)
    }
}

impl Offset {
    /// The offset `count` records further.
    #[must_use]
    pub fn plus(self, count: i64) -> Self {
        Self(self.0 + count)
    }
}

text!(
    /// The name of a group.
    GroupId
);
text!(
    /// A member of a group, as the coordinator named it.
    MemberId
);
text!(
    /// `group.instance.id` of a static member (KIP-345).
    GroupInstanceId
);
text!(
    /// The cluster's id: 22 characters of URL-safe base64 where Ottla made it.
    ClusterId
);

/// One log folder, for ever: `directory.id` of its `meta.properties`.
pub type DirectoryId = Uuid;
