//! Several steps in words: which is the first that differs, where its fault is, and what to dump
//! next.

use super::words;
use crate::compare::result::{
    Comparison, FirstStep, NextDump, StepFault, StepFindings, VerdictLevel,
};
use crate::compare::steps::in_ranges;

/// Maximum number of ranges of steps that are listed.
const N_RANGES_MAX: usize = 6;

/// How far the numbers of the target's steps are from golden's, in words; nothing if they are equal.
fn shift(comparison: &Comparison) -> String {
    let mut operators = comparison.operators.iter();
    let distance = operators.find_map(|operator| {
        let names = [operator.target.last()?, operator.golden.last()?];
        let [target, golden] = names.map(|name| name.step.map(i128::from));
        i64::try_from(target? - golden?).ok()
    });
    match distance {
        None | Some(0) => String::new(),
        Some(n) => format!("; step S of the golden side is step S{n:+} (`--step-offset {n}`)"),
    }
}

/// Lines about the steps of a comparison; none if there are no several.
pub fn lines(comparison: &Comparison) -> Vec<String> {
    // A comparison of one step has nothing to say here, and its report stays as it is.
    let Some(steps) = &comparison.summary.steps else {
        return Vec::new();
    };
    let all = listed(&steps.numbers()) + &shift(comparison);
    let Some(first) = &steps.first else {
        return vec![format!("all {} steps agree: {all}", steps.compared.len())];
    };
    let mut compared = steps.compared.iter();
    let fails = compared.any(|step| step.step == first.step && step.level == VerdictLevel::Fail);
    let what = if fails {
        "that fails"
    } else {
        "with a warning"
    };
    let mut lines = vec![format!(
        "first step {what}: {} of {all}{}",
        first.step,
        before(steps, first)
    )];
    lines.extend(fault(comparison, first));
    if let Some(next) = &first.next {
        lines.push(format!("dump next, on both sides: {}", wanted(next)));
        lines.extend(choices(comparison, next));
    }
    lines
}

/// How the steps before the first one went, in parentheses.
fn before(steps: &StepFindings, first: &FirstStep) -> String {
    // A step that passes after one with a warning does not count as agreeing: the runs may have
    // parted before it.
    let earlier = steps.compared.iter().filter(|step| step.step < first.step);
    let agreeing = earlier
        .clone()
        .take_while(|step| step.level == VerdictLevel::Pass);
    let numbers: Vec<u64> = agreeing.map(|step| step.step).collect();
    let warning = earlier.clone().nth(numbers.len());
    let agree = match numbers.as_slice() {
        [] => None,
        [one] => Some(format!("{one} agrees")),
        several => Some(format!("{} agree", listed(several))),
    };
    let warning = warning.map(|step| format!("first warning at {}", step.step));
    let parts: Vec<String> = agree.into_iter().chain(warning).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(", "))
    }
}

/// The place of the error, if the comparison found it.
fn fault(comparison: &Comparison, first: &FirstStep) -> Option<String> {
    if first.fault != StepFault::Before {
        return None;
    }
    let parameter = words::headline(comparison).and_then(|(_, _, slot)| slot?.parameter.as_deref());
    let step = first.step;
    // A step that is wrong from its inputs on does not make its operators suspects.
    let Some(name) = parameter else {
        return Some(format!(
            "  step {step} differs in what comes into it: look at its data and random numbers, \
             and at what updated the weights before it, not at its operators"
        ));
    };
    // No data of the step reaches a parameter before its update.
    let origin = match first.before {
        Some(before) if before + 1 == step => format!("what updated it after step {before}"),
        Some(_) => "what updated it before".to_owned(),
        None => "how it was initialised or loaded, and what updated it before".to_owned(),
    };
    let name = words::plain(name);
    Some(format!(
        "  step {step} begins with another parameter `{name}`: look at {origin}, not at the \
         operators of the step"
    ))
}

/// The steps of a dump and what it has to hold.
fn wanted(next: &NextDump) -> String {
    let NextDump {
        steps,
        needs_elements,
        n_rounds_after,
    } = next;
    let noun = if steps.len() == 1 { "step" } else { "steps" };
    let steps = in_ranges(steps, ", ");
    if *needs_elements {
        return format!("{noun} {steps} with all elements, as these are statistics");
    }
    let rounds = match n_rounds_after {
        0 => String::new(),
        1 => "; at most one more dump after it finds the first".to_owned(),
        n => format!("; at most {n} more dumps after it find the first"),
    };
    format!("{noun} {steps}, which were not compared; statistics will do{rounds}")
}

/// The options and keys that choose these steps, by the side where they are not the same.
fn choices(comparison: &Comparison, next: &NextDump) -> Vec<String> {
    let choices = comparison.origins().map(|origin| {
        let choice = origin?.choosing(&next.steps, next.needs_elements)?;
        Some(words::plain(&choice))
    });
    match choices {
        [Some(target), Some(golden)] if target == golden => vec![format!("  {target}")],
        // The two sides may come from different tools.
        [target, golden] => {
            let sides = [("target", target), ("golden", golden)];
            let known = sides
                .into_iter()
                .filter_map(|(side, choice)| Some((side, choice?)));
            known
                .map(|(side, choice)| format!("  {side}: {choice}"))
                .collect()
        }
    }
}

/// Numbers of steps: ranges, or the first and the last of many with the distance between them.
fn listed(numbers: &[u64]) -> String {
    // As of `--every 10`, of which a list would say less.
    if let [first, second, .., last] = numbers {
        let distance = second - first;
        let is_even = numbers.windows(2).all(|pair| pair[1] - pair[0] == distance);
        if is_even && distance > 1 {
            return format!("{first}, {second}, …, {last}");
        }
    }
    let text = in_ranges(numbers, ", ");
    let n_ranges = text.split(", ").count();
    if n_ranges <= N_RANGES_MAX {
        return text;
    }
    let shown: Vec<&str> = text.split(", ").take(N_RANGES_MAX).collect();
    format!("{}, … {} in all", shown.join(", "), numbers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_listed_in_few_words() {
        let check = |numbers: &[u64], expected: &str| assert_eq!(listed(numbers), expected);
        check(&[], "");
        check(&[7], "7");
        check(&[0, 1], "0-1");
        check(&[0, 1, 2, 5], "0-2, 5");
        check(&[0, 10, 20], "0, 10, …, 20");
        check(&[0, 10], "0, 10");
        check(
            &[0, 2, 4, 6, 8, 10, 12, 13],
            "0, 2, 4, 6, 8, 10, … 8 in all",
        );
    }
}
