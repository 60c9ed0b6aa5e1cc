"""``compactor completion``: prints the completions of a shell, made from the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from compactor.errors import InvalidInput

# zsh runs the functions of bash: bashcompinit is part of it.
_BASH = """\
_compactor() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="" one words=""
  for one in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
    case "$one" in -*) ;; *) before="$before$one " ;; esac
  done
  case "$before" in
{cases}
  esac
  COMPREPLY=()
  case "$word" in -*) ;; *)
    case "$before" in ""|"tables "|"table ") ;; *) return ;; esac
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _compactor compactor
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the completions.

    Raises:
        InvalidInput: they cannot be made for this shell.
    """
    makers = {"bash": _bash, "zsh": lambda words: _ZSH + _bash(words), "fish": _fish}
    if args.shell not in makers:
        raise InvalidInput("SHELL", args.shell, " or ".join(makers))
    print(makers[args.shell](dict(_words(args.parsers()))), end="")
    return 0


def _words(
    parsers: Mapping[str, argparse.ArgumentParser], path: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Yield for each command, and each action of one, what may follow it."""
    if not path:
        yield "", list(parsers)
    for name, parser in parsers.items():
        here, words = f"{path}{name} ", []
        for action in parser._actions:
            words += [one for one in action.option_strings if one.startswith("--")]
            if isinstance(action, argparse._SubParsersAction):
                words += list(action.choices)
                yield from _words(action.choices, here)
        yield here, words


def _bash(words: Mapping[str, list[str]]) -> str:
    # Of two patterns that match, the first counts.
    paths = sorted(words, reverse=True)
    cases = [
        f"""    "{path}"{"*" if path else ""}) words="{" ".join(words[path])}" ;;"""
        for path in paths
    ]
    return _BASH.format(cases="\n".join(cases))


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = []
    for path, found in words.items():
        given = "".join(f"; and __fish_seen_subcommand_from {one}" for one in path.split())
        condition = given.removeprefix("; and ") or "__fish_use_subcommand"
        options = " ".join(one for one in found if one.startswith("--"))
        names = " ".join(one for one in found if not one.startswith("--"))
        for some in filter(None, (options, names)):
            lines.append(f"complete -c compactor -n '{condition}' -a '{some}'")
    return "\n".join(lines) + "\n"
