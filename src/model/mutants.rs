//! Known faults that a test can put back into a machine, and the question whether one is there.
//!
//! Random seeds do not find every fault; each of these is caught by a scenario of its own, and the scenario's test proves
//! it by running with the fault and without.

/// Defines `Mutant`, the known faults of a room, and `Mutation`, the one that a machine has. Without the room's feature
/// `mutants` no machine has one, and the question is constant `false`.
#[macro_export]
macro_rules! mutants {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// A known fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(
            not(feature = "mutants"),
            expect(unreachable_pub, reason = "exported with the feature `mutants` only")
        )]
        pub enum Mutant {
            $($(#[$doc])+ $name,)+
        }

        #[cfg(feature = "mutants")]
        impl Mutant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];
        }

        /// The fault that a machine has, if any.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Mutation {
            #[cfg(feature = "mutants")]
            active: Option<Mutant>,
        }

        impl Mutation {
            #[cfg(feature = "mutants")]
            pub(crate) fn of(mutant: Mutant) -> Self {
                Self { active: Some(mutant) }
            }

            #[cfg(feature = "mutants")]
            pub(crate) fn is(self, mutant: Mutant) -> bool {
                self.active == Some(mutant)
            }

            #[cfg(not(feature = "mutants"))]
            #[expect(clippy::unused_self, reason = "the same face as with the feature")]
            pub(crate) const fn is(self, _mutant: Mutant) -> bool {
                false
            }
        }
    };
}
