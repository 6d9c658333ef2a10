"""How a row of an imported file becomes a delta: by its token, or by key and time.

Rule 1: A row of `export` has a token and is the same delta again.
Rule 2: Any other names its change by key and time.
Rule 3: What is wrong with a row is a BadRow, what is wrong with every row a BadTemplate before the first.
"""

from dataclasses import asdict, dataclass

from ledger import Ledger, tokens
from ledger.checks import check_counter, to_datetime
from ledger.errors import InvalidInput, shown
from ledger.values import Delta
from ledgerctl.rows import Row, Rows
from ledgerctl.templates import BadRow, Columns, change_of, check_template, filled, number_of

DEFAULT = Columns()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a row becomes a delta: by its token if it has one and no key was asked for, else by key and time."""

    columns: Columns
    by_token: bool
    home_region: str | None

    def delta(self, ledger: Ledger, row: Row) -> Delta:
        """Raises BadRow, BadTemplate."""
        if row.why is not None:
            raise BadRow(row.why)
        fields, settings = row.fields, ledger.settings
        region = settings.region
        if self.home_region is not None:
            region = filled("home-region", self.home_region, fields)
        elif self.columns.key == DEFAULT.key:  # a row of `export`, or a message
            region = fields.get("region") or region
        try:
            if not (self.by_token and fields.get("token")):
                asked = change_of(self.columns, fields)
                return ledger.prepare(
                    asked.counter, asked.change, idempotency_key=asked.idempotency_key, at=asked.at, region=region
                )
            counter = check_counter(filled("counter", self.columns.counter, fields))
            token, change = fields["token"], number_of(self.columns, fields)
            if not (isinstance(token, str) and tokens.is_token(token)):
                raise BadRow(f"token={shown(token)} is no token: a ULID of 26 characters.")
            at = to_datetime(tokens.time_ms(token))
            ledger.prepare(counter, change, idempotency_key=token, at=at, region=region)  # refuses what add refuses
            return Delta(settings.lane_for(counter, token, region), token, change)
        except InvalidInput as error:
            raise BadRow(error.why) from None


def recipe_of(rows: Rows, columns: Columns, no_key: bool, home_region: str | None) -> Recipe:
    """How these rows become deltas.

    Raises BadTemplate for what can fit no row; without a header only the form of the templates can be seen.
    """
    by_token = no_key and (rows.names is None or "token" in rows.names)
    for option, template in asdict(columns).items():
        if not (by_token and rows.names is not None and option in ("key", "at")):
            check_template(option, template, rows.names)
    if home_region is not None:
        check_template("home-region", home_region, rows.names)
    return Recipe(columns, by_token, home_region)
