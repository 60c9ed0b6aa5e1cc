"""Commands on click: options described once, help in sections, modules loaded when asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, TypeAlias

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from compactor_cli.messages import form, set_form

Args: TypeAlias = SimpleNamespace
#: The settings that say which prefixes are partitions.
PARTITIONING = frozenset({"date_format", "window", "depth"})
_SETTINGS = {"help_option_names": ["-h", "--help"]}
_FULL = "compactor.help_all"
_FIRST_SENTENCE = re.compile(r"(?s)(.+?)(?:\.(?:\s|$)|; |$)")


class Option(click.Option):
    """An option with the section of the help in which it is shown.

    Args:
        section: its heading.
        common: whether ``--help`` shows it.
    """

    def __init__(
        self, *names: str, section: str = "options", common: bool = True, **attributes: Any
    ) -> None:
        super().__init__(names, **attributes)
        self.section = section
        self.common = common


class Number(click.FloatRange):
    """A number in a range, which NaN is not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Argument(click.Argument):
    """An argument with a help."""

    section, common = "arguments", True

    def __init__(self, name: str, metavar: str, help: str, **attributes: Any) -> None:
        super().__init__([name], metavar=metavar, **attributes)
        self.text = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return its name and its help."""
        return self.make_metavar(ctx), self.text


@dataclass(frozen=True, slots=True)
class Action:
    """What a command does: its parameters, and a function that takes their values by name."""

    run: Callable[[Args], int]
    parameters: Sequence[click.Parameter]


def action(*parameters: click.Parameter | Sequence[click.Parameter]) -> Callable[..., Action]:
    """Make a function the action of a command; groups of parameters may be given as lists."""
    flat: list[click.Parameter] = []
    for some in parameters:
        flat += [some] if isinstance(some, click.Parameter) else some
    return lambda run: Action(run, flat)


class Command(click.Command):
    """A command of one action; its examples are the end of its help."""

    def __init__(self, name: str, run: Action, summary: str, examples: str) -> None:
        def invoke(**_: Any) -> int:
            return run.run(values_of(click.get_current_context()))

        text = f"{summary[0].upper()}{summary[1:]}."
        super().__init__(name, callback=invoke, help=text, context_settings=_SETTINGS)
        self.params = [*run.parameters, *_common(hidden=True), *_help_all()]
        self._examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; ``--switch true`` is an error that names the switches."""
        for word, following in pairwise((*args, "")):
            switch, _, value = word.partition("=")
            for option in self.params:
                names = (*option.opts, *option.secondary_opts)
                if (
                    option.secondary_opts
                    and switch in names
                    and (value or following) in ("true", "false")
                ):
                    on, off = option.opts[0], option.secondary_opts[0]
                    raise click.UsageError(
                        f"{switch} takes no value: {on} is true, {off} is false", ctx
                    )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the parameters by section; without ``--help-all`` the common ones, in brief."""
        is_full = ctx.meta.get(_FULL, False)
        sections: dict[str, list[tuple[str, str]]] = {}
        is_shortened = False
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or not isinstance(parameter, Option | Argument):
                continue
            if not (is_full or parameter.common):
                is_shortened = True
                continue
            name, text = record
            brief = _FIRST_SENTENCE.match(text)
            shown = text if is_full or brief is None else brief[1]
            is_shortened |= shown.rstrip(".") != text.rstrip(".")
            sections.setdefault(parameter.section, []).append((name, shown))
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records, col_max=28)
        if is_shortened:
            formatter.write(
                f"\nall options, and what each accepts: {ctx.command_path} --help-all\n"
            )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self._examples:
            formatter.write(f"\nexamples:\n{self._examples}")


def values_of(ctx: click.Context) -> Args:
    """Return the values of a command. A depth that was typed replaces the job's dates."""
    values = {**ctx.params, "job_file": ctx.obj}
    typed = {
        name for name in values if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    replaced = PARTITIONING if "depth" in typed else frozenset()
    return Args(**{name: None if name in replaced - typed else values[name] for name in values})


def _common(*, hidden: bool = False) -> list[click.Parameter]:
    """Return the options of every command; they may stand before its name, too."""

    def set_one(_: click.Context, option: click.Parameter, value: Any) -> None:
        if value:
            name = option.name or ""
            set_form(replace(form(), **{name: value == "json" if name == "as_json" else True}))

    def set_job_file(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        # A command inherits what was typed before its name.
        ctx.obj = value or ctx.obj

    shared: dict[str, Any] = {"callback": set_one, "expose_value": False, "hidden": hidden}
    return [
        Option("-q", "--quiet", "is_quiet", is_flag=True, help="errors only", **shared),
        Option(
            "-v",
            "--verbose",
            "is_verbose",
            is_flag=True,
            help="errors in full, with causes",
            **shared,
        ),
        Option(
            "--log-format",
            "as_json",
            type=click.Choice(("text", "json")),
            help="form of progress and errors; json prints an object a line",
            **shared,
        ),
        Option(
            "--job-file",
            metavar="FILE.toml",
            is_eager=True,
            help="file with jobs, whose names stand for SOURCE and DEST, and whose settings are the"
            " defaults of options (by default compactor.toml in this directory)",
            **shared | {"callback": set_job_file},
        ),
    ]


def _help_all() -> list[click.Parameter]:
    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[_FULL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    return [
        Option(
            "--help-all",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show,
            help="show every option, in full",
            hidden=True,
        )
    ]


class Group(click.Group):
    """Commands by section; only the module of the requested command is imported.

    Args:
        sections: by heading, the commands with their summaries; ``runs show`` is of a group.
        load: returns a command, or a group, by the first word of its name.
    """

    def __init__(
        self,
        name: str,
        sections: Mapping[str, Sequence[tuple[str, str]]],
        load: Callable[[str], click.Command],
        **attributes: Any,
    ) -> None:
        words = [path.partition(" ")[0] for rows in sections.values() for path, _ in rows]
        stubs = {word: click.Command(word) for word in words}
        super().__init__(name, commands=stubs, no_args_is_help=False, **attributes)
        self.context_settings = _SETTINGS
        self.params = _common(hidden=self.epilog is None)
        self._sections, self._load = sections, load

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command with its parameters."""
        return self._load(cmd_name) if cmd_name in self.commands else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
        width = max(len(name) for rows in self._sections.values() for name, _ in rows)
        for section, rows in self._sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog as it is."""
        formatter.write(self.epilog or "")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so, without importing their modules."""
        names = [name for name in self.commands if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names]
