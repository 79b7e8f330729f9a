"""The `priorkit` command: one module a command, registered here.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 done, 1 an error of
`priorkit.errors` printed as one line, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys

import typer

from priorkit.errors import PriorkitError

from . import demo, evaluate, export, lab, pool, prior, probe, show, train
from .output import one_line

app = typer.Typer(
    name="priorkit",
    help="Tells, before a reinforcement-learning run, which prompts are worth rolling out.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("demo")(demo.demo)
app.command("probe")(probe.probe)
app.command("train")(train.train)
app.command("show")(show.show)
app.command("export")(export.export)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(prior.app, name="prior")
app.add_typer(pool.app, name="pool")
app.add_typer(lab.app, name="lab")


def _version(wanted: bool) -> None:
    if wanted:
        from priorkit import __version__

        typer.echo(f"priorkit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Tells, before a reinforcement-learning run, which prompts are worth rolling out."""


def _interrupt(signum: int, frame: object) -> None:
    """A polite kill, as a scheduler sends it, ends a command the way Ctrl-C does."""
    raise KeyboardInterrupt


def _drop_output() -> None:
    """Let the interpreter's last flush go nowhere instead of failing again."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; errors of the family become one line and exit code 1."""
    # OpenMP's waiting threads spin by default. Where another process wants the core, each of
    # torch's small operations then waits for the scheduler: twenty times slower, as measured.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    signal.signal(signal.SIGTERM, _interrupt)
    if sys.stderr is None:  # closed by whoever started it: nobody wants to hear
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # for as long as the process
    if sys.stdout is None:
        print("error: output: the standard output is closed", file=sys.stderr)
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name may be no Unicode
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except PriorkitError as error:
        print(f"error: {one_line(error, limit=None)}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:  # the machine's doing: a disk, a path, a closed stream
        print(f"error: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        _drop_output()
        sys.exit(1)
    except KeyboardInterrupt:  # before or after the command itself; during it, typer exits so
        sys.exit(130)


if __name__ == "__main__":
    main()
