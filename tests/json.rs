//! The JSON of all commands: every document has a version, and docs/json.md names every field that occurs.

mod harness;

use atlc::fuzz::campaign::Finding;
use atlc::fuzz::examine::Kind;
use atlc::verify::bisect::Found;
use harness::{atlc, quick, root};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// What a command writes, line by line or as one document.
fn documents(arguments: &[&str]) -> Vec<Value> {
    let ran = quick(atlc().args(arguments));
    let text = String::from_utf8(ran.stdout).expect("text");
    if let Ok(one) = serde_json::from_str(&text) {
        return vec![one];
    }
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let lines: Vec<Value> = lines.collect();
    assert!(!lines.is_empty(), "{arguments:?} writes nothing");
    lines
}

/// The names of all fields. Entities, functions and blocks as keys are data.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                // The listing of what belongs to no function has no name.
                let is_entity =
                    key.chars().any(|c| c.is_ascii_digit()) || ["", "main", "gcd", "lcm"].contains(&key.as_str());
                if !is_entity {
                    found.insert(key.clone());
                }
                fields(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_of_every_document_is_described() {
    let example = |name: &str| root().join("examples").join(name).display().to_string();
    let (swap, edge, lost, gcd) =
        (example("swap.atl"), example("critical_edge.atl"), example("lost_copy.atl"), example("gcd.atl"));
    let spill = example("spill.atl");
    let commands: Vec<Vec<&str>> = vec![
        vec!["dump", &swap, "--all", "--format", "json"],
        vec!["dump", &gcd, "--all", "--format", "json", "-O0"],
        vec!["explain", "copies", "--json", &swap],
        vec!["explain", "copies", "--json", &edge, "-O0"],
        vec!["explain", "copies", "--json", &spill, "-C", "regs=4"],
        vec!["explain", "copies", "--json", &lost, "-O2"],
        vec!["explain", "hazards", "--json", &swap],
        vec!["explain", "hazards", "--json", &edge],
        vec!["explain", "hazards", "--json", &lost, "-O2"],
        vec!["explain", "phis", "--json", &edge],
        vec!["compare", "--json", &swap],
        vec!["verify", "--json", &swap, "--break", "naive-order"],
        vec!["verify", "--json", &swap, "--break", "dropped-store"],
        vec!["bisect", "--json", &gcd],
        vec!["fuzz", "--json", "--seeds", "1..2"],
    ];
    let described = fs::read_to_string(root().join("docs/json.md")).expect("it is there");
    let mut all: Vec<(&str, Value)> = Vec::new();
    for arguments in commands {
        for document in documents(&arguments) {
            assert_eq!(document["version"], 1, "{arguments:?}");
            all.push((arguments[0], document));
        }
    }
    // What only a wrong compiler makes the commands say.
    let finding = Finding {
        seed: 1,
        kind: Kind::Miscompiled,
        flags: "-O0".to_string(),
        message: "the executable prints something else".to_string(),
        language: "atl",
        program: "print(1);".to_string(),
        input: String::new(),
        reduced: None,
    };
    all.push(("fuzz", serde_json::to_value(finding).expect("JSON")));
    let change = Found::Change { number: 3, pass: "gvn", within: 1, lines: vec!["-  %1 = int %0 + 1".to_string()] };
    for found in [change, Found::NotInOptimization { shows: "prints `1`".to_string() }] {
        all.push(("bisect", serde_json::to_value(found).expect("JSON")));
    }
    let mut missing: BTreeSet<String> = BTreeSet::new();
    for (command, document) in all {
        let mut found = BTreeSet::new();
        fields(&document, &mut found);
        assert!(found.len() > 1, "{command}");
        let is_described = |name: &String| {
            described.contains(&format!("`{name}`"))
                || described.contains(&format!(".{name}`"))
                || described.contains(&format!("`{name}["))
        };
        missing.extend(found.into_iter().filter(|name| !is_described(name)).map(|name| format!("{command}: {name}")));
    }
    assert!(missing.is_empty(), "docs/json.md does not name {missing:#?}");
}
