"""The states of a CloudFormation stack: which of them can be updated, and what a person does about the others.

Rule 1: A state that ends in _IN_PROGRESS and is not here passes by itself.
"""

ROLLED_BACK = "ROLLBACK_COMPLETE"
"""The creation failed, and what it made was deleted. Such a stack can only be deleted."""

WHOLE = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
)
"""Those that can be updated."""

_DELETE = "find out why in its events, turn off its termination protection and delete it, which keeps the table"
_STUCK = {
    "REVIEW_IN_PROGRESS": "a change set waits to be executed, such as an import: execute it, or delete the stack",
    "UPDATE_FAILED": "`aws cloudformation rollback-stack`",
    "UPDATE_ROLLBACK_FAILED": "mend what its events name, then `aws cloudformation continue-update-rollback`",
    **dict.fromkeys(("CREATE_FAILED", "ROLLBACK_FAILED", "DELETE_FAILED", "IMPORT_ROLLBACK_FAILED"), _DELETE),
}


def is_busy(state: str) -> bool:
    return state.endswith("_IN_PROGRESS") and state not in _STUCK


def advice(state: str) -> str:
    """What a person does where CloudFormation goes on no more."""
    return _STUCK.get(state, "nobody here knows this state: look at the stack's events")
