use super::*;
use crate::profile::{load, read, write};
use rota_core::profile::Shape;
use rota_core::resources::Host;

fn imported(origin: Origin, files: &[(&str, &str)], options: &ImportOptions) -> Result<Imported, InputError> {
    let sources: Vec<Source> = files.iter().map(|(name, text)| Source::new(*name, *text)).collect();
    assert_eq!(sources.first().and_then(Origin::of), Some(origin), "recognised by itself");
    let imported = import(origin, &sources, options)?;
    let again = read(&Source::new("again", write(&imported.set))).expect("what is written is read");
    assert_eq!(again.entries(), imported.set.entries(), "an import goes through a file unchanged");
    Ok(imported)
}

#[test]
fn elasticflows_tables_become_the_shipped_curves() {
    let table = "global_batch_size,1,2,4,8,16,32,64\n64,0.43805962058835995,0.828799432511257,\
        1.3152121172616016,0.6109512985005995,0.8514782062868322,nan,nan\n";
    let set = imported(Origin::ElasticFlow, &[("x/T4/yolov3.csv", table)], &ImportOptions::default());
    let set = set.expect("sound").set;
    let shipped = load("elasticflow-t4").expect("built in");
    assert_eq!(set.get("yolov3").expect("there").scale, shipped.get("yolov3").expect("there").scale);
    assert_eq!(set.levels("yolov3", 64), shipped.levels("yolov3", 64));
}

#[test]
fn synergys_json_becomes_a_grid_with_its_demand() {
    // At 0 % of 100 GB an epoch takes 4 times as long, whatever the CPUs are; from 4 CPUs on nothing is gained.
    let json = r#"[{"1": 2.0, "4": 1.0, "8": 0.99},
        {"1": {"0": 400, "50": 200, "100": 200}, "4": {"0": 400, "50": 100, "100": 100}, "8": {"0": 400, "50": 99, "100": 99}},
        {"1": {"0": 250, "50": 125, "100": 0}, "4": {"0": 250, "50": 200, "100": 0}, "8": {"0": 250, "50": 210, "100": 0}}]"#;
    let options = ImportOptions {
        model: Some("mine".to_owned()),
        dataset_bytes: Some(100_000_000_000),
        gpus: 1,
        ..ImportOptions::default()
    };
    let set = imported(Origin::Synergy, &[("profile.json", json)], &options).expect("sound").set;
    let profile = set.get("mine").expect("named");
    assert_eq!(profile.demand_per_gpu, Host::from_units(4.0, 50.0, 200.0));
    let rate = |cpus: f64, mem: f64| {
        let per_gpu = Host::from_units(cpus, mem, 1e6);
        profile.rate(&Shape { gpus: 1, n_nodes: 1, per_gpu, gpu_type: "", batch: 0 })
    };
    assert!((rate(4.0, 100.0) - 1.0).abs() < 1e-9, "its batch time");
    assert!((rate(4.0, 0.0) - 0.25).abs() < 1e-9, "without memory");
    assert!((rate(1.0, 50.0) - 0.5).abs() < 1e-9);
    let error = imported(Origin::Synergy, &[("profile.json", json)], &ImportOptions::default());
    assert!(error.expect_err("no size").to_string().contains("--dataset 140GB"));
}

