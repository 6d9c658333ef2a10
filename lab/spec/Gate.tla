-------------------------------- MODULE Gate --------------------------------
\* The gates of a counter with a limit, one lane or two. Every action below is one request that a shipped program
\* yields (ledger/gate); where a program carries nothing from one request to the next but its token, the second alone
\* is the action. The words are those of docs/glossary.md; README.md tells what is left out, and why.
\* Tokens are the numbers 1..N, in their order. What a token asks for is fixed by the configuration: a change or a
\* hold, of 1 or 2, either way, in its lane.
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    N,         \* how many tokens
    Lowering,  \* those that ask for a change below 0
    Twos,      \* those that ask for a change of 2; the others: of 1
    Holds,     \* those that ask for a hold
    InLane2,   \* those of lane 2; the others: of lane 1
    Lanes,     \* {1} or {1, 2}
    Sides,     \* which sides are limited: "down" (a floor), "up" (a ceiling)
    First,     \* the first rights of each limited side, all in lane 1
    Moves,     \* the most that a lane ever gives of a side
    Alike,     \* tokens with one fingerprint
    Batch,     \* what a roll may file: "any", "oldest" (of what is decided, and of what is held) or "nothing"
    Calls,     \* the calls that may be under way at a time
    Mistake    \* "none", or the rule that is left out

Tokens == 1..N

\* Outcomes: a change, or one of two that count nothing.
Open     == 9      \* not decided
Refused  == 10
Released == 11     \* let go, or over
Never    == -1     \* no version

VARIABLES
    gate,      \* gate[lane]
    segs,      \* segs[lane]: the segments that were ever put, also by rolls that lost
    late,      \* late[token]: the item that lists it alone
    notes,     \* the tokens of which there is a hold item
    call,      \* the calls under way, each of one program
    least,     \* least[call][lane]: the least of the lane's own rights since the call began to ask
    truth,     \* truth[token]: how it was decided first
    granted,   \* the holds that were ever granted
    fault      \* what was done or told that is wrong

vars == <<gate, segs, late, notes, call, least, truth, granted, fault>>

\* ======== Words ========
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : x >= y
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})

Change(t) == (IF t \in Lowering THEN -1 ELSE 1) * (IF t \in Twos THEN 2 ELSE 1)
Lane(t)   == IF t \in InLane2 THEN 2 ELSE 1
Other(l)  == 3 - l
Mark(t)  == IF t \in Alike THEN Min(Alike) ELSE t        \* its fingerprint
Counts(o)   == o < Open
ChangeOf(o) == IF Counts(o) THEN o ELSE 0

Toward(s)  == IF s = "down" THEN 1 ELSE -1                \* what a change of 1 adds to the right
Takes(s, n) == IF Toward(s) * n < 0 THEN -Toward(s) * n ELSE 0
Side(t)    == IF t \in Lowering THEN "down" ELSE "up"     \* the right that it takes
Need(t)    == Takes(Side(t), Change(t))
Own(g, s)  == g.rights[s] + g.given[s] - g.got[s]

Resting == [does |-> "nothing"]
NoItem  == [is |-> Open, version |-> 0]

NewGate(l) == [rights |-> [s \in Sides |-> IF l = 1 THEN First ELSE 0],
               given |-> [s \in Sides |-> 0], got |-> [s \in Sides |-> 0],
               recent |-> [t \in Tokens |-> Open], held |-> {},
               total |-> 0, count |-> 0, version |-> 0, low |-> 0, top |-> 0, moved |-> {}]

Init ==
    /\ gate = [l \in Lanes |-> NewGate(l)]
    /\ segs = [l \in Lanes |-> {}]
    /\ late = [t \in Tokens |-> NoItem]
    /\ notes = {}
    /\ call = [k \in Calls |-> Resting]
    /\ least = [k \in Calls |-> [l \in Lanes |-> 0]]
    /\ truth = [t \in Tokens |-> Open]
    /\ granted = {}
    /\ fault = "none"

