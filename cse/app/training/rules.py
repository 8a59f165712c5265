"""What the owner of a server and its visitors may train and open, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from cse.app.validation import MAX_FILE_BYTES

OPTION, VARIABLE = "--train", "CSE_TRAIN"
HOUR = 3600.0


@dataclass(frozen=True)
class Rules:
    """Whether a client may train (`allowed`), and bounds; `own`: it may open folders, as the owner of the server.

    `texts` and `minutes` are those of a run, `runs` those that a visitor keeps and `all_runs` those of all visitors,
    `run_bytes` the size of a run's folder, `file_bytes` that of an upload, `kept` the seconds that a run stays after
    its last use.
    """

    allowed: bool = False
    own: bool = False
    texts: int = 5_000
    minutes: int = 15
    runs: int = 2
    all_runs: int = 6
    run_bytes: int = 2**30
    file_bytes: int = MAX_FILE_BYTES
    kept: float = 2 * HOUR

    def check(self) -> None:
        """Raise ValueError if a client may not train."""
        if not self.allowed:
            raise ValueError(REFUSED)

    @property
    def promise(self) -> str:
        """The bounds in words."""
        kept = "until it stops" if self.kept > 24 * HOUR else f"for {self.kept / HOUR:.0f} hours after their last use"
        return (
            f"Up to {self.texts:,} texts and {self.minutes} minutes a run, one run at a time. The server keeps your "
            f"newest {self.runs} runs {kept}: download what you want to keep."
        )


CLOSED = Rules()
GUESTS = Rules(allowed=True, file_bytes=100 * 2**20)
OWN = Rules(
    allowed=True, own=True, texts=50_000, minutes=240, runs=8, all_runs=8, run_bytes=8 * 2**30, file_bytes=2**30,
    kept=10_000 * HOUR,
)  # fmt: skip
BY_OWNER = f"with the option {OPTION} (or {VARIABLE}=1 in its environment)"
UNOWNED = f"This server does not train models. Its owner can allow it {BY_OWNER}."
REFUSED = (
    "Training is for the owner of this server: open the address that it printed at its start. The owner can allow it "
    f"to everyone {BY_OWNER}."
)
