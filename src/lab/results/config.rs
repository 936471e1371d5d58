//! `config.toml`: everything a run was resolved to, enough to run it again. No clock reading is in it, so the same
//! run gives the same bytes.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use rota_core::cluster::Cluster;
use sha2::{Digest, Sha256};

use super::{FORMAT, Results, ResultsError, Window};

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunMeta {
    /// The policy as the user composed it.
    pub policy: String,
    /// Seed of everything drawn at random.
    #[serde(with = "seed")]
    pub seed: u64,
    /// Load of a generated workload, if it was asked for as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_per_hour: Option<f64>,
    /// Whether estimates were exact, instead of what a user would know.
    pub exact_estimates: bool,
    /// Whether the policy looked at an estimate. Folders of older versions do not say.
    #[serde(default = "yes")]
    pub reads_estimates: bool,
    /// Jobs that count for the averages; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Size of the cluster it ran on.
    pub cluster: ClusterTotals,
    /// Parameters of the policy, defaults included.
    #[serde(default)]
    pub parameters: toml::Table,
}

impl RunMeta {
    /// Whether the policy decided by what a real cluster does not know.
    pub fn is_oracle(&self) -> bool {
        self.exact_estimates && self.reads_estimates
    }
}

pub(super) fn yes() -> bool {
    true
}

/// The size of a cluster.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterTotals {
    /// Name of the configuration, or of its file.
    pub name: String,
    /// Servers.
    pub nodes: usize,
    /// GPUs in all.
    pub gpus: u32,
    /// CPUs in all.
    pub cpus: f64,
    /// Memory in all, in gigabytes.
    pub mem_gb: f64,
}

impl From<&Cluster> for ClusterTotals {
    fn from(cluster: &Cluster) -> Self {
        let host = cluster.host_total();
        ClusterTotals {
            name: cluster.name.clone(),
            nodes: cluster.nodes().len(),
            gpus: cluster.n_gpus(),
            cpus: host.cpus(),
            mem_gb: host.mem_gb(),
        }
    }
}

/// Something that was read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What it was read as: `cluster`, `trace`, `policy`, `profiles`, …
    pub role: String,
    /// A path as the user wrote it, or the name of something built in.
    pub name: String,
    /// Checksum of its bytes, SHA-256 in hexadecimal.
    pub sha256: String,
    /// The text of a script that does not come with Rota, so that another version of it can be compared with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Input {
    /// An input whose bytes are in memory.
    pub fn of_bytes(role: &str, name: &str, bytes: &[u8]) -> Self {
        Input { role: role.into(), name: name.into(), sha256: hex(&Sha256::digest(bytes)), text: None }
    }

    /// A file.
    pub fn of_file(role: &str, path: &Path) -> Result<Self, ResultsError> {
        let read = |e| ResultsError::io("read", path)(e);
        let mut file = BufReader::new(File::open(path).map_err(read)?);
        let (mut hasher, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut chunk).map_err(read)? {
                0 => break,
                n => hasher.update(&chunk[..n]),
            }
        }
        Ok(Input {
            role: role.into(),
            name: path.display().to_string(),
            sha256: hex(&hasher.finalize()),
            text: None,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct ConfigFile {
    format: u32,
    pub(super) title: String,
    pub(super) version: String,
    #[serde(default)]
    pub(super) settings: toml::Table,
    #[serde(default)]
    pub(super) inputs: Vec<Input>,
    pub(super) runs: Vec<RunMeta>,
}

/// The text of the file, also shown in reports.
pub(crate) fn to_toml(results: &Results) -> Result<String, toml::ser::Error> {
    toml::to_string_pretty(&ConfigFile {
        format: FORMAT,
        title: results.title.clone(),
        version: results.version.clone(),
        settings: results.settings.clone(),
        inputs: results.inputs.clone(),
        runs: results.runs.iter().map(|run| run.meta.clone()).collect(),
    })
}

pub(super) fn read(path: &Path) -> Result<ConfigFile, ResultsError> {
    let text = std::fs::read_to_string(path).map_err(ResultsError::io("read", path))?;
    toml::from_str(&text).map_err(|e| ResultsError::malformed(path, e))
}

/// TOML ends at 63 bits; larger seeds are written as text.
mod seed {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(i64),
        Text(String),
    }

    pub(super) fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(*seed) {
            Ok(number) => to.serialize_i64(number),
            Err(_) => to.serialize_str(&seed.to_string()),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let seed = match Written::deserialize(from)? {
            Written::Number(number) => u64::try_from(number).ok(),
            Written::Text(text) => text.parse().ok(),
        };
        seed.ok_or_else(|| D::Error::custom("seed: a whole number from 0 to 2^64 - 1 is expected"))
    }
}