Blame(what) == fault' = IF fault = "none" THEN what ELSE fault
NoBlame     == UNCHANGED fault

\* Every action ends with it: what those who ask could have seen at the least.
Follow ==
    least' = [k \in Calls |-> [l \in Lanes |->
        IF call'[k].does # "ask" THEN 0
        ELSE LET now == Own(gate'[l], Side(call'[k].token))
             IN IF call[k].does = "ask" THEN Min({now, least[k][l]}) ELSE now]]

Writes(l, g) == gate' = [gate EXCEPT ![l] = g]
Goes(k, c)   == call' = [call EXCEPT ![k] = c]
Rests(k)     == Goes(k, Resting)
\* An Update that was sent may be carried out once more: the call stays where it was.
RestsOrStays(k) == Rests(k) \/ UNCHANGED call
Items == <<segs, late, notes>>
Books == <<truth, granted, fault>>

\* ======== What an Update asks, and does ========
Fresh(g, t) ==
    /\ t > g.low \/ Mistake = "LowNotChecked"
    /\ Mark(t) \notin g.moved \/ Mistake = "MovedNotChecked"

Unknown(g, t) == g.recent[t] = Open /\ t \notin g.held

IsOpen(g, t, seen) ==
    /\ Unknown(g, t)
    /\ IF seen = Never THEN Fresh(g, t) ELSE g.version = seen \/ Mistake = "SlowWithoutVersion"

Suffices(g, n) == \A s \in Sides : g.rights[s] >= Takes(s, n)

\* A change is decided, or a hold is granted.
Grants(t) ==
    LET g == gate[Lane(t)] IN
    IF t \in Holds
    THEN /\ Writes(Lane(t), [g EXCEPT !.held = @ \union {t}, !.rights = [s \in Sides |->
                    @[s] - Takes(s, Change(t)) + IF Mistake = "RoomNotKept" THEN Takes(s, -Change(t)) ELSE 0]])
         /\ granted' = granted \union {t}
         /\ IF t \in granted \/ truth[t] # Open THEN Blame("decided twice") ELSE NoBlame
         /\ UNCHANGED truth
    ELSE /\ Writes(Lane(t), [g EXCEPT !.recent[t] = Change(t),
                                      !.rights = [s \in Sides |-> @[s] + Toward(s) * Change(t)]])
         /\ truth' = [truth EXCEPT ![t] = IF @ = Open THEN Change(t) ELSE @]
         /\ IF truth[t] # Open THEN Blame("decided twice") ELSE NoBlame
         /\ UNCHANGED granted

\* A hold ends: what it used counts, the rest goes back, and the opposite right comes with what it used.
Back(s, t, o) ==
    CASE Mistake = "DifferenceKept" /\ Takes(s, ChangeOf(o)) > 0 -> 0
      [] Mistake = "RoomNotKept" /\ ~Counts(o) -> Takes(s, Change(t)) - Takes(s, -Change(t))
      [] Mistake = "RoomNotKept" -> 0
      [] OTHER -> Takes(s, Change(t)) + Toward(s) * ChangeOf(o)

Ends(t, o) ==
    LET g == gate[Lane(t)] IN
    /\ Writes(Lane(t), [g EXCEPT !.recent[t] = o, !.held = @ \ {t},
                                 !.rights = [s \in Sides |-> @[s] + Back(s, t, o)]])
    /\ truth' = [truth EXCEPT ![t] = IF @ = Open THEN o ELSE @]
    /\ IF truth[t] # Open THEN Blame("decided twice") ELSE NoBlame
    /\ UNCHANGED granted

EndsOf(t) == {Released, Change(t)} \union IF t \in Twos THEN {Change(t) \div 2} ELSE {}

\* ======== add, hold and end, where the gate alone suffices: one Update ========
Decide ==
    \E t \in Tokens :
        /\ IsOpen(gate[Lane(t)], t, Never)
        /\ Suffices(gate[Lane(t)], Change(t))
        /\ Grants(t)
        /\ UNCHANGED <<Items, call>> /\ Follow

