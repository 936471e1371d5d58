//! GPUs, by NVIDIA's management library. It is opened at run time: without a driver there are simply none.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper::{Device, Nvml};

use crate::options::NodeOptions;
use crate::ranges::Ranges;

/// One GPU of this machine, or an emulated one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The number its driver gives it.
    pub number: u32,
    /// Its globally unique identifier, from the driver.
    pub uuid: String,
    /// Its model, without the maker's name: `A100-SXM4-80GB`.
    pub model: String,
    /// Its memory in bytes; 0 when its driver does not say.
    pub mem_bytes: u64,
    /// CPUs near it; empty when that is unknown.
    pub near_cpus: Ranges,
    /// The number in the name of its device, `/dev/nvidiaN`; emulated ones have none.
    pub device_number: Option<u32>,
    /// What is wrong with it; nothing when it can be used.
    pub trouble: Option<String>,
}

/// The NVIDIA driver, as shown by `rota-agent check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The driver's own version, such as `550.54`.
    pub version: String,
    /// The version of CUDA it supports.
    pub cuda: String,
}

/// A driver that is missing, or that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// Its library is not installed.
    #[error("no NVIDIA driver (libnvidia-ml.so.1 is not installed)")]
    Missing,
    /// What the library answered, in its own words.
    #[error("{0}")]
    Failed(String),
}

impl From<NvmlError> for DriverError {
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::LibloadingError(_) => DriverError::Missing,
            other => DriverError::Failed(other.to_string()),
        }
    }
}

/// NVIDIA's library, found by the dynamic linker.
const LIBRARY: &str = "libnvidia-ml.so.1";

impl Driver {
    /// Asks for it; an error says why there is none.
    pub fn find() -> Result<Self, DriverError> {
        Self::find_by(LIBRARY.as_ref())
    }

    /// The same, by a library of this name or path.
    pub fn find_by(library: &OsStr) -> Result<Self, DriverError> {
        let nvml = open(library)?;
        let version = nvml.sys_driver_version()?;
        // Drivers before 418 do not say.
        let cuda = nvml.sys_cuda_driver_version().ok();
        let cuda = cuda.map_or("unknown".to_owned(), |cuda| format!("{}.{}", cuda / 1000, cuda % 1000 / 10));
        Ok(Driver { version, cuda })
    }
}

/// All GPUs of the machine by ascending number; an error says why the driver cannot be asked.
pub fn find() -> Result<Vec<Gpu>, DriverError> {
    find_by(LIBRARY.as_ref())
}

/// The same, by a library of this name or path.
pub fn find_by(library: &OsStr) -> Result<Vec<Gpu>, DriverError> {
    let nvml = open(library)?;
    let n_gpus = nvml.device_count()?;
    Ok((0..n_gpus).map(|number| gpu(&nvml, number)).collect())
}

fn open(library: &OsStr) -> Result<Nvml, DriverError> {
    Ok(Nvml::builder().lib_path(library).init()?)
}

/// What is wrong with GPUs now, by number; GPUs that can be used are not listed.
pub fn trouble() -> Result<Vec<(u32, String)>, DriverError> {
    Ok(find()?.into_iter().filter_map(|gpu| gpu.trouble.map(|trouble| (gpu.number, trouble))).collect())
}

/// The file in an agent's run directory in which an operator marks emulated GPUs as bad.
pub const BAD_GPUS_FILE: &str = "bad-gpus";

