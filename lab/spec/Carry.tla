------------------------------- MODULE Carry -------------------------------
\* What a period that is over has left goes to the next one (ledger/gate/carry.py): the two gates with the first
\* rights of a counter with a ceiling, both in the limit's Region. Every action below is one request that a shipped
\* program yields; the words are those of docs/glossary.md. The old period still takes late changes, and ends of holds.
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    First,     \* the ceiling with which either period opens
    Most,      \* how much may be carried, ever
    Ceilings,  \* those that may be set
    Sets,      \* how often a ceiling is set, at most
    Calls,     \* the calls that may be under way at a time
    Mistake    \* "none", or the rule that is left out

Periods == {"old", "new"}

VARIABLES
    gate,      \* gate[period]: rights, ceiling, epoch; moved: what was carried out, or taken over, ever
    used,      \* used[period]: what counts
    held,      \* held[period]: what holds keep
    call,      \* the calls under way
    set,       \* set[period]: the ceiling as it was set, without what was carried
    sets       \* how often one was set

vars == <<gate, used, held, call, set, sets>>

Resting == [does |-> "nothing"]
EitherCall == Permutations(Calls)

Init ==
    /\ gate = [p \in Periods |-> [rights |-> First, ceiling |-> First, epoch |-> 0, moved |-> 0]]
    /\ used = [p \in Periods |-> 0]
    /\ held = [p \in Periods |-> 0]
    /\ call = [k \in Calls |-> Resting]
    /\ set = [p \in Periods |-> First]
    /\ sets = 0

Goes(k, c) == call' = [call EXCEPT ![k] = c]
\* An Update that was sent may be carried out once more: the call stays where it was.
RestsOrStays(k) == Goes(k, Resting) \/ UNCHANGED call

\* ======== Changes and holds: no limit is seen, so no epoch is asked for ========
Change(p) ==
    /\ gate[p].rights > 0
    /\ gate' = [gate EXCEPT ![p].rights = @ - 1]
    /\ used' = [used EXCEPT ![p] = @ + 1]
    /\ UNCHANGED <<held, call, set, sets>>

Hold(p) ==
    /\ gate[p].rights > 0
    /\ gate' = [gate EXCEPT ![p].rights = @ - 1]
    /\ held' = [held EXCEPT ![p] = @ + 1]
    /\ UNCHANGED <<used, call, set, sets>>

Release(p) ==
    /\ held[p] > 0
    /\ gate' = [gate EXCEPT ![p].rights = @ + 1]
    /\ held' = [held EXCEPT ![p] = @ - 1]
    /\ UNCHANGED <<used, call, set, sets>>

Capture(p) ==
    /\ held[p] > 0
    /\ held' = [held EXCEPT ![p] = @ - 1]
    /\ used' = [used EXCEPT ![p] = @ + 1]
    /\ UNCHANGED <<gate, call, set, sets>>

\* ======== Who sets a ceiling, or carries, sees a gate first ========
See(k) ==
    /\ call[k].does = "nothing"
    /\ \E p \in Periods, does \in {"set", "carry"} :
        /\ does = "carry" => p = "old"
        /\ Goes(k, [does |-> does, of |-> p, seen |-> gate[p]])
    /\ UNCHANGED <<gate, used, held, set, sets>>

Dies(k) ==
    /\ call[k].does # "nothing"
    /\ Goes(k, Resting)
    /\ UNCHANGED <<gate, used, held, set, sets>>

\* The gate as an Update of what was seen leaves it: the ceiling is what follows from the one seen, rights are added to.
Moved(seen, p, more, moved) ==
    [gate EXCEPT ![p] = [rights  |-> @.rights + more,
                         ceiling |-> IF Mistake = "CeilingStays" THEN @.ceiling ELSE seen.ceiling + more,
                         epoch   |-> IF Mistake = "EpochStays" THEN @.epoch ELSE seen.epoch + 1,
                         moved   |-> moved]]

SetCeiling(k) ==
    LET c == call[k] g == gate[c.of] IN
    /\ c.does = "set" /\ sets < Sets
    /\ g.epoch = c.seen.epoch
    /\ \E wanted \in Ceilings \ {c.seen.ceiling} :
        /\ g.rights + wanted - c.seen.ceiling >= 0
        /\ gate' = [gate EXCEPT ![c.of] = [@ EXCEPT !.rights = @ + wanted - c.seen.ceiling, !.ceiling = wanted,
                                                    !.epoch = c.seen.epoch + 1]]
        /\ set' = [set EXCEPT ![c.of] = @ + wanted - g.ceiling]
    /\ sets' = sets + 1
    /\ RestsOrStays(k)
    /\ UNCHANGED <<used, held>>

CarryOut(k) ==
    LET c == call[k] g == gate["old"] IN
    /\ c.does = "carry"
    /\ g.epoch = c.seen.epoch \/ Mistake = "OutWithoutEpoch"
    /\ \E amount \in 1..c.seen.rights :
        /\ c.seen.moved + amount <= Most \/ Mistake = "MoreThanMayBe"
        /\ g.rights >= amount \/ Mistake = "OutWithoutRights"
        /\ gate' = Moved(c.seen, "old", -amount, c.seen.moved + amount)
    /\ UNCHANGED call  \* it looks again, and then takes over what it sees
    /\ UNCHANGED <<used, held, set, sets>>

\* The program has seen what was ever carried out, and sees the new gate.
SeeNew(k) ==
    /\ call[k].does = "carry"
    /\ call[k].seen.moved > gate["new"].moved
    /\ Goes(k, [does |-> "take", carried |-> call[k].seen.moved, seen |-> gate["new"]])
    /\ UNCHANGED <<gate, used, held, set, sets>>

CarryIn(k) ==
    LET c == call[k] IN
    /\ c.does = "take"
    /\ gate["new"].epoch = c.seen.epoch \/ Mistake = "InWithoutEpoch"
    /\ gate' = Moved(c.seen, "new", c.carried - IF Mistake = "TakenAnew" THEN 0 ELSE c.seen.moved, c.carried)
    /\ RestsOrStays(k)
    /\ UNCHANGED <<used, held, set, sets>>

Next ==
    \/ \E p \in Periods : Change(p) \/ Hold(p) \/ Release(p) \/ Capture(p)
    \/ \E k \in Calls : See(k) \/ Dies(k) \/ SetCeiling(k) \/ CarryOut(k) \/ SeeNew(k) \/ CarryIn(k)

Spec == Init /\ [][Next]_vars

\* ======== Promises ========
NoCeilingIsPassed == \A p \in Periods : used[p] + held[p] <= gate[p].ceiling
RightsAreConserved == \A p \in Periods : gate[p].rights = gate[p].ceiling - used[p] - held[p]
NothingIsMade ==
    /\ gate["new"].moved <= gate["old"].moved
    /\ gate["old"].ceiling = set["old"] - gate["old"].moved
    /\ gate["new"].ceiling = set["new"] + gate["new"].moved
NoMoreThanMayBeIsCarried == gate["old"].moved <= Most

\* ======== What must be able to happen ========
NeverOnItsWay == gate["new"].moved = gate["old"].moved
NeverAllThatMayBe == gate["new"].moved < Most
NeverLateBesideACarry == gate["old"].moved = 0 \/ used["old"] = 0
=============================================================================
