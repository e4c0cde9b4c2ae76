"""Print a script that completes commands, flags and names in bash, zsh or fish."""

from __future__ import annotations

import argparse

from overtone.errors import EXIT_OK

NOTES = (
    "bash: add  source <(overtone completion bash)  to ~/.bashrc\n"
    "zsh:  add  source <(overtone completion zsh)  to ~/.zshrc, after compinit\n"
    "fish: overtone completion fish > ~/.config/fish/completions/overtone.fish"
)
EXAMPLES = ("overtone completion bash", "overtone completion fish")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="shell: bash, zsh or fish")


def main(args: argparse.Namespace) -> int:
    from overtone.cli._completion import script

    print(script(args.shell), end="")
    return EXIT_OK
