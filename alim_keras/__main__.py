"""Lists the commands, and runs one: `alim-keras train ...`."""

import runpy
import sys

import alim_keras

COMMANDS = {
    "train": "train a classifier on candidate sets",
    "check": "read labels and images, and say what was found",
    "audit": "find the labels that are wrong, and write a report",
    "review": "answer the audit's review list in a browser",
    "predict": "predict new images with a trained model",
    "export": "write a run's models and labels again",
    "compare": "train a grid of methods, noise and seeds",
    "benchmark": "measure the speed of a training step",
}


def main():
    """Runs the command that the first word names; returns its exit code."""
    from alim_keras.app import process

    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if word in COMMANDS:
        # Run, not imported: `alim_keras.audit` is a function.
        names = runpy.run_module(f"alim_keras.{word}")
        return process.run(names["COMMAND"], names["main"], sys.argv[2:])
    if word == "--version":
        print(f"alim_keras {alim_keras.__version__}")
        return 0
    lines = ["alim-keras COMMAND [--flag=value ...]", ""]
    lines += [f"  {name:<10} {what}" for name, what in COMMANDS.items()]
    lines += ["", "alim-keras COMMAND --help shows the flags that matter most."]
    if word in ("--help", "-h"):
        print("\n".join(lines))
        return 0
    known = ", ".join(COMMANDS)
    error = f"error: There is no command {word}; there are {known}"
    process.report("alim_keras", error)
    return 2


if __name__ == "__main__":
    sys.exit(main())