EndInGate ==
    \E t \in Holds : \E o \in EndsOf(t) :
        /\ t \in gate[Lane(t)].held \/ (Mistake = "EndWithoutCondition" /\ t \in granted)
        /\ Ends(t, o)
        /\ UNCHANGED <<Items, call>> /\ Follow

\* Two changes of one lane are decided in one Update: both, or none.
DecidesBoth(t, u) ==
    LET g == gate[Lane(t)] IN
    /\ Suffices(g, Change(t) + Change(u))
    /\ Writes(Lane(t), [g EXCEPT !.recent[t] = Change(t), !.recent[u] = Change(u),
            !.rights = [s \in Sides |-> @[s] + Toward(s) * (Change(t) + Change(u))]])
    /\ truth' = [truth EXCEPT ![t] = IF @ = Open THEN Change(t) ELSE @, ![u] = IF @ = Open THEN Change(u) ELSE @]
    /\ IF truth[t] # Open \/ truth[u] # Open THEN Blame("decided twice") ELSE NoBlame

DecideGroup ==
    \E t, u \in Tokens \ Holds :
        LET g == gate[Lane(t)] IN
        /\ t < u /\ Lane(t) = Lane(u)
        /\ IsOpen(g, t, Never)
        /\ IsOpen(g, u, Never) \/ (Mistake = "GroupChecksOne" /\ Unknown(g, u))
        /\ DecidesBoth(t, u)
        /\ UNCHANGED <<Items, call, granted>> /\ Follow

\* ======== look up: the version first; then, all at once, the late item, the hold item and the segments, these one by
\* one from the first whose hi is not below the token.
LooksUp(t, why, missed, was) ==
    [does |-> "look up", token |-> t, why |-> why, seen |-> gate[Lane(t)].version, at |-> 0, noted |-> FALSE,
     left |-> IF Mistake = "NoteBelieved" /\ why = "end" THEN {"note"}
              ELSE IF Mistake = "NoteNotLookedUp" THEN {"late", "segments"}
              ELSE {"late", "note", "segments"},
     missed |-> missed, was |-> was]

\* What is true of a hold when a call begins: an answer is judged by it.
Was(t) == IF truth[t] # Open THEN "decided" ELSE IF t \in granted THEN "held" ELSE "unknown"

BeginLookUp(k) ==
    /\ call[k].does = "nothing"
    /\ \E t \in Tokens : \E why \in IF t \in Holds THEN {"decide", "end"} ELSE {"decide"} :
        /\ Unknown(gate[Lane(t)], t)
        /\ why = "decide" => ~Fresh(gate[Lane(t)], t)
        /\ Goes(k, LooksUp(t, why, Never, Was(t)))
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

Looking(k, what) == call[k].does = "look up" /\ what \in call[k].left

\* How the call goes on when it found nothing in one of the three.
Nothing(c, what) == [c EXCEPT !.left = @ \ {what}, !.at = IF what = "segments" THEN 0 ELSE @,
                              !.seen = IF Mistake = "LookUpBeforeVersion" THEN gate[Lane(c.token)].version ELSE @]

\* The token's outcome is told.  Who came from the hold items deletes the item.
Answers(k, o) ==
    LET t == call[k].token IN
    /\ IF truth[t] # o THEN Blame("a lie") ELSE NoBlame
    /\ Rests(k)
    /\ \/ UNCHANGED notes
       \/ call[k].why = "end" /\ t \in notes /\ notes' = notes \ {t}
    /\ UNCHANGED <<gate, segs, late, truth, granted>> /\ Follow

GetLate(k) ==
    /\ Looking(k, "late")
    /\ LET found == late[call[k].token].is IN
        IF found # Open THEN Answers(k, found)
        ELSE Goes(k, Nothing(call[k], "late")) /\ UNCHANGED <<gate, Items, Books>> /\ Follow

