"""The evaluation tasks by name: each is the value `TASK` of the module of that name, imported when it is wanted."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cse.evaluation.task import Task

TASKS = ("sts", "transfer", "few-shot", "clustering", "retrieval", "geometry")


def find_task(name: str) -> Task:
    """The task of a name. Raises ValueError, with the choices, for an unknown one."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; choose from {', '.join(TASKS)}")
    return import_module(f"cse.evaluation.{name.replace('-', '_')}").TASK


def tasks_with(option: str) -> list[str]:
    """Names of the tasks that have an option."""
    return [name for name in TASKS if option in find_task(name).options]
