//! Quotas, access control entries, credentials and delegation tokens: kept as the records that made them, so that none
//! is lost when a snapshot replaces the log, until the rooms that act on them are there.
//!
//! Kafka: `ClientQuotasImage`, `AclsImage`, `ScramImage`, `DelegationTokenImage`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Uuid;
use protocol::records::metadata::{
    AccessControlEntryRecord, ClientQuotaRecord, DelegationTokenRecord, MetadataRecord,
    UserScramCredentialRecord,
};

use crate::{ApplyError, Delta};

/// A quota's entity (type and name of each part) and its key.
type QuotaKey = (Vec<(String, Option<String>)>, String);

/// The records that stand. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Security {
    quotas: Arc<BTreeMap<QuotaKey, ClientQuotaRecord>>,
    acls: Arc<BTreeMap<Uuid, AccessControlEntryRecord>>,
    scram: Arc<BTreeMap<(i8, String), UserScramCredentialRecord>>,
    tokens: Arc<BTreeMap<String, DelegationTokenRecord>>,
}

impl Security {
    pub(crate) fn replay(&mut self, record: &MetadataRecord, delta: &mut Delta) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::ClientQuota(record) => self.set_quota(record),
            MetadataRecord::AccessControlEntry(record) => {
                Arc::make_mut(&mut self.acls).insert(record.id, record.clone());
            }
            MetadataRecord::RemoveAccessControlEntry(record) => {
                Arc::make_mut(&mut self.acls).remove(&record.id);
            }
            MetadataRecord::UserScramCredential(record) => {
                let key = (record.mechanism, record.name.clone());
                Arc::make_mut(&mut self.scram).insert(key, record.clone());
            }
            MetadataRecord::RemoveUserScramCredential(record) => {
                Arc::make_mut(&mut self.scram).remove(&(record.mechanism, record.name.clone()));
            }
            MetadataRecord::DelegationToken(record) => {
                Arc::make_mut(&mut self.tokens).insert(record.token_id.clone(), record.clone());
            }
            MetadataRecord::RemoveDelegationToken(record) => {
                Arc::make_mut(&mut self.tokens).remove(&record.token_id);
            }
            // Of a cluster that came from ZooKeeper: it says nothing any more.
            MetadataRecord::ZkMigrationState(_) => return Ok(()),
            other => return Err(ApplyError::UnknownRecord(other.record_type())),
        }
        delta.security_changed = true;
        Ok(())
    }

    fn set_quota(&mut self, record: &ClientQuotaRecord) {
        let part = |part: &protocol::records::metadata::client_quota_record::EntityData| {
            (part.entity_type.clone(), part.entity_name.clone())
        };
        let key = (record.entity.iter().map(part).collect(), record.key.clone());
        let quotas = Arc::make_mut(&mut self.quotas);
        if record.remove {
            quotas.remove(&key);
        } else {
            quotas.insert(key, record.clone());
        }
    }

    pub(crate) fn write(&self, records: &mut Vec<MetadataRecord>) {
        records.extend(self.quotas.values().cloned().map(MetadataRecord::ClientQuota));
        records.extend(self.acls.values().cloned().map(MetadataRecord::AccessControlEntry));
        records.extend(self.scram.values().cloned().map(MetadataRecord::UserScramCredential));
        records.extend(self.tokens.values().cloned().map(MetadataRecord::DelegationToken));
    }
}
