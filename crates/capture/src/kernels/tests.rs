use super::*;

/// Answers of MindSpore 2.10: lists of rules, and what they choose of `names`.
const TABLE: &str = include_str!("mindspore_table.tsv");

/// The forms in which rules are written in a configuration.
fn rule(text: &str) -> Result<CompiledKernelRule, PatternError> {
    let pattern = text
        .strip_prefix("name-regex(")
        .and_then(|rest| rest.strip_suffix(')'));
    match pattern {
        Some(pattern) => CompiledKernelRule::regex(text, pattern),
        None if text.contains('/') || text.contains("-op") => Ok(CompiledKernelRule::name(text)),
        None => Ok(CompiledKernelRule::op_type(text)),
    }
}

#[test]
fn as_mindspore_chooses() {
    let mut names: Vec<&str> = Vec::new();
    let mut rules: Vec<CompiledKernelRule> = Vec::new();
    let mut n_checked = 0;
    for line in TABLE.lines() {
        let mut fields = line.split('\t').filter(|field| !field.is_empty());
        let (what, fields) = (fields.next().unwrap(), fields.collect::<Vec<_>>());
        match what {
            "names" => names = fields,
            "rules" => rules = fields.iter().map(|text| rule(text).unwrap()).collect(),
            "error" => assert!(rule(fields[0]).is_err(), "{line}"),
            "dumped" => {
                let is_chosen =
                    |name: &&str| rules.is_empty() || rule_for_name(&rules, name).is_some();
                let chosen: Vec<_> = names.iter().copied().filter(is_chosen).collect();
                assert_eq!(chosen, fields, "{rules:?}");
                n_checked += 1;
            }
            "unused" => {
                let used: Vec<_> = names
                    .iter()
                    .filter_map(|n| rule_for_name(&rules, n))
                    .collect();
                let is_unused = |i: &usize| !used.contains(i);
                let unused = (0..rules.len()).filter(is_unused);
                assert_eq!(unused.map(|i| rules[i].text()).collect::<Vec<_>>(), fields);
            }
            other => panic!("{other}"),
        }
    }
    assert!(n_checked > 50);
}

#[test]
fn types_of_nodes_with_free_names() {
    let check = |text: &str, op_type: &str, op_name: &str| {
        let operator = Operator {
            op_type: op_type.into(),
            op_name: op_name.into(),
            ..Operator::default()
        };
        rule_for_operator(&[rule(text).unwrap()], &operator).is_some()
    };
    assert!(check("conv", "Conv", "/features/0"));
    assert!(check("conv", "ConvTranspose", "up"));
    assert!(!check("conv", "Relu", "/conv1/relu"));
    assert!(!check("conv", "Relu", "conv_relu"));
    assert!(check("conv_relu", "Relu", "conv_relu"));
    assert!(!check("conv_relu", "Relu", "conv_relu_2"));
    assert!(check("/conv1/Conv", "Conv", "/conv1/Conv"));
    assert!(!check("conv1/Conv", "Conv", "/conv1/Conv"));
    // Exported with the names that MindSpore gave.
    assert!(check("conv2d", "Conv", "Default/conv1-Conv2d/Conv2D-op12"));
    assert!(!check("conv2d", "Conv", "Default/Conv2d/x-opaque"));
    assert!(check(
        "name-regex(.*/conv[0-9]+/.*)",
        "Relu",
        "/conv12/Relu"
    ));
    assert!(!check("name-regex(conv|fc)", "Conv", "fc2"));
    assert!(check("name-regex((?=.*2)fc.*)", "Gemm", "fc2"));
}

#[test]
fn half_an_expression_is_none_in_parentheses_either() {
    for bad in ["a)(b", "(", "a{2,1}", "(?<"] {
        assert!(CompiledKernelRule::regex("r", bad).is_err(), "{bad}");
    }
}

#[test]
fn a_part_of_a_name_is_enough_where_that_is_asked_for() {
    for (pattern, whole, part) in [
        ("conv[0-9]", false, true),
        (".*/conv1/.*", true, true),
        ("^conv", false, false),
        ("Conv$", false, true),
        ("pool", false, false),
    ] {
        let name = "net/conv1/Conv";
        let chooses =
            |rule: Result<CompiledKernelRule, _>| rule_for_name(&[rule.unwrap()], name).is_some();
        assert_eq!(
            chooses(CompiledKernelRule::regex("r", pattern)),
            whole,
            "{pattern}"
        );
        let anywhere = CompiledKernelRule::regex_anywhere("r", pattern);
        assert_eq!(chooses(anywhere), part, "{pattern}");
    }
    assert!(CompiledKernelRule::regex_anywhere("r", "(").is_err());
}
