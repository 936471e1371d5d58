//! The folder of public material that is not part of this repository: traces, golden cases, published points.

use std::path::PathBuf;

/// `$ROTA_SHARED`, or `../shared` if it is not set.
pub fn shared_folder() -> PathBuf {
    std::env::var_os("ROTA_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from)
}