GetNote(k) ==
    /\ Looking(k, "note")
    /\ Goes(k, [Nothing(call[k], "note") EXCEPT !.noted = call[k].token \in notes])
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

\* Segments by their sort keys: hi, version, and the hash of what they hold, in some order.
RECURSIVE Code(_)
Code(T) == IF T = {} THEN 0 ELSE LET t == CHOOSE t \in T : TRUE IN 2^(t - 1) + Code(T \ {t})
Key(s)  == s.hi * 1000 + s.version * 100 + s.low * 16 + Code({e[1] : e \in s.lists})

GetSegment(k) ==
    /\ Looking(k, "segments")
    /\ LET t     == call[k].token
           ahead == {s \in segs[Lane(t)] : s.hi >= t /\ Key(s) > call[k].at}
       IN IF ahead = {} THEN Goes(k, Nothing(call[k], "segments")) /\ UNCHANGED <<gate, Items, Books>> /\ Follow
          ELSE LET s     == CHOOSE s \in ahead : \A x \in ahead : Key(s) <= Key(x)
                   found == {e \in s.lists : e[1] = t}
               IN IF found # {} THEN \E e \in found : Answers(k, e[2])
                  ELSE /\ IF s.low >= t \/ Mistake = "FirstSegmentAlone"
                          THEN Goes(k, Nothing(call[k], "segments"))
                          ELSE Goes(k, [call[k] EXCEPT !.at = Key(s)])
                       /\ UNCHANGED <<gate, Items, Books>> /\ Follow

Looked(k, why) == call[k].does = "look up" /\ call[k].left = {} /\ call[k].why = why

\* A hold that goes on is told.
TellHeld(k) ==
    /\ Looked(k, "decide") /\ call[k].noted
    /\ IF call[k].was # "held" THEN Blame("a lie") ELSE NoBlame
    /\ Rests(k)
    /\ UNCHANGED <<gate, Items, truth, granted>> /\ Follow

DecideSlowly(k) ==
    LET t == call[k].token IN
    /\ Looked(k, "decide") /\ ~call[k].noted
    /\ IsOpen(gate[Lane(t)], t, call[k].seen)
    /\ Suffices(gate[Lane(t)], Change(t))
    /\ Grants(t)
    /\ RestsOrStays(k)
    /\ UNCHANGED Items /\ Follow

\* Another that is fresh may go with it: it was so in the gate that was seen, and stays so while the version does.
DecideGroupSlowly(k) ==
    LET t == call[k].token
        g == gate[Lane(t)]
    IN
    /\ Looked(k, "decide") /\ ~call[k].noted /\ t \notin Holds
    /\ IsOpen(g, t, call[k].seen)
    /\ \E u \in Tokens \ (Holds \union {t}) :
        /\ Lane(u) = Lane(t) /\ IsOpen(g, u, Never)
        /\ DecidesBoth(t, u)
    /\ RestsOrStays(k)
    /\ UNCHANGED <<Items, granted>> /\ Follow

\* ======== The end of a hold that was filed, also when its time is over: anybody may find that at any time.
EndFiled(k) ==
    LET t == call[k].token IN
    /\ Looked(k, "end") /\ call[k].noted
    /\ Unknown(gate[Lane(t)], t)
    /\ gate[Lane(t)].version = call[k].seen \/ Mistake = "FiledEndWithoutVersion"
    /\ \E o \in EndsOf(t) : Ends(t, o)
    /\ RestsOrStays(k)
    /\ UNCHANGED Items /\ Follow

\* The hold item of what the gate knows to be decided is deleted.
Forget ==
    \E t \in notes :
        /\ \/ gate[Lane(t)].recent[t] # Open
           \/ Mistake = "NoteDeletedFirst" /\ \E k \in Calls : Looked(k, "end") /\ call[k].noted /\ call[k].token = t
        /\ notes' = notes \ {t}
        /\ UNCHANGED <<gate, segs, late, call, Books>> /\ Follow

