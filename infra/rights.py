"""What each function's role allows, as one table.

Rule 1: A row is a statement. A request names all its partition keys, and one row must cover them
all: ForAllValues.
Rule 2: The logical name of another resource stands for its ARN.
Rule 3: This is the one list: the tests hold the functions' requests and the rendered roles against
it, and `make preflight` holds IAM's own simulation against it. IAM refuses what no row allows.
"""

import fnmatch
from typing import NamedTuple

ROLES = ("AddFromQueue", "Api", "Ring", "Compact", "Sweep", "Canary")
RECEIVE = "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes"
FOLLOW = (
    "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams"
)
LOG = "logs:CreateLogStream logs:PutLogEvents"

ALLOWED = (
    # roles               actions                         on the table at      partition keys
    # a fail-over retry keeps its lane
    ("AddFromQueue Api", "PutItem PartiQLInsert", "home", "delta#*"),
    ("AddFromQueue Sweep", "GetItem", "home", "shape"),
    ("Api", "GetItem BatchGetItem Query", "home", "delta#* fold#* gate#* past#* shape"),
    ("Api", "Query", "home", "lane#*"),  # the replica has every Region's
    ("AddFromQueue Api", "PutItem UpdateItem", "each", "gate#{here}#*"),
    ("AddFromQueue Api", "PartiQLInsert", "each", "past#{here}#* hold#{here}#*"),
    ("AddFromQueue Api", "PartiQLDelete", "each", "hold#{here}#*"),
    (
        "AddFromQueue Api",
        "GetItem BatchGetItem Query",
        "each",
        "gate#{here}#* past#{here}#* hold#{here}#*",
    ),
    # copies; without a gate, in any lane
    ("AddFromQueue Api", "BatchGetItem", "each", "gate#* fold#*"),
    # a program makes a gate only where nobody has added
    ("AddFromQueue Api", "Query", "each", "delta#*"),
    ("Ring", "BatchGetItem PartiQLInsert", "home", "lane#{home}#*"),
    ("Compact", "GetItem Query", "home", "delta#{home}#* fold#{home}#* shape"),
    ("Compact", "PutItem", "home", "fold#{home}#* lane#{home}#*"),  # a lane's first commit names it
    ("Compact", "DeleteItem PartiQLDelete", "home", "delta#{home}#*"),
    ("Compact", "GetItem", "each", "fold#{home}#*"),  # clean asks the other Regions
    # values, where it reports thresholds
    ("Compact", "BatchGetItem Query", "home", "delta#* fold#* gate#*"),
    ("Compact", "BatchGetItem UpdateItem", "home", "crossing#{home}#*"),
    ("Sweep", "Query", "home", "lane#{home}#* hold#{home}#*"),
    ("Sweep", "Query", "home", "lane#*"),  # where it reports thresholds
    ("Sweep", "BatchGetItem", "home", "gate#{home}#*"),
    ("Sweep", "GetItem PutItem", "home", "sweep#{home}"),
    ("Canary", "PutItem", "home", "delta#{home}#0#ledger:canary"),
    (
        "Canary",
        "GetItem BatchGetItem Query",
        "home",
        "delta#*#ledger:canary fold#*#ledger:canary shape",
    ),
    # of others                                           on
    ("AddFromQueue", f"{RECEIVE} sqs:ChangeMessageVisibility sqs:SendMessage", "ChangesQueue", ""),
    ("AddFromQueue", "sqs:SendMessage", "ChangesDeadLetterQueue", ""),
    ("AddFromQueue", "sqs:SendMessage", "OutcomesQueue", ""),
    ("Ring", FOLLOW, "StreamArn", ""),
    ("Ring Sweep", "sqs:SendMessage", "WorkQueue FailedQueue", ""),
    ("Compact", f"{RECEIVE} sqs:SendMessage", "WorkQueue", ""),
    ("Compact", "sqs:SendMessage", "WorkDeadLetterQueue", ""),
    ("Compact", "events:PutEvents", "default", ""),
    (" ".join(ROLES), LOG, "log", ""),
)


class Right(NamedTuple):
    """A statement.

    In a key, `home` is the function's Region, and `here` that of the request's endpoint.
    """

    actions: frozenset[str]
    on: frozenset[str]
    keys: frozenset[str]

    def uses(
        self, action: str, on: str, region: str, pks: tuple[str, ...], home: str
    ) -> frozenset[str]:
        """The action and the keys that allow a request at `region`'s endpoint; nothing where the
        role denies it.
        """
        at = {on} if on != "table" else {"each", "home"} if region == home else {"each"}
        fits = [
            {
                key
                for key in self.keys
                if fnmatch.fnmatchcase(pk, key.format(home=home, here=region))
            }
            for pk in pks
        ]
        allowed = (
            action in self.actions and at & self.on and all(fits) and bool(fits) == bool(self.keys)
        )
        return frozenset({action}.union(*fits)) if allowed else frozenset()


RIGHTS = {
    role: [
        Right(
            frozenset(each if ":" in each else f"dynamodb:{each}" for each in actions.split()),
            frozenset(on.split()),
            frozenset(keys.split()),
        )
        for roles, actions, on, keys in ALLOWED
        if role in roles.split()
    ]
    for role in ROLES
}
