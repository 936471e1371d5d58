//! Large imported sets: GPEmu's folder as it is published, and what of it fits a screen.

use std::path::Path;

use super::commands::{rota, said};

const WIDTH: usize = 100;
const HEIGHT: usize = 50;

/// A folder as GPEmu's: 50 models on two GPUs with 256 batch sizes, some written as decimals, some files missing.
fn gpemu_folder(folder: &Path) {
    let times = |scale: f64, is_decimal: bool| {
        let row = |batch: u32| {
            let cell = if is_decimal { format!("{batch}.0") } else { batch.to_string() };
            format!("{cell},{}\n", scale * f64::from(batch))
        };
        format!("Batch_Size,Time_In_SECONDS\n{}", (1..=256).map(row).collect::<String>())
    };
    let write = |path: String, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    for (gpu, scale) in [("Tesla_V100-PCIE-32GB", 0.002), ("NVIDIA_A100-SXM4-40GB", 0.001)] {
        for model in 0..50 {
            let at = |kind: &str| format!("{kind}/{gpu}/wide_resnet101_{model}");
            let text = times(scale, model % 2 == 0);
            write(at("time/compute/forward") + "/time_by_batch_size.csv", &text);
            if model > 0 {
                write(at("time/compute/backward") + "/time_by_batch_size.csv", &text);
            }
            write(at("memory") + "/memory.csv", "batch_size,peak,persistent\n64.0,4000,500\n");
        }
    }
}

fn fits_a_screen(text: &str) -> bool {
    text.lines().count() <= HEIGHT && text.lines().all(|line| line.chars().count() <= WIDTH)
}

#[test]
fn gpemus_folder_imports_as_it_is_and_is_shown_on_a_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    gpemu_folder(&folder.path().join("profiled_data"));
    let go = |words: &[&str]| said(&rota(folder.path(), words));
    let (is_good, text) = go(&["import", "profiled_data", "-o", "gpemu.toml"]);
    assert!(is_good && text.contains("49 models written to gpemu.toml"), "{text}");
    assert!(text.contains("no backward times: wide_resnet101_0 on A100-SXM4-40GB"), "{text}");
    assert!(text.contains("no transfer times, counted as 0") && text.contains(" and 86 more"), "{text}");
    let (is_good, text) = go(&["show", "gpemu.toml"]);
    assert!(is_good && fits_a_screen(&text), "{text}");
    for part in
        ["1..256", "measured on A100-SXM4-40GB, V100-PCIE-32GB", "9 more models; --all lists every one"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, text) = go(&["show", "gpemu.toml", "--all"]);
    assert!(text.contains("wide_resnet101_49") && text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
    let (is_good, text) = go(&["show", "gpemu.toml", "wide_resnet101_7"]);
    assert!(is_good && fits_a_screen(&text), "{text}");
    // 64 samples at 1 ms each, forward and backward.
    for part in
        ["one iteration: 0.128000 s at its share, batch 64", "GPU memory: 4.000 GB", "9 of 256 batch sizes"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, text) = go(&["show", "gpemu.toml", "wide_resnet101_7", "--all"]);
    assert!(text.lines().count() > 256 && !text.contains("--all"), "{text}");
    for set in ["synergy", "elasticflow-a100", "elasticflow-t4"] {
        let (is_good, text) = go(&["show", set]);
        assert!(is_good && fits_a_screen(&text), "{text}");
    }
}
