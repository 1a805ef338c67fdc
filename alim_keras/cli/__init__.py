"""The machinery of the commands: flags, flagfiles, presets and exit codes."""

from alim_keras.cli.bar import bar
from alim_keras.cli.command import Command
from alim_keras.cli.command import read_flags
from alim_keras.cli.environment import prepare_environment
from alim_keras.cli.kinds import Group
from alim_keras.cli.main import load
from alim_keras.cli.main import run
from alim_keras.cli.settings import Settings
from alim_keras.cli.settings import describe
from alim_keras.cli.settings import flags_as_text

__all__ = [
    "Command",
    "Group",
    "Settings",
    "bar",
    "describe",
    "flags_as_text",
    "load",
    "prepare_environment",
    "read_flags",
    "run",
]