#[test]
fn gavels_json_becomes_curves_by_type_and_batch() {
    let json = r#"{"v100": {"('ResNet-18 (batch size 16)', 1)": {"null": 32.0, "('A3C', 1)": [1.0, 2.0]},
            "('ResNet-18 (batch size 16)', 4)": {"null": 20.0}, "('A3C', 1)": {"null": 5.5}},
        "k80": {"('ResNet-18 (batch size 16)', 1)": {"null": 4.0}, "('A3C', 1)": {"null": 0}},
        "v100_unconsolidated": {"('ResNet-18 (batch size 16)', 4)": {"null": 10.0}}}"#;
    let Imported { set, notes } =
        imported(Origin::Gavel, &[("simulation_throughputs.json", json)], &ImportOptions::default())
            .expect("sound");
    let resnet = set.get("ResNet-18").expect("there");
    assert_eq!(resnet.scale_curve("v100", 16).map(|c| c.points.clone()), Some(vec![(1, 32.0), (4, 20.0)]));
    assert_eq!(resnet.scale_curve("k80", 16).map(|c| c.points.clone()), Some(vec![(1, 4.0)]));
    assert!((resnet.spread[0] - 0.5).abs() < 1e-9);
    let beside = &resnet.beside[0];
    assert_eq!((beside.gpu_type.as_str(), beside.gpus, beside.batch), ("v100", 1, 16));
    assert_eq!(beside.rates, [("A3C".to_owned(), 0, 1.0)]);
    assert_eq!(
        read(&Source::new("g.toml", write(&set)))
            .expect("as written")
            .get("ResNet-18")
            .map(|p| p.beside.clone()),
        Some(resnet.beside.clone())
    );
    assert!(
        set.get("A3C").is_some_and(|p| p.scale.len() == 1),
        "what does not fit a GPU has no curve for it"
    );
    assert_eq!(notes.len(), 2, "{notes:?}");
    let odd = imported(
        Origin::Gavel,
        &[("t.json", r#"{"v100": {"ResNet": {"null": 1}}}"#)],
        &ImportOptions::default(),
    );
    assert!(odd.expect_err("no key").to_string().contains("got \"ResNet\""));
}

#[test]
fn gpemus_tables_add_up() {
    let files = [
        (
            "p/time/compute/forward/V100/alexnet/time_by_batch_size.csv",
            "Batch_Size,Time_In_SECONDS\n64,0.1\n128,0.2\n",
        ),
        (
            "p/time/compute/backward/V100/alexnet/time_by_batch_size.csv",
            "Batch_Size,Time_In_SECONDS\n64,0.1\n",
        ),
        (
            "p/time/transfer/V100/alexnet/data_transfer_time_by_batch_size.csv",
            "Batch_Size,Time_In_SECONDS\n64,0.05\n",
        ),
        ("p/memory/V100/alexnet/memory.csv", "batch_size,peak,persistent\n64,2000,500\n128,3000,500\n"),
    ];
    let Imported { set, notes } = imported(Origin::Gpemu, &files, &ImportOptions::default()).expect("sound");
    let alexnet = set.get("alexnet").expect("there");
    assert_eq!(alexnet.scale.len(), 1, "128 has no backward time");
    assert!((alexnet.scale[0].points[0].1 - 4.0).abs() < 1e-9);
    assert_eq!((alexnet.batch, alexnet.gpu_mem_bytes), (64, 2_000_000_000), "the memory of its own batch");
    assert_eq!(notes.len(), 1, "nothing is missing: {notes:?}");
    let bad = [("p/forward/V100/m/time_by_batch_size.csv", "Batch_Size,Time_In_SECONDS\n64,soon\n")];
    let error = imported(Origin::Gpemu, &bad, &ImportOptions::default()).expect_err("no number");
    assert!(error.to_string().contains(":2, column 2 (Time_In_SECONDS): got \"soon\""), "{error}");
}

#[test]
fn gpemus_folder_is_read_with_its_decimals_and_its_gaps() {
    let times = "Batch_Size,Time_In_SECONDS\n1.0,0.1\n2.0,0.2\n256.0,0.4\n";
    let forward =
        |name: &str| format!("p/time/compute/forward/Tesla_V100-PCIE-32GB/{name}/time_by_batch_size.csv");
    let backward = |name: &str| forward(name).replace("forward", "backward");
    let files = [
        (forward("a"), times),
        (backward("a"), times),
        (forward("b"), times),
        ("p/memory/NVIDIA_A100-SXM4-40GB/c/memory.csv".to_owned(), "batch_size,peak,persistent\n1.0,9,1\n"),
        ("p/plots/overview.csv".to_owned(), "x,y\n1,2\n"),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let Imported { set, notes } =
        imported(Origin::Gpemu, &files, &ImportOptions::default()).expect("gaps are no mistake");
    assert_eq!(set.names(), "a");
    let a = set.get("a").expect("there");
    assert_eq!(a.scale.iter().map(|curve| curve.batch).collect::<Vec<_>>(), [1, 2, 256]);
    assert_eq!(a.scale[0].gpu_type, "V100-PCIE-32GB", "as agents name it");
    assert_eq!(a.batch, 2, "64 was not measured, 2 is nearest");
    let expected = [
        "left out, no forward times: c on A100-SXM4-40GB",
        "left out, no backward times: b on V100-PCIE-32GB, c on A100-SXM4-40GB",
        "no transfer times, counted as 0: a on V100-PCIE-32GB",
        "no memory.csv, GPU memory unknown: a on V100-PCIE-32GB",
        "passed over, none of GPEmu's tables: p/plots/overview.csv",
    ];
    assert_eq!(notes[..5], expected);
    let large = ImportOptions { batch: 200, ..ImportOptions::default() };
    let set = imported(Origin::Gpemu, &files, &large).expect("sound").set;
    assert_eq!(set.get("a").map(|a| (a.batch, a.base_rate)), Some((256, 1.25)));
    for (cell, place) in [("1.5", "got \"1.5\""), ("0", "got \"0\""), ("many", "got \"many\"")] {
        let text = format!("Batch_Size,Time_In_SECONDS\n{cell},0.1\n");
        let error = imported(Origin::Gpemu, &[(files[0].0, &text)], &ImportOptions::default());
        let error = error.expect_err(cell).to_string();
        assert!(error.contains(":2, column 1 (Batch_Size)") && error.contains(place), "{error}");
    }
}

/// The public files themselves, where they are at hand.
#[test]
fn public_files_are_read() {
    let Some(shared) = rota_test_support::need::shared() else { return };
    let gavel = shared.join("traces/gavel-throughputs/simulation_throughputs.json");
    let source = Source::open(&gavel).expect("read");
    let set = import(Origin::Gavel, &[source], &ImportOptions::default()).expect("sound").set;
    assert!(set.entries().len() >= 7, "{}", set.names());
    let below = |folder: &std::path::Path| -> Vec<Source> {
        let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files.iter().map(|file| Source::open(file).expect("read")).collect()
    };
    let sources = below(&shared.join("golden/gpemu/profiled_data"));
    let Imported { set, notes } =
        import(Origin::Gpemu, &sources, &ImportOptions::default()).expect("as published");
    let alexnet = set.get("alexnet").expect("the one with both times");
    assert_eq!((set.entries().len(), alexnet.scale.len(), alexnet.batch), (1, 256, 64));
    assert!(notes[0].contains("resnet18 on V100-PCIE-32GB"), "{notes:?}");
    let folder = shared.join("golden/elasticflow/throughputs/A100");
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    let sources: Vec<Source> = files.map(|file| Source::open(&file.path()).expect("read")).collect();
    let set = import(Origin::ElasticFlow, &sources, &ImportOptions::default()).expect("sound").set;
    let shipped = load("elasticflow-a100").expect("built in");
    for entry in shipped.entries() {
        let mine = set.get(&entry.profile.name).expect("there");
        for curve in &entry.profile.scale {
            let found = mine.scale_curve("A100", curve.batch).map(|c| c.points.clone());
            assert_eq!(found.as_ref(), Some(&curve.points), "{} {}", entry.profile.name, curve.batch);
        }
    }
}
