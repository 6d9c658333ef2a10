"""What went wrong, in a sentence, with a remedy and an exit code.

Rule 1: Every failure that a user, a role, a network or a table can cause has a sentence here.
Rule 2: The codes are public (docs/ledgerctl.md): 1 is about the data, 2 about what was typed, 3
about AWS and worth another try, 4 the one case in which the same command again may count twice.
Rule 3: Any other failure is a defect of ledgerctl; its message says so, and it has its own code.
"""

from collections.abc import Callable
from typing import Any

import typer
from botocore import exceptions as boto

from ledger.core import errors
from ledger.core.errors import PAGES
from ledger.tables.failures import code_of, error_of
from ledger.tables.refusals import UNACCEPTED

FINE, DATA, USAGE, NO_ANSWER, UNKNOWN, OURS, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
SILENT = (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError)
"""The exceptions with which Typer itself ends a program."""

UNEXPECTED, TRACE = "Unexpected", "LEDGERCTL_TRACE"

OF_AWS = (errors.NotAllowed, errors.Unavailable, errors.OutcomeUnknown)
MEANINGS: tuple[tuple[type[errors.LedgerError], int, str], ...] = (
    (
        errors.InvalidSettings,
        USAGE,
        "Options take precedence over the environment: `ledgerctl COMMAND --help` names both.",
    ),
    (errors.InvalidInput, USAGE, ""),
    (errors.TableMismatch, DATA, "`ledgerctl doctor` looks at the table's shape."),
    (
        errors.DamagedItem,
        DATA,
        f"`ledgerctl verify` shows how much is damaged; {PAGES}docs/operations/values.md has more.",
    ),
    (
        errors.LaneDamaged,
        DATA,
        f"`ledgerctl verify` shows how much is damaged; {PAGES}docs/operations/values.md has more.",
    ),
    (
        errors.SettingsMismatch,
        USAGE,
        f"`ledgerctl doctor` shows both; {PAGES}docs/data-model.md#shape has the rules.",
    ),
    (errors.TokenConflict, DATA, ""),
    (
        errors.LimitReached,
        DATA,
        "`ledgerctl standing COUNTER` shows what is left, held and on its way.",
    ),
    (errors.PeriodOver, DATA, "Add a correction to a period that is still open."),
    (errors.HoldEnded, DATA, "A hold ends once: make a new one, or `add` the change."),
    (errors.GateLost, DATA, f"{PAGES}docs/limits.md#when-a-gate-is-gone says what to do."),
    (
        errors.NoSuchHold,
        USAGE,
        "`ledgerctl holds COUNTER` lists those that are open, with their ids.",
    ),
    (
        errors.LimitMismatch,
        USAGE,
        f"`ledgerctl doctor` compares LEDGER_LIMITS with the table's ({PAGES}docs/limits.md).",
    ),
    # throttled, in conflict, too slow, not replicated, given up
    (errors.LedgerError, NO_ANSWER, "Run it again."),
)
"""The exit code and the remedy of each error of the library. The first line that fits decides."""

EXPIRED = {"ExpiredTokenException", "ExpiredToken", "RequestExpired"}
UNREACHABLE = (boto.ConnectionError, boto.ConnectionClosedError)
SIGN_IN = (
    boto.SSOError,
    boto.UnauthorizedSSOTokenError,
    boto.TokenRetrievalError,
    boto.CredentialRetrievalError,
)
GIVE = "--profile NAME, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
NO_PROFILE = (boto.ProfileNotFound, boto.ConfigParseError, boto.ConfigNotFound)


class Wrong(Exception):
    """A failure that ends a command: one sentence, one remedy."""

    def __init__(self, kind: str, message: str, remedy: str = "", code: int = USAGE) -> None:
        super().__init__(message)
        self.kind, self.message, self.remedy, self.code = kind, message, remedy, code


def meaning(failure: BaseException, where: Callable[[], str]) -> Wrong:
    """What a failure means. where: names the table."""
    if isinstance(failure, Wrong):
        return failure
    if isinstance(failure, KeyboardInterrupt):
        remedy = (
            "Run it again: nothing counts twice. Repeat an `add` without --key only by the "
            "command that it prints."
        )
        return Wrong("Interrupted", "Interrupted.", remedy, INTERRUPTED)
    if isinstance(failure, OSError) and failure.filename is not None:
        return Wrong("FileError", f"{failure.filename}: {failure.strerror}.", "Name another file.")
    for profile in (failure, failure.__cause__):
        if isinstance(profile, NO_PROFILE):
            remedy = "`aws configure list-profiles` names the profiles there are."
            return Wrong("NoProfile", f"{profile}.".replace("..", "."), remedy)
    if isinstance(failure, boto.ClientError | boto.BotoCoreError):
        error = error_of(
            failure, getattr(failure, "operation_name", "the request"), False, "the table"
        )
        error.__cause__ = failure
        failure = error
    kind = type(failure).__name__
    if isinstance(failure, errors.TableMissing):
        remedy = (
            "Name another with --table, --region or --endpoint-url, or make it: `ledgerctl init`."
        )
        return Wrong(kind, f"There is no table {where()}.", remedy)
    if isinstance(failure, OF_AWS):
        remedy = _remedy(failure, failure.__cause__, where)
        return Wrong(kind, errors.LedgerError.__str__(failure), remedy, NO_ANSWER)
    for error_type, code, remedy in MEANINGS:
        if isinstance(failure, error_type):
            return Wrong(kind, str(failure), remedy, code)
    message = (
        f"ledgerctl failed with an error that it does not know: {kind}: {failure}. It may or may "
        "not have written something."
    )
    return Wrong(
        UNEXPECTED,
        message,
        f"Please report it, with what the command prints under {TRACE}=1.",
        OURS,
    )


def of_step(error: errors.LedgerError) -> str:
    """The error of a step that the same command repeats: it had no key to send again."""
    is_unknown = isinstance(error, errors.OutcomeUnknown)
    return errors.LedgerError.__str__(error) if is_unknown else str(error)


def cut_off(failure: BaseException, where: Callable[[], str], done: str, remedy: str) -> Wrong:
    """What a failure that ends a long command means. done: what was done. remedy: how to go on."""
    wrong = meaning(failure, where)
    own = "" if isinstance(failure, KeyboardInterrupt) else wrong.remedy
    return Wrong(wrong.kind, f"{wrong.message} {done}", f"{own}\n{remedy}".strip(), wrong.code)


def of_credentials(cause: BaseException | None) -> str:
    """The remedy where credentials are missing, unknown to AWS or expired; else ""."""
    if isinstance(cause, boto.NoCredentialsError | boto.PartialCredentialsError):
        return f"Give credentials: {GIVE} A local endpoint takes any."
    if code_of(cause) in UNACCEPTED:
        return f"Give credentials that AWS accepts in this Region: {GIVE}"
    # botocore has no class of its own for credentials that a refresh left expired
    if code_of(cause) in EXPIRED or isinstance(cause, SIGN_IN) or type(cause) is RuntimeError:
        return "Sign in again, such as by `aws sso login`."
    return ""


def _remedy(failure: Exception, cause: Any, where: Callable[[], str]) -> str:
    if remedy := of_credentials(cause):
        return remedy
    if isinstance(failure, errors.NotAllowed):
        return (
            f"`ledgerctl doctor` says what this role may do; {PAGES}docs/security.md#roles has "
            "the policies."
        )
    if isinstance(cause, UNREACHABLE):
        return (
            f"Check that the endpoint is up and the Region's name is right: {where()}. Then "
            "run it again."
        )
    return "Run it again: nothing counts twice."