\* Neither an outcome nor a hold item: it may have ended and been filed meanwhile.
Miss(k) ==
    /\ Looked(k, "end") /\ ~call[k].noted
    /\ IF call[k].missed = call[k].seen \/ Mistake = "NoSecondLook"
       THEN /\ Rests(k)
            /\ IF call[k].was # "unknown" THEN Blame("a lie") ELSE NoBlame
       ELSE /\ Goes(k, [does |-> "look again", token |-> call[k].token, missed |-> call[k].seen, was |-> call[k].was])
            /\ NoBlame
    /\ UNCHANGED <<gate, Items, truth, granted>> /\ Follow

LookAgain(k) ==
    /\ call[k].does = "look again"
    /\ LET t == call[k].token IN
        IF Unknown(gate[Lane(t)], t) THEN Goes(k, LooksUp(t, "end", call[k].missed, call[k].was)) ELSE Rests(k)
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

\* ======== roll: of a gate as it was seen, any decided tokens and any holds. They are copied, in any order; when all
\* copies are acknowledged they leave.
Batches(S) ==
    CASE Batch = "any"     -> SUBSET S
      [] Batch = "oldest"  -> {{t \in S : t <= last} : last \in S \union {0}}
      [] Batch = "nothing" -> {{}}

BeginRoll(k) ==
    /\ call[k].does = "nothing"
    /\ \E l \in Lanes :
        LET g == gate[l] IN
        \E S \in Batches({t \in Tokens : g.recent[t] # Open}), H \in Batches(g.held),
           low \in (IF Mistake = "LowCanFall" THEN 0 ELSE g.low)..N :
            LET above == {t \in S : t > g.low}
                hi    == IF above = {} THEN g.top
                         ELSE IF Mistake = "HiCanFall" THEN Max(above) ELSE Max(above \union {g.top})
                marks == {Mark(t) : t \in IF Mistake = "HoldWithoutPrint" THEN S ELSE S \union H}
                         \union IF Mistake = "MovedForgotten" THEN {} ELSE g.moved
                files == {<<t, g.recent[t]>> : t \in S}
            IN /\ S \union H # {}
               /\ Goes(k, [does |-> "roll", lane |-> l, seen |-> g.version, files |-> files, holds |-> H,
                           segment |-> [hi |-> hi, version |-> g.version + 1,
                                        low |-> IF Mistake = "SegmentSaysNewLow" THEN low ELSE g.low,
                                        lists |-> {e \in files : e[1] \in above}],
                           left |-> (S \ above) \union H \union IF above = {} THEN {} ELSE {0},
                           low |-> low,
                           moved |-> {p \in marks : \E t \in Tokens : Mark(t) = p /\ t > low},
                           total |-> g.total + Sum([t \in S |-> ChangeOf(g.recent[t])], S),
                           count |-> g.count + Cardinality({t \in S : Counts(g.recent[t])})])
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

RollPut(k) ==
    /\ call[k].does = "roll"
    /\ \E i \in call[k].left :
        LET l == call[k].lane
            s == call[k].segment
        IN /\ Goes(k, [call[k] EXCEPT !.left = @ \ {i}])
           /\ CASE i = 0 -> /\ segs' = [segs EXCEPT ![l] =
                                   {s} \union {x \in @ : Mistake # "NamedWithoutContent" \/ x.hi # s.hi
                                                                                      \/ x.version # s.version}]
                            /\ UNCHANGED <<late, notes>>
                [] i \in call[k].holds -> notes' = notes \union {i} /\ UNCHANGED <<segs, late>>
                [] OTHER -> /\ late' = [late EXCEPT ![i] = [is |-> (CHOOSE e \in call[k].files : e[1] = i)[2],
                                                            version |-> s.version]]
                            /\ UNCHANGED <<segs, notes>>
    /\ UNCHANGED <<gate, Books>> /\ Follow

FinishRoll(k) ==
    /\ call[k].does = "roll"
    /\ \/ call[k].left = {}
       \/ Mistake = "RemovedBeforePut"
       \/ Mistake = "HoldRemovedBeforePut" /\ call[k].left \subseteq call[k].holds
    /\ LET c == call[k]
           g == gate[c.lane]
           S == {e[1] : e \in c.files}
       IN /\ g.version = c.seen \/ Mistake = "FinishWithoutVersion"
          /\ Writes(c.lane, [g EXCEPT !.recent = [t \in Tokens |-> IF t \in S THEN Open ELSE @[t]],
                                      !.held = @ \ c.holds, !.total = c.total, !.count = c.count,
                                      !.version = c.seen + 1, !.low = c.low, !.top = c.segment.hi, !.moved = c.moved])
    /\ RestsOrStays(k)
    /\ UNCHANGED <<Items, Books>> /\ Follow

\* ======== obtain: each lane is asked, then it is refused; rights are given and taken over at any time, by anybody.
Asking(t, seen) == [does |-> "ask", token |-> t, seen |-> seen, own |-> [l \in Lanes |-> 0], asked |-> {}]

BeginAsk(k) ==
    /\ \/ /\ call[k].does = "nothing"
          /\ \E t \in Tokens : LET g == gate[Lane(t)] IN
                /\ IsOpen(g, t, Never) /\ Side(t) \in Sides /\ ~Suffices(g, Change(t))
                /\ Goes(k, Asking(t, Never))
       \/ /\ Looked(k, "decide") /\ ~call[k].noted
          /\ LET t == call[k].token IN
                /\ Side(t) \in Sides /\ ~Suffices(gate[Lane(t)], Change(t))
                /\ Goes(k, Asking(t, call[k].seen))
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

AskLane(k) ==
    /\ call[k].does = "ask"
    /\ \E l \in Lanes \ call[k].asked :
        Goes(k, [call[k] EXCEPT !.asked = @ \union {l},
                                !.own[l] = IF Mistake = "RightsAreSummed" THEN gate[l].rights[Side(call[k].token)]
                                           ELSE Own(gate[l], Side(call[k].token))])
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

Refuse(k) ==
    /\ call[k].does = "ask"
    /\ call[k].asked = Lanes \/ (Mistake = "OneLaneAsked" /\ Lane(call[k].token) \in call[k].asked)
    /\ Sum(call[k].own, Lanes) < Need(call[k].token)
    /\ LET t == call[k].token
           g == gate[Lane(t)]
       IN /\ IsOpen(g, t, call[k].seen)
          /\ g.rights[Side(t)] < Need(t)
          /\ Writes(Lane(t), [g EXCEPT !.recent[t] = Refused])
          /\ truth' = [truth EXCEPT ![t] = IF @ = Open THEN Refused ELSE @]
          /\ IF truth[t] # Open \/ t \in granted THEN Blame("decided twice")
             ELSE IF Sum(least[k], Lanes) >= Need(t) THEN Blame("refused without cause")
             ELSE NoBlame
    /\ RestsOrStays(k)
    /\ UNCHANGED <<Items, granted>> /\ Follow

Give ==
    \E l \in Lanes : \E s \in Sides : \E amount \in 1..Moves :
        /\ Cardinality(Lanes) = 2
        /\ gate[l].rights[s] >= amount \/ Mistake = "GiveWithoutCondition"
        /\ gate[l].given[s] + amount <= Moves
        /\ Writes(l, [gate[l] EXCEPT !.rights[s] = @ - amount, !.given[s] = @ + amount])
        /\ UNCHANGED <<Items, call, Books>> /\ Follow

\* What a lane gave is seen, perhaps in a copy, and what the other got; in either order.
BeginTakeOver(k) ==
    /\ call[k].does = "nothing"
    /\ \E l \in Lanes, s \in Sides : \E sees \in {"given", "got"} :
        /\ Cardinality(Lanes) = 2
        /\ gate[Other(l)].given[s] > 0
        /\ Goes(k, [does |-> "take over", lane |-> l, side |-> s,
                    given |-> IF sees = "given" THEN gate[Other(l)].given[s] ELSE Never,
                    got |-> IF sees = "got" THEN gate[l].got[s] ELSE Never])
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

LookToTakeOver(k) ==
    /\ call[k].does = "take over"
    /\ LET c == call[k] IN
        \/ c.given = Never /\ Goes(k, [c EXCEPT !.given = gate[Other(c.lane)].given[c.side]])
        \/ c.got = Never /\ Goes(k, [c EXCEPT !.got = gate[c.lane].got[c.side]])
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

TakeOver(k) ==
    /\ call[k].does = "take over" /\ call[k].given > call[k].got /\ call[k].got # Never
    /\ LET c == call[k]
           g == gate[c.lane]
       IN /\ g.got[c.side] = c.got \/ Mistake = "TakeOverWithoutComparing"
          /\ Writes(c.lane, [g EXCEPT !.rights[c.side] = @ + c.given - c.got, !.got[c.side] = c.given])
    /\ RestsOrStays(k)
    /\ UNCHANGED <<Items, Books>> /\ Follow

Crash(k) ==
    /\ call[k].does # "nothing"
    /\ Rests(k)
    /\ UNCHANGED <<gate, Items, Books>> /\ Follow

Call(k) ==
    \/ Crash(k)
    \/ BeginLookUp(k) \/ GetLate(k) \/ GetNote(k) \/ GetSegment(k)
    \/ TellHeld(k) \/ DecideSlowly(k) \/ DecideGroupSlowly(k) \/ EndFiled(k) \/ Miss(k) \/ LookAgain(k)
    \/ BeginRoll(k) \/ RollPut(k) \/ FinishRoll(k)
    \/ BeginAsk(k) \/ AskLane(k) \/ Refuse(k)
    \/ BeginTakeOver(k) \/ LookToTakeOver(k) \/ TakeOver(k)

Next ==
    \/ Decide \/ DecideGroup \/ EndInGate \/ Forget \/ Give
    \/ \E k \in Calls : Call(k)

Spec == Init /\ [][Next]_vars

EitherCall == Permutations(Calls)    \* it does not matter which is which

\* ======== What is promised ========
Value == Sum([t \in Tokens |-> ChangeOf(truth[t])], Tokens)
Undecided == {t \in granted : truth[t] = Open}
Kept(s) == Sum([t \in Undecided |-> Takes(s, Change(t))], Undecided)
Left(s) == First + Toward(s) * Value - Kept(s)    \* what can still be taken of a side
OnTheWay(l, s) == gate[l].given[s] - gate[Other(l)].got[s]

\* A token is decided once, and a hold is granted once, before that.
ATokenIsDecidedOnce == fault # "decided twice"

\* Whatever a call tells of a token is so, for ever.
AnAnswerIsTheTruth == fault # "a lie"

\* The lanes had too little of their own, each at some moment since they were asked.
ARefusalHasACause == fault # "refused without cause"

\* Neither limit is passed, with all holds counted.
NoLimitIsPassed == \A s \in Sides : Left(s) >= 0

\* The rights of all lanes and what is on its way are what can still be taken.
RightsAreConserved == \A s \in Sides :
    /\ \A l \in Lanes : gate[l].rights[s] >= 0
    /\ Cardinality(Lanes) = 2 => \A l \in Lanes : OnTheWay(l, s) >= 0
    /\ Left(s) = Sum([l \in Lanes |-> Own(gate[l], s)], Lanes)

\* A hold that was granted and has not ended is in its gate, or has its item.
NoHoldIsLost == \A t \in Undecided : t \in gate[Lane(t)].held \union notes

Listed(l, version) ==
    UNION {s.lists : s \in {x \in segs[l] : x.version <= version}}
    \union {<<t, late[t].is>> : t \in {x \in Tokens : Lane(x) = l /\ late[x].is # Open /\ late[x].version <= version}}

\* What the gate says that it filed is listed, each token once and nothing else.
TheHistoryIsWhatWasDecided == \A l \in Lanes :
    LET g     == gate[l]
        filed == {e \in Listed(l, g.version) : g.recent[e[1]] = Open}
        of(t) == IF g.recent[t] # Open THEN {g.recent[t]} ELSE {e[2] : e \in {f \in filed : f[1] = t}}
    IN /\ \A t \in Tokens : Lane(t) = l => of(t) = IF truth[t] = Open THEN {} ELSE {truth[t]}
       /\ g.count = Cardinality({e \in filed : Counts(e[2])})
       /\ g.total = Sum([e \in filed |-> ChangeOf(e[2])], filed)

\* ======== Why it holds ========
\* Whatever is listed, by a roll that lost or in a version to come, was decided so.
WhatIsListedIsTrue ==
    /\ \A l \in Lanes : \A s \in segs[l] : \A e \in s.lists : truth[e[1]] = e[2]
    /\ \A t \in Tokens : late[t].is \in {Open, truth[t]}

\* A hold item stands for a hold that was granted.
ANoteIsOfAHold == notes \subseteq granted

\* What was taken out of a gate is not fresh there.
WhatWasFiledIsNotFresh == \A t \in Tokens :
    LET g == gate[Lane(t)] IN
    (truth[t] # Open \/ t \in granted) /\ Unknown(g, t) => t <= g.low \/ Mark(t) \in g.moved

\* Of a token that the gate does not know: a segment whose low is not below it comes after one that lists it.
ALookUpMayStop == \A l \in Lanes : \A s, x \in segs[l] : \A e \in s.lists :
    Unknown(gate[l], e[1]) /\ late[e[1]].is = Open /\ x.hi >= e[1] /\ Key(x) < Key(s) /\ x.low >= e[1]
        => \E y \in segs[l] : Key(y) <= Key(x) /\ e \in y.lists

\* ======== Things that must be able to happen: each is checked as an invariant that has to FAIL, so that a model in
\* which nothing happens is found out.
NeverACopyOfALostRoll == \A l \in Lanes : \A s, x \in segs[l] :
    s # x /\ s.version = x.version => s.version > gate[l].version
NeverALateItem == \A t \in Tokens : late[t].is = Open \/ late[t].version > gate[Lane(t)].version
NeverDecidedThoughLow == \A t \in Tokens :
    LET g == gate[Lane(t)] IN g.recent[t] = Open \/ t > g.low \/ t < g.top
NeverPastASegment == \A k \in Calls : ~(call[k].does = "look up" /\ call[k].at > 0
    /\ call[k].seen = gate[Lane(call[k].token)].version /\ truth[call[k].token] = Open)
NeverALookUpForAnother == \A k \in Calls : call[k].does = "look up" =>
    LET t == call[k].token IN ~(t > gate[Lane(t)].low /\ truth[t] = Open /\ t \notin granted)
NeverAnItemOfADecidedHold == \A t \in notes :
    ~(truth[t] # Open /\ gate[Lane(t)].recent[t] = Open)
NeverAnEndOfAFiledHold == \A k \in Calls : ~(Looked(k, "end") /\ call[k].noted
    /\ gate[Lane(call[k].token)].version = call[k].seen /\ gate[Lane(call[k].token)].recent[call[k].token] # Open)
NeverASecondLook == \A k \in Calls : ~(call[k].does = "look again" /\ call[k].was = "held")
NeverRefusedThoughThereIsRoom == \A t \in Tokens : ~(truth[t] = Refused /\ Left(Side(t)) >= Need(t))
NeverSoldElsewhere == \A t \in InLane2 : t \in Lowering => truth[t] # Change(t)
=============================================================================