/// Faults of emulated GPUs, from a file that an operator writes to try out what happens: each line has a number and a
/// reason. Lines that do not begin with a number are ignored.
pub fn pretended_trouble(file: &Path) -> Vec<(u32, String)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let (number, reason) = line.trim().split_once(' ').unwrap_or((line.trim(), "marked as bad"));
        Some((number.parse().ok()?, reason.trim().to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Emulated GPUs: `n_gpus` of them, or those that `--gpus` names.
pub(super) fn emulated(n_gpus: u32, options: &NodeOptions) -> Vec<Gpu> {
    let numbers: Vec<u32> = match &options.gpus {
        Some(gpus) => gpus.as_slice().iter().copied().filter(|number| *number < n_gpus).collect(),
        None => (options.first_gpu..options.first_gpu.saturating_add(n_gpus)).collect(),
    };
    let model = options.gpu_type.clone().unwrap_or_else(|| "V100".to_owned());
    let mem_bytes = options.gpu_memory.map_or(32_000_000_000, |memory| memory.0);
    let gpu = |number| Gpu {
        number,
        uuid: format!("EMULATED-{number}"),
        model: model.clone(),
        mem_bytes,
        near_cpus: Ranges::default(),
        device_number: None,
        trouble: None,
    };
    numbers.into_iter().map(gpu).collect()
}

/// A GPU that does not answer is one that cannot be used, not one that is not there.
fn gpu(nvml: &Nvml, number: u32) -> Gpu {
    match read(nvml, number) {
        Ok(gpu) => gpu,
        Err(error) => Gpu {
            number,
            uuid: String::new(),
            model: "unknown".to_owned(),
            mem_bytes: 0,
            near_cpus: Ranges::default(),
            device_number: None,
            trouble: Some(error.to_string()),
        },
    }
}

fn read(nvml: &Nvml, number: u32) -> Result<Gpu, NvmlError> {
    let device = nvml.device_by_index(number)?;
    let name = device.name()?;
    // Consumer cards have no error correction: no count is no error.
    let n_errors = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).unwrap_or(0);
    let trouble =
        (n_errors > 0).then(|| format!("{n_errors} uncorrected memory errors since the driver started"));
    Ok(Gpu {
        number,
        uuid: device.uuid()?,
        model: name.trim_start_matches("NVIDIA ").trim_start_matches("Tesla ").to_owned(),
        mem_bytes: memory(nvml, &device)?,
        // Only which CPUs are near depends on it.
        device_number: device.minor_number().ok(),
        near_cpus: device.pci_info().map(|pci| near_cpus(&pci.bus_id)).unwrap_or_default(),
        trouble,
    })
}

/// The GPU's memory: by the second version of the question, which drivers before 510 do not know, or by the first. A
/// GPU whose driver knows neither is still usable.
fn memory(nvml: &Nvml, device: &Device<'_>) -> Result<u64, NvmlError> {
    let answer = match device.memory_info().map(|info| info.total) {
        Err(error) if is_unknown(&error) => memory_by_first_version(nvml, device),
        answer => answer,
    };
    match answer {
        Err(error) if is_unknown(&error) => Ok(0),
        answer => answer,
    }
}

/// Whether a question failed because the driver does not know it, and not because of the GPU.
fn is_unknown(error: &NvmlError) -> bool {
    matches!(error, NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound | NvmlError::NotSupported)
}

#[expect(unsafe_code, reason = "the wrapper asks by the second version only")]
fn memory_by_first_version(nvml: &Nvml, device: &Device<'_>) -> Result<u64, NvmlError> {
    let ask = nvml.lib().nvmlDeviceGetMemoryInfo.as_ref();
    let ask = ask.map_err(|error| NvmlError::FailedToLoadSymbol(error.to_string()))?;
    let mut info = std::mem::MaybeUninit::zeroed();
    // SAFETY: the function has the type that NVIDIA's header gives it, the handle is of this open library, and the answer
    // is three plain numbers, for which zeros are valid values.
    let info = unsafe {
        nvml_try(ask(device.handle(), info.as_mut_ptr()))?;
        info.assume_init()
    };
    Ok(info.total)
}

/// The kernel knows which CPUs are near a device.
fn near_cpus(bus_id: &str) -> Ranges {
    // The library writes eight digits of domain, the kernel four.
    let id = bus_id.to_ascii_lowercase();
    let id = match id.split_once(':') {
        Some((domain, rest)) => format!("{:0>4}:{rest}", domain.trim_start_matches('0')),
        None => id,
    };
    let list = fs::read_to_string(format!("/sys/bus/pci/devices/{id}/local_cpulist"));
    list.ok().and_then(|list| list.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_pretended_gpus_is_read_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bad-gpus");
        assert_eq!(pretended_trouble(&file), []);
        fs::write(&file, "# tried out\n3 fell off the bus\n\n5\n").expect("written");
        let expected = [(3, "fell off the bus".to_owned()), (5, "marked as bad".to_owned())];
        assert_eq!(pretended_trouble(&file), expected);
    }

    #[test]
    fn a_machine_without_a_driver_says_so_and_one_with_it_names_its_gpus() {
        match find() {
            Err(why) => assert!(!why.to_string().is_empty() && !why.to_string().contains("DlOpen"), "{why}"),
            Ok(gpus) => {
                assert!(gpus.iter().all(|gpu| gpu.trouble.is_some() || !gpu.uuid.is_empty()), "{gpus:?}")
            }
        }
    }
}
