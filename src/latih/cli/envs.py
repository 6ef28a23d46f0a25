"""`latih envs`: what there is to train on."""

from rich.table import Table

from latih.cli.screen import stdout
from latih.envs.registry import describe


def list_envs() -> int:
    """Print every environment with its dials."""
    table = Table(box=None, pad_edge=False)
    for column in ("name", "what it is", "dials"):
        table.add_column(column, overflow="fold")
    for env in describe():
        table.add_row(env.name, env.summary, ", ".join(env.dials))
    console = stdout()
    console.print(table)
    console.print(
        "\nA name works in `latih train NAME` and `latih eval … NAME`; so does my_env.py:MyEnv.", markup=False
    )
    return 0
