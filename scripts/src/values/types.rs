//! Types by the names that scripts know: errors never show a Rust path.

use rhai::Dynamic;

/// Types whose name in Rust is another one: (last part of the Rust path, or Rhai's name; the script's name).
const NAMES: &[(&str, &str)] = &[
    ("i64", "int"),
    ("INT", "int"),
    ("f64", "float"),
    ("FLOAT", "float"),
    ("&str", "String"),
    ("ImmutableString", "String"),
    ("string", "String"),
    ("array", "Array"),
    ("Vec", "Array"),
    ("map", "Map"),
    ("BTreeMap", "Map"),
    ("FnPtr", "Fn"),
    ("JobValue", "Job"),
    ("NodeValue", "Node"),
    ("NodesValue", "Nodes"),
    ("GangValue", "Gang"),
    ("Host", "Share"),
    ("FillValue", "Fill"),
    ("PlanValue", "Plan"),
    ("VerdictValue", "Verdict"),
    ("VerdictsValue", "Verdicts"),
    ("StepsValue", "Steps"),
    ("TimelineValue", "Timeline"),
    ("RoomValue", "Room"),
    ("ClusterValue", "Cluster"),
    ("MilpValue", "Milp"),
    ("MilpAnswer", "Answer"),
    ("LeasesValue", "Leases"),
    ("OptimumValue", "Optimum"),
    ("LeaseProblemValue", "LeaseProblem"),
    ("NumberRange", "range"),
];

/// The name that scripts know a type by.
pub(crate) fn script_type(rust: &str) -> &str {
    let rust = rust.trim();
    if rust == "&str | ImmutableString | String" {
        return "String";
    }
    let path = rust.split('<').next().unwrap_or(rust);
    let last = path.rsplit("::").next().unwrap_or(path);
    NAMES.iter().find(|(theirs, _)| *theirs == last).map_or(last, |(_, ours)| ours)
}

/// What a script's author would call the type of a value, with its article.
pub(crate) fn type_label(value: &Dynamic) -> &str {
    label(script_type(value.type_name()))
}

/// A type by the name that scripts know, with its article.
pub(crate) fn label(name: &str) -> &str {
    match name {
        "()" => "nothing",
        "int" => "a whole number",
        "float" => "a number",
        "bool" => "true or false",
        "char" => "a character",
        "String" => "a String",
        "Array" => "an Array",
        "Map" => "a Map",
        "Fn" => "a function",
        "Column" => "a Column",
        "Texts" => "a Texts column",
        "Jobs" => "a set of Jobs",
        "Job" => "a Job",
        "Node" => "a Node",
        "Nodes" => "the Nodes",
        "Gang" => "the Gang",
        "NodeColumn" => "a NodeColumn",
        "Queue" => "a Queue",
        "Share" => "a Share",
        "Fill" => "a Fill",
        "Plan" => "a Plan",
        "Placement" => "a Placement",
        "Verdict" => "a Verdict",
        "Timeline" => "a Timeline",
        "View" => "the View",
        "Room" => "the Room",
        "Cluster" => "the Cluster",
        "Milp" => "a Milp",
        "Linear" => "a Linear",
        "Matrix" => "a Matrix",
        "Constraint" => "a Constraint",
        "Answer" => "an Answer",
        "Leases" => "a book of Leases",
        "Optimum" => "an Optimum",
        other => other,
    }
}

/// A message of Rhai's with every Rust path in it replaced by the script's name of the type.
pub(crate) fn without_rust_paths(text: &str) -> String {
    let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_path) {
        let end = rest[start..].find(|c| !is_path(c)).map_or(rest.len(), |length| start + length);
        let token = &rest[start..end];
        words.push_str(&rest[..start]);
        words.push_str(match token.contains("::") || matches!(token, "i64" | "f64" | "ImmutableString") {
            true => script_type(token),
            false => token,
        });
        rest = &rest[end..];
    }
    words + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_path_becomes_the_name_that_scripts_know() {
        assert_eq!(
            without_rust_paths(
                "data type incorrect: rota_scripts::values::columns::job::JobValue (expecting i64)"
            ),
            "data type incorrect: Job (expecting int)"
        );
        assert_eq!(without_rust_paths("see: `a: b`"), "see: `a: b`");
    }
}
