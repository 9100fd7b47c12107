//! Help at two lengths: `--help` shows the options of everyday use, `--help-all` every option.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};

use crate::CommandLine;

/// The option for all options.
const ALL: &str = "help-all";

/// The options that `--help` shows, by their ids, of commands with more than a screen of them.
const EVERYDAY: [(&str, &[&str]); 7] = [
    ("dump", EVERYDAY_OF_RUNS),
    ("op", EVERYDAY_OF_RUNS),
    (
        "compare",
        &[
            "reference",
            "view",
            "model",
            "golden_model",
            "repair",
            "thresholds",
            "atol",
            "mapping",
            "steps",
            "filter",
            "json",
            "csv",
            "html",
        ],
    ),
    (
        "diff",
        &[
            "input",
            "inputs",
            "shape",
            "seed",
            "engine",
            "golden_engine",
            "first",
            "repair",
            "save",
            "view",
            "json",
            "html",
        ],
    ),
    (
        "replay",
        &[
            "all",
            "model",
            "step",
            "golden",
            "thresholds",
            "json",
            "out",
            "view",
            "engine",
        ],
    ),
    (
        "convert",
        &[
            "dump",
            "out",
            "kind",
            "form",
            "layout",
            "only_output",
            "only_input",
            "compress",
            "json",
        ],
    ),
    (
        "sensitivity",
        &[
            "formats",
            "limit",
            "keep_list",
            "list_as",
            "csv",
            "json",
            "input",
            "inputs",
            "shape",
            "seed",
            "engine",
        ],
    ),
];

const EVERYDAY_OF_RUNS: &[&str] = &[
    "config", "out", "form", "stats", "input", "inputs", "shape", "seed", "steps", "engine",
    "view", "json",
];

/// The command line with every option in its help.
pub(crate) fn complete() -> Command {
    with_help_all(CommandLine::command())
}

/// Parses a command line. Help shows everyday options, or all with `--help-all`.
pub(crate) fn parse(arguments: &[OsString]) -> Result<CommandLine, clap::Error> {
    let mut command = complete();
    // The word may also be an argument of the drop-in, which has its own help; then nothing shows
    // the difference.
    if !arguments.iter().any(|word| word == "--help-all") {
        for (name, shown) in EVERYDAY {
            command = command.mut_subcommand(name, |command| shorten(command, shown));
        }
    }
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    CommandLine::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Adds `--help-all` to a command and to those below it.
fn with_help_all(command: Command) -> Command {
    // The drop-in passes every argument on.
    if command.is_disable_help_flag_set() {
        return command;
    }
    let help = "Print help with every option";
    let is_short = !EVERYDAY.iter().any(|(name, _)| *name == command.get_name());
    let option = Arg::new(ALL)
        .long(ALL)
        .help_heading(None)
        .action(ArgAction::HelpLong)
        .help(help)
        .hide(is_short);
    command.mut_subcommands(with_help_all).arg(option)
}

fn shorten(command: Command, shown: &[&str]) -> Command {
    command.mut_args(|option| {
        let id = option.get_id().as_str();
        if option.is_positional() || id == ALL || shown.contains(&id) {
            return option;
        }
        option.hide_short_help(true).hide_long_help(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a terminal that need no scrolling back far.
    const LINES_MAX: usize = 80;

    fn help(words: &[&str]) -> String {
        let words: Vec<OsString> = std::iter::once(&"opscope")
            .chain(words)
            .map(OsString::from)
            .collect();
        let Err(shown) = parse(&words) else {
            panic!("{words:?} is a command");
        };
        assert_eq!(
            shown.kind(),
            clap::error::ErrorKind::DisplayHelp,
            "{words:?}: {shown}"
        );
        shown.render().to_string()
    }

    #[test]
    fn help_fits_in_80_lines_and_help_all_has_the_rest() {
        let complete = complete();
        let mut n_commands = 0;
        for command in complete.get_subcommands() {
            let name = command.get_name();
            if command.is_disable_help_flag_set() || name == "help" {
                continue;
            }
            n_commands += 1;
            for word in ["-h", "--help"] {
                let n_lines = help(&[name, word]).lines().count();
                assert!(n_lines <= LINES_MAX, "{name} {word}: {n_lines} lines");
            }
            let (short, all) = (help(&[name, "--help"]), help(&[name, "--help-all"]));
            for option in command.get_arguments().filter_map(Arg::get_long) {
                let has = |text: &str| {
                    let option = format!("--{option}");
                    text.split([' ', '\n', ',']).any(|word| word == option)
                };
                assert!(has(&all) || option == ALL, "{name}: --{option}");
                let is_listed = !EVERYDAY.iter().any(|(long, _)| *long == name);
                assert!(
                    !is_listed || has(&short) || option == ALL,
                    "{name}: --{option}"
                );
            }
        }
        assert!(n_commands > 15, "{n_commands}");
    }

    #[test]
    fn everyday_options_exist() {
        let complete = complete();
        for (name, shown) in EVERYDAY {
            let command = complete.find_subcommand(name).unwrap();
            let ids: Vec<_> = command
                .get_arguments()
                .map(|option| option.get_id().as_str())
                .collect();
            let is_of_dump_alone = |id: &str| name == "op" && id == "view";
            for id in shown.iter().filter(|id| !is_of_dump_alone(id)) {
                assert!(ids.contains(id), "{name}: {id} of {ids:?}");
            }
        }
    }
}
