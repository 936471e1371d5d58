//! Small policies as somebody writes them who has read the reference once: those that are right pass `check`, and each mistake is an
//! error that names the line and says what to write.

use std::path::Path;

use rota_scripts::commands;

/// What `rota policy check` says of a text.
fn checked(name: &str, text: &str) -> Result<String, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomers");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join(format!("{name}.rhai"));
    std::fs::write(&path, text).expect("a file can be written");
    commands::check(path.to_str().expect("a path in UTF-8")).map_err(|error| error.to_string())
}

#[track_caller]
fn is_right(name: &str, text: &str) {
    let said = checked(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(said.contains("good"), "{said}");
}

/// The error is in this line, and has all of these words.
#[track_caller]
fn is_told(name: &str, line: u32, text: &str, words: &[&str]) {
    let error = checked(name, text).expect_err(name);
    assert!(error.contains(&format!("{name}.rhai:{line}:")), "{name}: line {line}?\n{error}");
    for word in words {
        assert!(error.contains(word), "{name}: {word}?\n{error}");
    }
}

const EASY: &str = "
fn allocate(view) {
    let counts = #{};
    let free = view.cluster.gpus;
    let ends = [];
    for job in view.running {
        counts.set(job.id, job.held);
        free -= job.held;
        ends.push(#{ at: view.now + job.remaining, gpus: job.held });
    }
    ends.sort_by(|end| end.at);
    let reserved = ();
    let extra = 0;
    for job in rank(view.jobs.filter(view.jobs.held == 0).arrival) {
        if reserved == () {
            if job.gpus <= free { counts.set(job.id, job.gpus); free -= job.gpus; continue; }
            let have = free;
            for end in ends {
                have += end.gpus;
                if have >= job.gpus { reserved = end.at; extra = have - job.gpus; break; }
            }
        } else if job.gpus <= free && (view.now + job.remaining <= reserved || job.gpus <= extra) {
            counts.set(job.id, job.gpus);
            if view.now + job.remaining > reserved { extra -= job.gpus; }
            free -= job.gpus;
        }
    }
    view.fill(rank(view.jobs.held == 0, view.jobs.arrival)).gpus(view.jobs.recall(counts, 0)).give(\"fair_share\")
}
";

const MARGINAL_GAIN: &str = "
fn allocate(view) {
    let jobs = view.jobs;
    let counts = jobs.gpus * 0;
    let free = view.cluster.gpus;
    while free > 0 {
        let above = jobs.level_above(counts);
        let step = max(above - counts, 1);
        let gain = where((above > counts) & (step <= free), (jobs.rate(above) - jobs.rate(counts)) / step, 0);
        let best = gain.argmax();
        if best == () || gain.of(best) <= 0 { break; }
        free -= step.of(best);
        counts = where(jobs.id == best.id, above, counts);
    }
    view.fill(view.queue).gpus(counts).give(\"fair_share\")
}
";

#[test]
fn small_policies_work_as_they_are_first_written() {
    is_right("easy", EASY);
    is_right("marginal-gain", MARGINAL_GAIN);
    is_right("lifo", "fn order(jobs, now) { rank(-jobs.arrival) }");
    is_right(
        "lifo-array",
        "fn order(jobs, now) {\n    let all = [];\n    for job in jobs { all.push(job); }\n    all.reverse();\n    all\n}",
    );
    is_right(
        "tenant-quota",
        "fn admit(job, view) {\n    let quota = #{ ann: 16, ben: 8 };\n    let own = view.jobs.filter(view.jobs.tenant_name == job.tenant_name);\n    \
         if own.gpus.sum() + job.gpus > (quota[job.tenant_name] ?? 12) { wait() } else { accept() }\n}",
    );
    is_right(
        "by-model",
        "fn order(jobs, now) { jobs.order_by(|job| job.remaining * (weights()[job.model] ?? 1.0)) }\nfn weights() { #{ hungry: 2.0, modest: 0.5 } }",
    );
    is_right(
        "by-number",
        "fn order(jobs, now) {\n    let weight = #{};\n    weight.set(1, 2.0);\n    weight.set(8, 0.5);\n    \
         jobs.order_by(|job| job.arrival * (weight.get(job.gpus) ?? 1.0))\n}",
    );
    is_right(
        "mlfq",
        "fn order(jobs, now) {\n    let level = #{};\n    for job in jobs {\n        let before = (this.level ?? #{}).get(job.id) ?? 0;\n        \
         level.set(job.id, if job.attained > 1800 * 2 ** before { before + 1 } else { before });\n    }\n    this.level = level;\n    \
         rank(jobs.recall(level, 0), jobs.arrival)\n}",
    );
    is_right(
        "slack",
        "fn order(jobs, now) {\n    let slack = jobs.deadline - now - jobs.remaining;\n    rank(where(slack < 0, 1e12, slack), jobs.arrival)\n}",
    );
    is_right("by-rack", "fn place(job, nodes) { rank(nodes.rack, -nodes.free_gpus) }");
    is_right(
        "nodes-closure",
        "fn place(view) {\n    let most = view.nodes.map(|node| node.free_gpus).reduce(|a, b| if b > a { b } else { a }, 0);\n    \
         by_score(|node, job| if node.free_gpus >= job.gpus { most - node.free_gpus })\n}",
    );
    is_right(
        "own-admission",
        "fn admit(job, view) { if view.jobs.len < 50 { accept() } else { decline(\"full\") } }",
    );
}

#[test]
fn misspelt_names_are_found_wherever_they_are() {
    is_told(
        "field",
        2,
        "fn order(jobs, now) {\n    if jobs.len > 100000 { return rank(jobs.deadine); }\n    rank(jobs.arrival)\n}",
        &["Jobs has no field `deadine`", "did you mean `deadline`?"],
    );
    is_told(
        "param",
        2,
        "param(\"slice\", 1800.0, 1.0..=1e6, \"Seconds.\");\nfn order(jobs, now) { rank(floor(jobs.attained / param(\"slcie\"))) }",
        &["param `slcie` is not declared", "did you mean `slice`?"],
    );
    is_told(
        "stage",
        1,
        "fn ordr(jobs, now) { rank(-jobs.arrival) }\nfn place(job, nodes) { rank(nodes.id) }",
        &["`ordr` is no stage, and nothing calls it", "did you mean `order`?"],
    );
    is_told(
        "of-one",
        1,
        "fn order(jobs, now) { rank(!jobs.is_running, jobs.arrival) }",
        &["Jobs has no field `is_running`", "|job| job.is_running"],
    );
    is_told(
        "sort",
        1,
        "fn order(jobs, now) { jobs.sort(|a, b| b.arrival - a.arrival) }",
        &["Jobs has no verb `sort`", "rank(jobs.arrival)"],
    );
    is_told(
        "constant",
        2,
        "const W = 2.0;\nfn order(jobs, now) { jobs.order_by(|job| job.gpus * W) }",
        &["unknown variable `W`", "fn w()"],
    );
    is_told(
        "view",
        1,
        "fn order(jobs, now) { rank(jobs.deadline - view.now) }",
        &["unknown variable `view`", "hint:"],
    );
}

#[test]
fn values_of_the_wrong_kind_are_errors() {
    let sorted = |by: &str| {
        format!(
            "fn order(jobs, now) {{\n    let all = [];\n    for job in jobs {{ all.push(job); }}\n    all.sort(|a, b| {by});\n    all\n}}"
        )
    };
    let words = ["sort: a comparison of two must return a whole number", "sort_by(|x| number)"];
    is_told("float", 4, &sorted("a.arrival - b.arrival"), &words);
    is_told("bool", 4, &sorted("a.arrival > b.arrival"), &words);
    is_told(
        "condition",
        2,
        "fn order(jobs, now) {\n    if jobs.gpus > 4 { return rank(jobs.gpus); }\n    rank(jobs.arrival)\n}",
        &["a Column is not a condition", "where(condition, a, b)"],
    );
    is_told(
        "text",
        1,
        "fn order(jobs, now) { jobs.order_by(|job| if job.model == 5 { 0 } else { 1 }) }",
        &["`==` of a String and a whole number"],
    );
    is_told(
        "switch",
        1,
        "fn order(jobs, now) { rank(switch jobs.attained { 0..1800 => 0, _ => 1 }) }",
        &["a `switch` on a column finds no case", "where(condition, a, b)"],
    );
    is_told("number-key", 1, "fn order(jobs, now) { let w = #{ 1: 2.0 }; rank(jobs.gpus) }", &["map.get(1)"]);
    is_told(
        "brackets",
        1,
        "fn order(jobs, now) { let w = #{}; w[1] = 2.0; rank(jobs.gpus) }",
        &["map.set(number, value)"],
    );
    is_told(
        "in-place",
        4,
        "fn allocate(view) {\n    let counts = view.jobs.gpus * 0;\n    for job in view.jobs {\n        counts[job] += 1;\n    }\n    \
         view.fill(view.queue).gpus(counts)\n}",
        &["a column cannot be changed", "where(jobs.id == job.id"],
    );
}

#[test]
fn stages_that_return_nothing_or_take_something_else_are_errors() {
    is_told(
        "no-return",
        1,
        "fn allocate(view) { let fill = view.fill(view.queue).give(\"demand\"); }",
        &["`allocate` must return a Fill", "end the function with the value it returns"],
    );
    is_told(
        "lost-return",
        2,
        "fn order(jobs, now) {\n    if now > 3600.0 { rank(jobs.gpus) }\n    rank(jobs.arrival)\n}",
        &["the result of `rank` is not used", "return it"],
    );
    is_told(
        "no-else",
        1,
        "fn admit(job, view) { if view.jobs.len < 50 { accept() } }",
        &["`admit` must return accept()", "end the function with the value it returns"],
    );
    is_told("signature", 1, "fn order(jobs) { rank(jobs.arrival) }", &["write `fn order(jobs, now)`"]);
    is_told("swapped", 1, "fn place(nodes, job) { rank(nodes.rack) }", &["write `fn place(job, nodes)`"]);
    is_told(
        "off-by-one",
        4,
        "fn order(jobs, now) {\n    let all = [];\n    for i in 0..=jobs.len {\n        all.push(jobs[i]);\n    }\n    all\n}",
        &["is outside of", "0 is the first"],
    );
}
